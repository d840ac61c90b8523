package parts

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// testRecords are those of n parts of the pin of a model, and the pin that one run takes.
func testRecords(t testing.TB, n int) ([]*Record, *manifest.Pin) {
	t.Helper()
	files, err := gguftest.Mixed(1).Write(t.TempDir(), gguf.Split{Shards: 4})
	if err != nil {
		t.Fatal(err)
	}
	m, err := gguf.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o := manifest.BuildOptions{Slabs: gguftest.MixedSlabs}
	whole, err := manifest.BuildPin(context.Background(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	var records []*Record
	costs := make([]int64, len(m.Files))
	for part, files := range Divide(costs, n) {
		pin, err := manifest.PinPart(context.Background(), m, o, files)
		if err != nil {
			t.Fatal(err)
		}
		r := New(pin, []Fact{{"plan", manifest.DigestBytes(nil)}})
		r.Task, r.Program, r.Part, r.Parts = "pin", "test", part+1, n
		for _, i := range files {
			at := 0
			for _, f := range m.Files[:i] {
				at += len(f.Tensors)
			}
			r.Add(i+1, pin.Files[i], pin.Tensors[at:at+len(m.Files[i].Tensors)])
		}
		records = append(records, r)
	}
	return records, whole
}

func encode(t testing.TB, r *Record) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// joined is what records come to.
func joined(records []*Record) (*manifest.Pin, error) {
	j := NewJoin(records[0])
	for _, r := range records {
		if err := j.Add(r); err != nil {
			return nil, err
		}
	}
	return j.Pin()
}

// TestRecordsComeToThePin writes, reads and joins records of any number of parts.
func TestRecordsComeToThePin(t *testing.T) {
	for n := 1; n <= 6; n++ {
		records, want := testRecords(t, n)
		for i, r := range records {
			text := encode(t, r)
			read, err := Decode(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if again := encode(t, read); !bytes.Equal(again, text) {
				t.Errorf("part %d of %d is written in another way once it was read", i+1, n)
			}
			records[i] = read
		}
		got, err := joined(records)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d parts come to\n%+v, want\n%+v", n, got, want)
		}
	}
}

// TestRecordThatWasChanged flips each byte of a record: none is read as one.
func TestRecordThatWasChanged(t *testing.T) {
	records, _ := testRecords(t, 3)
	text := encode(t, records[1])
	for i := range text {
		changed := bytes.Clone(text)
		changed[i] ^= 1
		if _, err := Decode(bytes.NewReader(changed)); err == nil {
			t.Fatalf("byte %d of %d, %q as %q: nothing was found", i, len(text), text[i:i+1], changed[i:i+1])
		}
	}
	for _, n := range []int{0, 1, len(text) / 2, len(text) - 1} {
		if _, err := Decode(bytes.NewReader(text[:n])); err == nil {
			t.Errorf("a record cut at byte %d is read", n)
		}
	}
	if _, err := Decode(bytes.NewReader(append(text, '\n'))); err == nil {
		t.Error("a record with text behind its end is read")
	}
}

// TestRecordsThatDoNotBelongTogether changes one record in ways that its digest does not
// show, since it is sealed again.
func TestRecordsThatDoNotBelongTogether(t *testing.T) {
	for want, change := range map[string]func(r *Record){
		"the plan is":                  func(r *Record) { r.Facts[0].Digest = manifest.DigestBytes([]byte{1}) },
		"it has no plan":               func(r *Record) { r.Facts = nil },
		"it has a tree":                func(r *Record) { r.Facts = append(r.Facts, Fact{"tree", manifest.DigestBytes(nil)}) },
		"want a plan":                  func(r *Record) { r.Facts = []Fact{{"tree", manifest.DigestBytes(nil)}} },
		"it is of prune":               func(r *Record) { r.Task = "prune" },
		"version other of the program": func(r *Record) { r.Program = "other" },
		"it is one of 4 parts":         func(r *Record) { r.Parts = 4 },
		"bytes in 4 files, want":       func(r *Record) { r.Artifact.FileBytes++ },
		"it declares other facts":      func(r *Record) { r.Declared.License = new(string) },
		"it has other metadata":        func(r *Record) { r.Metadata = r.Metadata[1:] },
		"comes twice":                  func(r *Record) { r.Part = 1 },
		"both have file 1":             func(r *Record) { r.Files[0].Number = 1 },
		"no part has file":             func(r *Record) { r.Files, r.Tensors = nil, nil },
	} {
		records, _ := testRecords(t, 3)
		change(records[1])
		read, err := Decode(bytes.NewReader(encode(t, records[1])))
		if err == nil {
			records[1] = read
			_, err = joined(records)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// TestRecordThatContradictsItself refuses to write and to read it.
func TestRecordThatContradictsItself(t *testing.T) {
	for want, change := range map[string]func(r *Record){
		"schema is":               func(r *Record) { r.Schema = "ggufreap/record/v2" },
		"part 0 of 3":             func(r *Record) { r.Part = 0 },
		"part 4 of 3":             func(r *Record) { r.Part = 4 },
		"0 files":                 func(r *Record) { r.Artifact.Shards = 0 },
		"70000 files":             func(r *Record) { r.Artifact.Shards = 70000 },
		"leaves the folder":       func(r *Record) { r.Files[0].Name = "../x" },
		"names a folder":          func(r *Record) { r.Files[0].Name = "x/y" },
		"is absolute":             func(r *Record) { r.Files[0].Name = "/etc/passwd" },
		"marks releases":          func(r *Record) { r.Files[0].Name = "MANIFEST.sha256" },
		"PART-1-of-2.json":        func(r *Record) { r.Documents = []Document{{Name: "PART-1-of-2.json"}} },
		"has -1 bytes":            func(r *Record) { r.Files[0].Size = -1 },
		"is number 9 of 4":        func(r *Record) { r.Files[0].Number = 9 },
		"is number 0 of 4":        func(r *Record) { r.Files[0].Number = 0 },
		"tensors, there are":      func(r *Record) { r.Files[len(r.Files)-1].Tensors-- },
		"tensors, 1 are left":     func(r *Record) { r.Tensors = r.Tensors[:1]; r.Files = r.Files[:1]; r.Files[0].Tensors = 2 },
		"behind number":           func(r *Record) { r.Files = append(r.Files, r.Files[0]) },
		"file name \"a\\\\b\" na": func(r *Record) { r.Files[0].Name = `a\b` },
	} {
		records, _ := testRecords(t, 3)
		change(records[0])
		if err := records[0].Encode(&bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// TestRecordsOfMuchText stops at more than any pin can hold.
func TestRecordsOfMuchText(t *testing.T) {
	records, _ := testRecords(t, 3)
	j := NewJoin(records[0])
	if err := j.Add(records[0]); err != nil {
		t.Fatal(err)
	}
	records[1].Tensors[0].IDs = &manifest.IDs{Table: make([]byte, maxRecordBytes)}
	if err := j.Add(records[1]); err == nil || !strings.Contains(err.Error(), "which no pin can have") {
		t.Errorf("got %v", err)
	}
}

// FuzzDecode wants what is read to be written the same.
func FuzzDecode(f *testing.F) {
	records, _ := testRecords(f, 2)
	for _, r := range records {
		f.Add(encode(f, r))
	}
	f.Add([]byte(`{"schema": "ggufreap/record/v1"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Decode(bytes.NewReader(text))
		if err != nil {
			return
		}
		if again := encode(t, r); !bytes.Equal(again, text) {
			t.Errorf("read\n%s\nwrote\n%s", text, again)
		}
	})
}
