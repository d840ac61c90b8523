package card

import (
	"path/filepath"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"ggufreap/gguf/pattern"
)

var nodesLine = pattern.Lazy(`(?m)^On ([0-9]{1,4}) machines by layer split`)

var keyLine = pattern.Lazy("(?m)^Signed with the (SSH|EC) key `([^`]+)`\\.$")

var evidenceLine = pattern.Lazy("(?m)^From (?:`([^`]+)`|`` (.+) ``), sha256 `[0-9a-f]{64}`\\.$")

// EvidenceNames returns the names of the files of evidence that a card says it was made with.
func EvidenceNames(text string) []string {
	_, rest, err := front(strings.ReplaceAll(text, "\r\n", "\n"))
	if err != nil {
		return nil
	}
	places, err := spans(rest)
	at, ok := places["evidence"]
	if err != nil || !ok {
		return nil
	}
	var names []string
	for _, m := range evidenceLine().FindAllStringSubmatch(rest[at.from:at.to], -1) {
		names = append(names, filepath.Base(m[1]+m[2]))
	}
	return names
}

// TakeStated takes from a card what it states and the facts leave open: its license, the
// source's repository, the keys that sign it, and for how many machines it shows the way to run it. Whoever looks at a
// card need not say again what it was made with.
func (f *Facts) TakeStated(text string) {
	matter, rest, err := front(strings.ReplaceAll(text, "\r\n", "\n"))
	var said struct {
		License     yaml.Node `yaml:"license"`
		LicenseName string    `yaml:"license_name"`
		LicenseLink string    `yaml:"license_link"`
		BaseModel   yaml.Node `yaml:"base_model"`
	}
	if err != nil || yaml.Unmarshal([]byte(matter), &said) != nil {
		return // Renew says what is wrong with it
	}
	if f.Licenses == nil {
		f.Licenses = values(said.License)
		f.LicenseName, f.LicenseLink = said.LicenseName, said.LicenseLink
	}
	if base := values(said.BaseModel); f.BaseModel == "" && len(base) == 1 {
		f.BaseModel = base[0]
	}
	places, err := spans(rest)
	if at, ok := places["check"]; ok && err == nil && f.Keys == nil {
		for _, m := range keyLine().FindAllStringSubmatch(rest[at.from:at.to], -1) {
			f.Keys = append(f.Keys, Key{m[1], m[2]})
		}
	}
	if at, ok := places["run"]; ok && err == nil && f.Nodes == 0 {
		if m := nodesLine().FindStringSubmatch(rest[at.from:at.to]); m != nil {
			f.Nodes, _ = strconv.Atoi(m[1])
		}
	}
}

// values returns the texts of a node that is one or a list of them.
func values(n yaml.Node) []string {
	if n.Kind == yaml.ScalarNode && n.Value != "" && n.Tag != "!!null" {
		return []string{n.Value}
	}
	var list []string
	for _, item := range n.Content {
		list = append(list, item.Value)
	}
	return list
}
