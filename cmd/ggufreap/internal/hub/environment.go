package hub

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Settings are what the environment says of the hub, in the variables that its own client
// reads: https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables.
type Settings struct {
	Endpoint string // "" for the default one
	Token    string
	Offline  bool
}

// Environment reads HF_ENDPOINT, HF_HUB_OFFLINE and the token: HF_TOKEN, or else the file
// that HF_TOKEN_PATH names, or the file "token" in HF_HOME. HF_HUB_DISABLE_IMPLICIT_TOKEN
// leaves the token out.
func Environment() (Settings, error) {
	s := Settings{Endpoint: os.Getenv("HF_ENDPOINT"), Offline: isTrue("HF_HUB_OFFLINE")}
	if isTrue("HF_HUB_DISABLE_IMPLICIT_TOKEN") {
		return s, nil
	}
	from := "HF_TOKEN"
	s.Token = strings.TrimSpace(os.Getenv(from))
	if s.Token == "" {
		from = "HUGGING_FACE_HUB_TOKEN"
		s.Token = strings.TrimSpace(os.Getenv(from))
	}
	if s.Token == "" {
		from = tokenPath()
		text, _ := os.ReadFile(from) // most people have none
		s.Token = strings.TrimSpace(string(text))
	}
	if strings.ContainsFunc(s.Token, func(r rune) bool { return r <= ' ' || r > '~' }) || len(s.Token) > maxToken {
		return s, fmt.Errorf("what %s holds is not a token of the hub", from)
	}
	return s, nil
}

// maxToken is far above the length of any token.
const maxToken = 4 << 10

// isTrue reports whether a variable is set to what the hub's client takes for true.
func isTrue(name string) bool {
	return slices.Contains([]string{"1", "ON", "YES", "TRUE"}, strings.ToUpper(os.Getenv(name)))
}

// tokenPath is the file that `hf auth login` writes.
func tokenPath() string {
	if path := pathIn("HF_TOKEN_PATH"); path != "" {
		return path
	}
	return filepath.Join(home(), "token")
}

// home is the hub client's folder.
func home() string {
	if dir := pathIn("HF_HOME"); dir != "" {
		return dir
	}
	cache := pathIn("XDG_CACHE_HOME")
	if cache == "" {
		dir, _ := os.UserHomeDir() // without one there is no file
		cache = filepath.Join(dir, ".cache")
	}
	return filepath.Join(cache, "huggingface")
}

// pathIn returns the path that a variable holds. No shell has seen it where a service or a
// container sets it: ~ and variables in it are the hub client's to replace.
func pathIn(name string) string {
	path := os.ExpandEnv(os.Getenv(name))
	if rest, own := strings.CutPrefix(path, "~"); own && (rest == "" || os.IsPathSeparator(rest[0])) {
		if dir, err := os.UserHomeDir(); err == nil {
			return dir + rest
		}
	}
	return path
}
