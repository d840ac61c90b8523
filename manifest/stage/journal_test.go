package stage

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"ggufreap/manifest"
)

// journalOf is a journal of two shards, of which 100 bytes of the second are kept.
func journalOf(t testing.TB) string {
	t.Helper()
	head, err := newHead(testRelease(t, 2), Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(head)
	if err != nil {
		t.Fatal(err)
	}
	return string(line) + "\n" + entryLine(2, 100, manifest.Sum{1})
}

func entryLine(shard int, size int64, sum manifest.Sum) string {
	return fmt.Sprintf(`{"shard":%d,"size":%d,"sha256":"%s"}`, shard, size, sum) + "\n"
}

func TestParseJournal(t *testing.T) {
	whole := journalOf(t)
	head := whole[:strings.IndexByte(whole, '\n')+1]
	one := map[int]beginning{1: {100, manifest.Sum{1}}}
	none := map[int]beginning{}
	for name, test := range map[string]struct {
		text string
		kept map[int]beginning
		rest int // bytes that do not count
		want string
	}{
		"empty":            {text: "", kept: none},
		"head":             {text: head, kept: none},
		"head cut short":   {text: head[:len(head)-1], kept: none, rest: len(head) - 1},
		"one":              {text: whole, kept: one},
		"cut short":        {text: whole + entryLine(1, 5, manifest.Sum{2})[:40], kept: one, rest: 40},
		"zeros behind":     {text: whole + "\x00\x00\x00", kept: one, rest: 3},
		"twice":            {text: whole + entryLine(2, 99, manifest.Sum{3}) + entryLine(1, 1, manifest.Sum{2}), kept: map[int]beginning{0: {1, manifest.Sum{2}}, 1: {99, manifest.Sum{3}}}},
		"a run":            {text: head + claimLine("a") + whole[len(head):] + claimLine("b"), kept: one},
		"another schema":   {text: `{"schema":"ggufreap/journal/v2"}` + "\n", want: "another version of this program"},
		"no JSON":          {text: "hello\n", want: "line 1"},
		"field of head":    {text: strings.Replace(whole, `"origin"`, `"x":1,"origin"`, 1), want: "line 1: is not in the form"},
		"empty lists":      {text: `{"schema":"ggufreap/journal/v1","sources":[],"origin":[],"shards":[],"documents":[]}` + "\n", kept: none},
		"empty shards":     {text: `{"schema":"ggufreap/journal/v1","shards":[{},{}]}` + "\n", want: "line 1: JSON, byte 42: at \"/shards\": is not in the form"},
		"shards of text":   {text: `{"schema":"ggufreap/journal/v1","shards":"no"}` + "\n", want: "line 1"},
		"null":             {text: `{"schema":"ggufreap/journal/v1","sources":null,"origin":[],"shards":[],"documents":[]}` + "\n", want: "line 1: JSON, byte 42: at \"/sources\": is not in the form"},
		"name twice":       {text: strings.Replace(whole, `"origin"`, `"sources":[],"origin"`, 1), want: `key "sources" stands twice`},
		"CRLF":             {text: strings.ReplaceAll(whole, "\n", "\r\n"), want: "line 1"},
		"deep":             {text: strings.Repeat("[", 1<<20) + "\n", want: "line 1"},
		"a leading BOM":    {text: "\ufeff" + whole, want: "line 1"},
		"entry before all": {text: entryLine(1, 1, manifest.Sum{}) + whole, want: "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, kept, end, err := parseJournal([]byte(test.text))
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want an error with %q", err, test.want)
				}
				return
			}
			if err != nil || !maps.Equal(kept, test.kept) || int(end) != len(test.text)-test.rest {
				t.Errorf("got %v to byte %d with %v, want %v to byte %d", kept, end, err, test.kept, len(test.text)-test.rest)
			}
		})
	}
}

// TestJournalEndsWhereItIsNotOurs puts lines into a journal that this program does not
// write. They end what counts, with all that follows.
func TestJournalEndsWhereItIsNotOurs(t *testing.T) {
	whole := journalOf(t)
	line := entryLine(1, 1, manifest.Sum{})
	for name, text := range map[string]string{
		"an empty line":     "\n",
		"shard 0":           entryLine(0, 1, manifest.Sum{}),
		"shard 3":           entryLine(3, 1, manifest.Sum{}),
		"no bytes":          entryLine(1, 0, manifest.Sum{}),
		"too many bytes":    entryLine(1, 1<<20, manifest.Sum{}),
		"huge shard":        `{"shard":99999999999999999999,"size":1,"sha256":""}` + "\n",
		"short sum":         `{"shard":1,"size":1,"sha256":"00"}` + "\n",
		"unknown field":     strings.Replace(line, "{", `{"x":1,`, 1),
		"field twice":       strings.Replace(line, "{", `{"shard":2,`, 1),
		"spaces":            strings.Replace(line, ":", ": ", 1),
		"a run and more":    strings.Replace(claimLine("a"), "{", `{"x":1,`, 1),
		"half of two lines": claimLine("a") + line[30:],
		"zeros":             "\x00\x00\n",
	} {
		counts := strings.LastIndex(text[:len(text)-1], "\n") + 1
		_, kept, end, err := parseJournal([]byte(whole + text + line))
		if err != nil || len(kept) != 1 || int(end) != len(whole)+counts {
			t.Errorf("%s: %d shards, to byte %d: %v", name, len(kept), end, err)
		}
	}
	nothing := `{"schema":"ggufreap/journal/v1","sources":[],"origin":[],"shards":[],"documents":[]}` + "\n"
	if _, kept, end, err := parseJournal([]byte(nothing + entryLine(1, 1, manifest.Sum{}))); err != nil || len(kept) != 0 || int(end) != len(nothing) {
		t.Errorf("a shard of none: %d shards, to byte %d: %v", len(kept), end, err)
	}
}

