package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A File is what a tool wrote.
type File struct {
	Name string // base name
	Data []byte
}

// A reading is what an import found in files.
type reading struct {
	rows    []row
	results []*harnessResults
	samples []*harnessSamples
	notes   []string
}

// Import makes a document of what tools wrote: llama-bench (JSON, JSONL, CSV),
// llama-perplexity, the timings of llama-server in answers or in its log, and results and
// samples of lm-evaluation-harness, which belong together when they are of one task. The
// files are told apart by what is in them. Notes say what was left out, and why. Rows are
// measured here, with the SHA-256 of each file.
func Import(files []File) (document []byte, notes []string, err error) {
	in := &reading{}
	var faults []error
	for _, f := range files {
		if err := in.read(f); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", f.Name, err))
		}
	}
	if err := in.harness(); err != nil {
		faults = append(faults, err)
	}
	if len(in.rows) == 0 && faults == nil {
		faults = append(faults, errors.New("nothing to import"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, in.notes, err
	}
	if document, err = encode(in.rows); err != nil {
		return nil, in.notes, err
	}
	if _, err := Read(document); err != nil {
		return nil, in.notes, fmt.Errorf("what was imported is not sound:\n%w", err)
	}
	return document, in.notes, nil
}

// A format is one that can be imported.
type format struct {
	name string
	is   func(data []byte) bool
	read func(in *reading, f File) error
}

var formats = []format{
	{"llama-bench CSV", func(data []byte) bool {
		return bytes.Contains(firstLine(data), []byte("avg_ts")) && data[0] != '{' && data[0] != '['
	}, (*reading).benchCSV},
	{"llama-bench JSON", has(`"avg_ts"`), (*reading).benchJSON},
	{"lm-evaluation-harness results", has(`"results"`, `"n-samples"`), (*reading).harnessResults},
	{"lm-evaluation-harness samples", has(`"doc_id"`), (*reading).harnessSamples},
	{"llama-server answer", has(`"predicted_per_second"`), (*reading).serverJSON},
	{"llama-perplexity", hasAny("Final estimate: PPL", "KLD:"), (*reading).perplexity},
	{"llama-server log", has("prompt eval time ="), (*reading).serverLog},
}

func firstLine(data []byte) []byte {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return line
}

func has(words ...string) func([]byte) bool {
	return func(data []byte) bool {
		for _, w := range words {
			if !bytes.Contains(data, []byte(w)) {
				return false
			}
		}
		return true
	}
}

func hasAny(words ...string) func([]byte) bool {
	return func(data []byte) bool {
		for _, w := range words {
			if bytes.Contains(data, []byte(w)) {
				return true
			}
		}
		return false
	}
}

// read finds out what a file is and reads it.
func (in *reading) read(f File) error {
	f.Data = bytes.TrimPrefix(f.Data, []byte("\ufeff"))
	if len(bytes.TrimSpace(f.Data)) == 0 {
		return errors.New("empty")
	}
	var names []string
	for _, x := range formats {
		if x.is(f.Data) {
			return x.read(in, f)
		}
		names = append(names, x.name)
	}
	return fmt.Errorf("not what a tool wrote that can be imported: %s", strings.Join(names, ", "))
}

func (in *reading) note(format string, args ...any) {
	in.notes = append(in.notes, fmt.Sprintf(format, args...))
}

// A row of what is imported: names and values in their order.
type row []member

type member struct {
	name  string
	value any // string, []string, or row
}

// add adds a member unless there is no value.
func (r *row) add(name, value string) {
	if value = printable(value); value != "" {
		*r = append(*r, member{name, value})
	}
}

// printable leaves out of a foreign text what a document refuses.
func printable(s string) string {
	s = strings.Map(func(c rune) rune {
		if c == '\n' || !clean(string(c)) {
			return ' '
		}
		return c
	}, s)
	if s = strings.TrimSpace(s); len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "")
	}
	if shrug(s) {
		return NotSpecified
	}
	return s
}

// start begins a row that was taken from files.
func start(id, workload, tool string, files ...File) row {
	imported := []row{}
	for _, f := range files {
		sum := sha256.Sum256(f.Data)
		imported = append(imported, row{{"tool", tool}, {"file", printable(f.Name)}, {"sha256", hex.EncodeToString(sum[:])}})
	}
	return row{{"id", printable(id)}, {"workload", printable(workload)}, {"kind", string(Measured)}, {"imported", imported}}
}

// measured is a value with its spread.
func measured(value, spread string) any {
	if spread == "" {
		return value
	}
	return row{{"value", value}, {"spread", spread}}
}

// encode writes a document, which cannot hold what is no UTF-8. Ids that several rows would have
// get numbers.
func encode(rows []row) ([]byte, error) {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	seen := map[string]int{}
	for _, r := range rows {
		id := r[0].value.(string)
		if seen[id]++; seen[id] > 1 {
			r[0].value = fmt.Sprintf("%s-%d", id, seen[id])
		}
		list.Content = append(list.Content, r.node(0))
	}
	doc := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalar("schema"), scalar(Schema), scalar("rows"), list}}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("what was imported is not sound: %w", err)
	}
	return b.Bytes(), nil
}

func (r row) node(style yaml.Style) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Style: style}
	for _, m := range r {
		n.Content = append(n.Content, scalar(m.name), nodeOf(m.value))
	}
	return n
}

func nodeOf(value any) *yaml.Node {
	switch v := value.(type) {
	case row:
		return v.node(yaml.FlowStyle)
	case []row:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, r := range v {
			n.Content = append(n.Content, r.node(0))
		}
		return n
	case []string:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, s := range v {
			n.Content = append(n.Content, scalar(s))
		}
		return n
	}
	return scalar(value.(string))
}

// scalar is a text; one that looks like a number is written as one.
func scalar(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: s}
	if !numberForm().MatchString(s) {
		n.Tag = "!!str"
	}
	return n
}
