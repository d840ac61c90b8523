package edit

import (
	"fmt"
	"strings"
	"unicode"

	"ggufreap/gguf"
	"ggufreap/gguf/pattern"
)

// Keys of what a model was made from, as llama.cpp's converter writes them: a count, and for
// each number below it a few keys.
const (
	keyBaseCount = "general.base_model.count"
	keyBase      = "general.base_model.%d.%s"
)

// hubPage is where the converter takes a repository to be.
const hubPage = "https://huggingface.co/"

// AddBase appends the repository that a model was made from to those that its metadata names,
// in the words of llama.cpp's converter. One that is named already is not named again.
func AddBase(md *gguf.Metadata, repo string) error {
	base := baseOf(repo)
	count, _ := md.Get(keyBaseCount)
	n, counted := count.Uint()
	for i := range min(n, maxBases) {
		if base["repo_url"] != "" && md.Text(fmt.Sprintf(keyBase, i, "repo_url")) == base["repo_url"] {
			return nil
		}
	}
	next, err := count.WithInt(int64(n) + 1)
	if !counted || n > maxBases {
		next, err = gguf.Uint32Value(1), nil
		n = 0
	}
	if err != nil {
		return fmt.Errorf("key %q: %w", keyBaseCount, err)
	}
	md.Set(keyBaseCount, next)
	for _, field := range []string{"name", "organization", "repo_url"} {
		if base[field] != "" {
			md.Set(fmt.Sprintf(keyBase, n, field), gguf.TextValue(base[field]))
		}
	}
	return nil
}

// baseKey is a key that AddBase or the converter writes: a count, or a text of one base.
var baseKey = pattern.Lazy(`^general\.base_model\.(?:(count)|(?:0|[1-9][0-9]{0,3})\.(?:name|author|version|organization|description|url|doi|uuid|repo_url))$`)

// IsBaseKey reports whether a key of this type says what a model was made from.
func IsBaseKey(key, typ string) bool {
	match := baseKey().FindStringSubmatch(key)
	return match != nil && typ == map[bool]string{true: gguf.Uint32.String(), false: gguf.Text.String()}[match[1] != ""]
}

// maxBases is the greatest count that is believed.
const maxBases = 1000

// baseOf says of a repository what the converter says: "owner/small-model" is "Small Model" of
// "Owner". What has no owner has a name only, and an address is its own page.
func baseOf(repo string) map[string]string {
	page := hubPage + repo
	if _, rest, address := strings.Cut(repo, "://"); address {
		page = repo
		_, repo, _ = strings.Cut(rest, "/")
	}
	owner, name, owned := strings.Cut(strings.Trim(repo, "/"), "/")
	if !owned || strings.Contains(name, "/") {
		return map[string]string{"name": title(repo)}
	}
	return map[string]string{"name": title(name), "organization": title(owner), "repo_url": page}
}

// version tells words that keep their letters: "v2.1", "8b".
var version = pattern.Lazy(`^(v\d+(\.\d+)*|\d.*)$`)

// title makes a title of an id: words of small letters begin with a capital.
func title(id string) string {
	words := strings.Fields(strings.ReplaceAll(id, "-", " "))
	for i, word := range words {
		if word == strings.ToLower(word) && !version().MatchString(word) {
			words[i] = capitals(word)
		}
	}
	return strings.Join(words, " ")
}

// capitals writes each letter that follows none as a capital.
func capitals(word string) string {
	within := false
	return strings.Map(func(r rune) rune {
		first := !within
		if within = unicode.IsLetter(r); within && first {
			return unicode.ToTitle(r)
		}
		return r
	}, word)
}