func claimLine(run string) string { return `{"run":"` + run + `"}` + "\n" }

// TestJournalCutAnywhere cuts a journal at every byte: what is left must be read, and a
// line counts when it is whole.
func TestJournalCutAnywhere(t *testing.T) {
	whole := journalOf(t)
	for n := range len(whole) + 1 {
		head, kept, end, err := parseJournal([]byte(whole[:n]))
		lines := strings.Count(whole[:n], "\n")
		if err != nil || (head != nil) != (lines > 0) || len(kept) != max(lines-1, 0) || int(end) != strings.LastIndexByte(whole[:n], '\n')+1 {
			t.Fatalf("cut at %d: %v, %d shards, ends at %d: %v", n, head != nil, len(kept), end, err)
		}
	}
}

// TestJournalWritesOverWhatDoesNotCount adds to a journal that ends in a long half line.
func TestJournalWritesOverWhatDoesNotCount(t *testing.T) {
	d := &memDisk{}
	f, err := d.Make(memPath)
	if err != nil {
		t.Fatal(err)
	}
	d.names[manifest.JournalName] = &memFile{data: []byte(journalOf(t) + strings.Repeat("x", 1000))}
	j, head, err := lockJournal(f)
	if err != nil || head == nil {
		t.Fatal(head, err)
	}
	if err := errors.Join(j.begin(head), j.keep(0, beginning{7, manifest.Sum{2}})); err != nil {
		t.Fatal(err)
	}
	if got, want := d.files()[manifest.JournalName], journalOf(t)+string(j.claim.text)+entryLine(1, 7, manifest.Sum{2}); got != want {
		t.Errorf("the journal is %q, want %q", got, want)
	}
}

// TestJournalMemory wants lists of what is no part of a journal to end at the first.
func TestJournalMemory(t *testing.T) {
	for _, element := range []string{"{}", "0", "null", `""`, "[]"} {
		for _, list := range []string{"sources", "origin", "shards", "documents"} {
			text := `{"schema":"ggufreap/journal/v1","` + list + `":[` + strings.Repeat(element+",", (1<<20)/(len(element)+1)) + "{}]}\n"
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, _, err := parseJournal([]byte(text))
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Errorf("%s of %s are a journal", list, element)
			}
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 32<<20 {
				t.Errorf("%s of %s: %d bytes of memory for a journal of %d", list, element, taken, len(text))
			}
		}
	}
	text := `{"schema":"ggufreap/journal/v1","sources":[],"origin":[],"shards":[],"documents":[` + strings.Repeat(`"",`, maxJournalList)
	for _, end := range []struct{ text, want string }{{`""]}`, "a list of more than 65535"}, {"", ""}} {
		line := text + end.text
		if end.want == "" {
			line = strings.TrimSuffix(text, ",") + "]}"
		}
		_, _, _, err := parseJournal([]byte(line + "\n"))
		if end.want == "" && err != nil || end.want != "" && (err == nil || !strings.Contains(err.Error(), end.want)) {
			t.Errorf("error %v, want %q", err, end.want)
		}
	}
}

func FuzzParseJournal(f *testing.F) {
	f.Add([]byte(journalOf(f)))
	f.Add([]byte(journalOf(f)[:100]))
	f.Fuzz(func(t *testing.T, data []byte) {
		head, kept, end, err := parseJournal(data)
		if err != nil || head == nil {
			return
		}
		for i, b := range kept {
			if i < 0 || i >= len(head.Shards) || b.size < 1 || b.size > head.Shards[i].Size {
				t.Errorf("%d bytes of shard %d of %d are kept", b.size, i, len(head.Shards))
			}
		}
		line, err := json.Marshal(head)
		if err != nil || !bytes.HasPrefix(data[:end], append(line, '\n')) {
			t.Errorf("what was read is not what is written: %s %v", line, err)
		}
	})
}

// TestJournalThatIsNotOurs puts other things where the journal should be. They are
// refused, at once, and left alone.
func TestJournalThatIsNotOurs(t *testing.T) {
	r := testRelease(t, 3)
	for name, test := range map[string]struct {
		make func(path string) error
		want string
	}{
		"text":   {func(p string) error { return os.WriteFile(p, []byte("hello\n"), 0o666) }, manifest.JournalName + ": line 1"},
		"huge":   {func(p string) error { return errors.Join(touch(p), os.Truncate(p, 1<<40)) }, "has 1099511627776 bytes"},
		"folder": {func(p string) error { return os.Mkdir(p, 0o777) }, "not a regular file"},
		"link":   {func(p string) error { return os.Symlink("elsewhere", p) }, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := test.make(filepath.Join(dir, manifest.JournalName)); err != nil {
				t.Fatal(err)
			}
			_, err := Open(dir, r, Options{Resume: true})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
			if names := folderNames(t, dir); len(names) != 1 {
				t.Errorf("folder holds %q", names)
			}
		})
	}
}
