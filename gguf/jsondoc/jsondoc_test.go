package jsondoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
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
		`{"b":[{"a":1,"a":2}]}`: `JSON, byte 13: at "/b/0": key "a" stands twice`,
		`{} {}`:                 "JSON, byte 4: more text after the document",
		`{"a":[7`:               `JSON, byte 7: at "/a": unexpected EOF`,
		"":                      "JSON, byte 0: unexpected EOF",
		`{"a":NaN}`:             `JSON, byte 5: at "/a": invalid character 'N' at start of value`,
		"[\"\xff\"]":            `JSON, byte 2: at "/0": invalid UTF-8`,
		`["\ud800"]`:            `at "/0": invalid surrogate pair`,
		"[0,0,0,0]":             "more than 4 values",
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

func TestWrite(t *testing.T) {
	type part struct {
		None TextOrNull `json:"none"`
		Text TextOrNull `json:"text"`
	}
	v := struct {
		Text    string          `json:"text"`
		Floats  []Floats        `json:"floats"`
		Numbers []int           `json:"numbers"`
		Missing Floats          `json:"missing,omitzero"`
		List    []part          `json:"list"`
		Empty   []part          `json:"empty"`
		Layers  Numbered[[]int] `json:"layers"`
		Rows    [][]int         `json:"rows"`
	}{
		"a<b\n\"[1,2]{\\", []Floats{{0.1, 1e300, -0.5, 3, 1e-7, 1e20}}, []int{1, 2}, nil, []part{{Text: "x"}}, nil, Numbered[[]int]{10: {}, 9: {-1, 2}}, [][]int{{1}, {}},
	}
	const want = `{
  "text": "a<b\n\"[1,2]{\\",
  "floats": [
    [0.1, 1e+300, -0.5, 3, 1e-07, 1e+20]
  ],
  "numbers": [
    1,
    2
  ],
  "list": [
    {
      "none": null,
      "text": "x"
    }
  ],
  "empty": [],
  "layers": {
    "9": [-1, 2],
    "10": []
  },
  "rows": [
    [1],
    []
  ]
}
`
	var got strings.Builder
	if err := Write(&got, v); err != nil || got.String() != want {
		t.Errorf("error %v, got\n%s", err, got.String())
	}
}

// What JSON cannot hold is an error that says where it stands.
func TestWriteRefuses(t *testing.T) {
	for want, v := range map[string]any{
		`at "/a/1": invalid UTF-8`:                 map[string][]string{"a": {"x", "\xff"}},
		`at "/7": entry 1: JSON has no number NaN`: Numbered[Floats]{7: {1, math.NaN()}},
	} {
		if err := Write(io.Discard, v); err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if err := Write(failing{}, "x"); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("error %v", err)
	}
}

// A failing writer takes nothing.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

// FuzzLayout wants a layout to be that of encoding/json, but for lists of numbers.
func FuzzLayout(f *testing.F) {
	f.Add([]byte(`{"a":["x",true,null,{"b":{},"c":[[],["1,]"]]},{"\\\"":"\\"}],"n":7}`))
	f.Add([]byte(`[-1,2]`))
	f.Add([]byte(`[[[0,"x",[1,{"a":[]}]],0],0]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		text := jsontext.Value(data)
		if text.Compact() != nil {
			return
		}
		var got, again, want bytes.Buffer
		if _, err := (&layout{w: &got}).Write(text); err != nil {
			t.Fatal(err)
		}
		bytewise := &layout{w: &again}
		for _, c := range text {
			bytewise.Write([]byte{c})
		}
		if got.String() != again.String() {
			t.Errorf("%s is laid out as\n%s\nand a byte at a time as\n%s", text, got.Bytes(), again.Bytes())
		}
		json.Indent(&want, text, "", "  ")
		if back := jsontext.Value(bytes.Clone(got.Bytes())); back.Compact() != nil || string(back) != string(text) {
			t.Errorf("%s is laid out as\n%s", text, got.Bytes())
		} else if !rows.Match(text) && got.String() != want.String() {
			t.Errorf("%s is laid out as\n%s\nwant\n%s", text, got.Bytes(), want.Bytes())
		}
	})
}

// rows are lists that stand on one line.
var rows = regexp.MustCompile(`\[[-0-9]`)

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
