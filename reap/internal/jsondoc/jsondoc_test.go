package jsondoc

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	n, err := Parse([]byte(`{"a":[1,-2.5e3,"x\n",true,null],"A":{}}`), 100)
	if err != nil {
		t.Fatal(err)
	}
	var items []*Node
	for i, item := range n.Get("a").Items() {
		if i != len(items) {
			t.Errorf("item %d has the place %d", len(items), i)
		}
		items = append(items, item)
	}
	if i, ok := items[0].Int(); i != 1 || !ok {
		t.Errorf("first item %d, %v", i, ok)
	}
	if x, ok := items[1].Float(); x != -2500 || !ok {
		t.Errorf("second item %v, %v", x, ok)
	}
	if _, ok := items[1].Int(); ok {
		t.Error("a number with an exponent passes for a whole one")
	}
	var described []string
	for _, item := range append(items, n.Get("A"), n.Get("a"), n.Get("b")) {
		described = append(described, item.Describe())
	}
	if want := []string{"1", "-2.5e3", `"x\n"`, "true", "null", "an object", "a list", "nothing"}; !reflect.DeepEqual(described, want) {
		t.Errorf("described as %q, want %q", described, want)
	}
	if _, ok := (&Node{'0', []byte("1e999")}).Float(); ok {
		t.Error("a number beyond float64 passes")
	}
}

func TestParseRefuses(t *testing.T) {
	if _, err := Parse([]byte(strings.Repeat("[", 20)), 100); err == nil || !strings.Contains(err.Error(), "nested deeper than 16") {
		t.Errorf("deep nesting: error %v", err)
	}
	for text, want := range map[string]string{
		`{"a":1,"a":2}`: `key "a" stands twice`,
		`{} {}`:         "more text after the document",
		`{"a":`:         "unexpected EOF",
		"":              "unexpected EOF",
		`{"a":NaN}`:     "invalid character 'N'",
		"\xff":          "not UTF-8",
		"[0,0,0,0]":     "more than 4 values",
	} {
		if _, err := Parse([]byte(text), 4); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: error %v, want %q", text, err, want)
		}
	}
}

// An object holds the keys of every expert of Kimi-K3, and not without end.
func TestParseBoundsKeys(t *testing.T) {
	object := func(keys int) []byte {
		var b bytes.Buffer
		for i := range keys {
			b.WriteString(",\"" + strconv.Itoa(i) + "\":0")
		}
		return append([]byte("{"), append(b.Bytes()[1:], '}')...)
	}
	for _, keys := range []int{93 * 896, maxKeys} {
		if _, err := Parse(object(keys), 1<<20); err != nil {
			t.Errorf("%d keys: %v", keys, err)
		}
	}
	if _, err := Parse(object(maxKeys+1), 1<<20); err == nil || !strings.Contains(err.Error(), "more than 131072 keys") {
		t.Errorf("got %v", err)
	}
}

func TestWriter(t *testing.T) {
	w := &Writer{}
	w.Open("{")
	w.Text("text", "a<b\n\"")
	w.TextOrNull("nothing", "")
	w.Int("int", -3)
	w.Ints("ints", []int{1, 2})
	w.Floats("floats", []float64{0.1, 1e300, -0.5, 3})
	w.Key("list").Open("[")
	w.Item().Open("{")
	w.Close("}")
	w.Close("]")
	w.Close("}")
	got, err := w.Document()
	want := `{
  "text": "a<b\n\"",
  "nothing": null,
  "int": -3,
  "ints": [1, 2],
  "floats": [0.1, 1e+300, -0.5, 3],
  "list": [
    {}
  ]
}
`
	if err != nil || string(got) != want || !json.Valid(got) {
		t.Errorf("error %v, got\n%s", err, got)
	}
	for _, spoil := range []func(w *Writer){
		func(w *Writer) { w.Text("k", "\xff") },
		func(w *Writer) { w.Floats("k", []float64{math.NaN()}) },
	} {
		w := &Writer{}
		w.Open("{")
		spoil(w)
		w.Close("}")
		if _, err := w.Document(); err == nil {
			t.Error("no error for what JSON cannot hold")
		}
	}
}

// TestMemory wants many small values, of each kind, to take no memory beyond their text.
func TestMemory(t *testing.T) {
	const size = 1 << 18
	for _, value := range []string{"0", "-1", `""`, "{}", "[]", "null", "[[[[]]]]", `{"":{}}`} {
		data := []byte("[" + strings.Repeat(value+",", size/(len(value)+1)) + "0]")
		before := held()
		n, err := Parse(data, size)
		if err != nil {
			t.Fatal(err)
		}
		if more := int64(held()) - int64(before); more > 64<<10 {
			t.Errorf("%s: a document of %d bytes takes %d more", value, len(data), more)
		}
		count := 0
		for range n.Items() {
			count++
		}
		if want := size/(len(value)+1) + 1; count != want {
			t.Errorf("%d values, want %d", count, want)
		}
	}
}

// held returns the bytes of memory in use.
func held() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What parses is JSON to encoding/json too, and says the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"a":[1,-2.5e3,"x",true,null],"A":{}}`))
	f.Add([]byte(" { \"\\u0061\\\"}\" :\t[\n{ } , [ ] ,\"]\\\\\",false ]\r}\n"))
	f.Add([]byte(`[[[[[[]]]]]]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := Parse(data, 1<<16)
		if err != nil {
			return
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		var want any
		if err := d.Decode(&want); err != nil {
			t.Fatalf("%q is not JSON: %v", data, err)
		}
		if got := decoded(n); !reflect.DeepEqual(got, want) {
			t.Errorf("%q reads as %#v, want %#v", data, got, want)
		}
	})
}

// decoded returns a value as encoding/json would.
func decoded(n *Node) any {
	switch n.Kind {
	case '{':
		object := map[string]any{}
		for m := range n.Members() {
			object[m.Key] = decoded(m.Value)
		}
		return object
	case '[':
		list := []any{}
		for _, item := range n.Items() {
			list = append(list, decoded(item))
		}
		return list
	case '"':
		return n.Text()
	case '0':
		return json.Number(n.Text())
	case 't':
		return n.Text() == "true"
	}
	return nil
}
