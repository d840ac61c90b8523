package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/gguf/remote/hubtest"
)

// TestProxyVariables runs the program behind a proxy that the usual variables name: all goes
// through it, but for hosts of NO_PROXY, and it sees no token.
func TestProxyVariables(t *testing.T) {
	path := programtest.Path(t)
	const token = "hf_verysecret"
	files := writeModel(t, smallK3(), 3)
	for _, plain := range []bool{false, true} {
		h := hubtest.New(t)
		h.AddFolder(t, "org/K3", "", filepath.Dir(files[0]))
		h.AddFolder(t, "plain/files", "", filepath.Dir(files[0]))
		proxy := h.NewProxy(t)
		address, env := "hf://org/K3", []string{"HTTPS_PROXY=" + proxy.URL, "HF_ENDPOINT=" + h.Endpoint(), "HF_TOKEN=" + token}
		if plain { // nobody listens there, but the proxy does not mind
			h = hubtest.NewPlain(t)
			h.AddFolder(t, "plain/files", "", filepath.Dir(files[0]))
			proxy = h.NewProxy(t)
			address, env = "http://0.0.0.0:1/plain/"+filepath.Base(files[0]), []string{"HTTP_PROXY=" + proxy.URL, "HF_TOKEN=" + token}
		} else if runtime.GOOS != "linux" {
			continue // SSL_CERT_FILE is for the systems whose certificates are in files
		}
		cert := filepath.Join(t.TempDir(), "cert.pem")
		if err := os.WriteFile(cert, h.Certificate(), 0o666); err != nil {
			t.Fatal(err)
		}
		run := func(more ...string) (string, error) {
			cmd := exec.Command(path, "inspect", "--json", address)
			cmd.Env = append(append([]string{"HOME=" + t.TempDir(), "SSL_CERT_FILE=" + cert}, env...), more...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			return stdout.String() + stderr.String(), err
		}
		out, err := run()
		if err != nil || out != succeed(t, "inspect", "--json", files[0]) {
			t.Errorf("plain %t: %v\n%s", plain, err, out)
		}
		seen := proxy.Requests()
		if len(seen) == 0 {
			t.Errorf("plain %t: the proxy was not asked", plain)
		}
		for _, r := range seen {
			if r.Authorization != "" {
				t.Errorf("plain %t: the proxy got %+v", plain, r)
			}
		}
		if !plain {
			continue
		}
		if out, err := run("NO_PROXY=0.0.0.0"); err == nil || !strings.Contains(out, "refused") || len(proxy.Requests()) != len(seen) {
			t.Errorf("with NO_PROXY: %v\n%s", err, out)
		}
	}
}

// TestIPv6Server prunes from a server that has an address of IPv6 only.
func TestIPv6Server(t *testing.T) {
	programtest.OnEmptyHub(t)
	h := hubtest.NewIPv6(t)
	files := writeModel(t, smallK3(), 3)
	h.AddFolder(t, "org/K3", "", filepath.Dir(files[0]))
	h.AddFolder(t, "plain/files", "", filepath.Dir(files[0]))
	t.Setenv("HF_ENDPOINT", h.Endpoint())
	local := filepath.Join(t.TempDir(), "local")
	succeed(t, "prune", "--keep", "8", "-o", local, files[0])
	for i, address := range []string{"hf://org/K3", h.File(filepath.Base(files[1]))} {
		out := filepath.Join(t.TempDir(), fmt.Sprint(i))
		succeed(t, "prune", "--keep", "8", "-o", out, address)
		programtest.SameFolder(t, folder(t, out), folder(t, local))
	}
}

// TestProjectorOnTheHub sets aside what goes beside the model, and says so.
func TestProjectorOnTheHub(t *testing.T) {
	h, files := programtest.OnHub(t, smallK3(), 3)
	projector := gguftest.Mixed(1)
	projector.Name = "mmproj-F16"
	projector.Metadata.Set("general.architecture", gguf.TextValue("clip"))
	projector.Metadata.Set("general.type", gguf.TextValue("mmproj"))
	beside, err := projector.Write(t.TempDir(), gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	data := read(t, beside[0])
	want := succeed(t, "inspect", "--json", files[0])
	aside := regexp.MustCompile(`(?s)\n  "set_aside": \[.*?\n  \],?`)
	for _, folder := range []string{"IQ1_S/", ""} {
		h.Add("org/K3", folder+"mmproj-F16.gguf", bytes.NewReader(data), int64(len(data)))
		r := ggufreap(t, "inspect", "--json", "hf://org/K3")
		r.stdout = aside.ReplaceAllString(r.stdout, "")
		if r.code != exitOK || r.stdout != want || !strings.Contains(r.stderr, "mmproj-F16.gguf: set aside, of the kind projector") {
			t.Errorf("%q: exit %d, %s", folder, r.code, r.stderr)
		}
	}
	other := gguftest.Mixed(1)
	other.Name = "other"
	paths, err := other.Write(t.TempDir(), gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	data = read(t, paths[0])
	h.Add("org/K3", "IQ1_S/other.gguf", bytes.NewReader(data), int64(len(data)))
	if r := ggufreap(t, "inspect", "hf://org/K3"); r.code != exitFailed || !strings.Contains(r.stderr, "holds 2 models, name one of them: other.gguf, small-00001-of-00003.gguf") {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
}

// TestRoadFromTheHub types the README's road from the hub to a pruned release, word for word but
// for the repository's name: the folder then has the plan and the release, which is that of the
// files.
func TestRoadFromTheHub(t *testing.T) {
	readme := string(read(t, filepath.Join("..", "..", "README.md")))
	_, section, found := strings.Cut(readme, "\n## From the hub to a pruned release on a small disk\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, block, fenced := strings.Cut(section, "```sh\n")
	block, _, _ = strings.Cut(block, "```")
	if !found || !fenced {
		t.Fatal("the README has no such road")
	}
	_, files := programtest.OnHub(t, gguftest.K3(gguftest.K3Options{}), gguftest.K3Shards)
	dir := t.TempDir()
	t.Chdir(dir)
	commands := strings.Split(strings.TrimSpace(block), "\n")
	for _, line := range commands {
		words := strings.Fields(strings.ReplaceAll(line, "OWNER/REPO/FOLDER", "org/K3/IQ1_S"))
		succeed(t, words[1:]...)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(commands) != 3 || len(entries) != 2 || entries[0].Name() != "K3-REAP568" || entries[1].Name() != "plan568.json" {
		t.Fatalf("%d commands left %v, %v", len(commands), entries, err)
	}
	local := filepath.Join(t.TempDir(), "local")
	succeed(t, "prune", "--preset", "reap568", "--shards", "14", "-o", local, files[0])
	programtest.SameFolder(t, folder(t, "K3-REAP568"), folder(t, local))
	succeed(t, "verify", "K3-REAP568")
}

// TestNamesOnTheHubAreSafe prints names and licenses that a terminal would act on as what they are.
func TestNamesOnTheHubAreSafe(t *testing.T) {
	h, files := programtest.OnHub(t, smallK3(), 3)
	h.License = "mit\x1b[31m"
	h.AddFolder(t, "org/Evil", "IQ\x1b[31m\nx", filepath.Dir(files[0]))
	h.AddFolder(t, "org/Many", "a\x1b[31m", filepath.Dir(files[0]))
	h.AddFolder(t, "org/Many", "b\x1b[31m", filepath.Dir(files[0]))
	for _, line := range [][]string{
		{"inspect", "hf://org/Evil"},
		{"inspect", "--json", "hf://org/Evil"},
		{"pin", "hf://org/Evil"},
		{"plan", "--keep", "8", "hf://org/Evil"},
		{"prune", "--keep", "8", "-o", filepath.Join(t.TempDir(), "out"), "hf://org/Evil"},
		{"verify", "--against", "hf://org/Evil", files[0]},
		{"repair", "--from", "hf://org/Evil", filepath.Dir(files[0])},
		{"inspect", "hf://org/Many"},
		{"inspect", "hf://org/K3/\x1b[31m.gguf"},
	} {
		r := ggufreap(t, line...)
		if strings.Contains(r.stdout+r.stderr, "\x1b") {
			t.Errorf("%q prints %q", line, r.stdout+r.stderr)
		}
	}
}
