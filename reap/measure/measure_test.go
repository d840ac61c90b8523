package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap"
	"ggufreap/reap/tally"
)

func experts(t testing.TB) *reap.Experts {
	t.Helper()
	model, err := gguftest.K3(gguftest.K3Options{Experts: 8, Used: 2}).Model(gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := reap.ReadExperts(model)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// letters makes a token of each byte, and a text of each conversation.
type letters struct{}

func (letters) Tokenize(_ context.Context, text []byte, special bool) ([]int, error) {
	var tokens []int
	for _, b := range text {
		if b == '<' && special {
			tokens = append(tokens, 999)
			continue
		}
		tokens = append(tokens, int(b))
	}
	return tokens, nil
}

func (letters) Apply(_ context.Context, _ string, messages []Message) ([]byte, error) {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "<%s:%s", m.Role, m.Content)
	}
	return []byte(b.String()), nil
}

// meter makes up what experts do from the tokens alone. It fails at the n-th call, if n > 0.
type meter struct {
	e     *reap.Experts
	fail  int
	calls int
	seen  [][]int
}

var errMeter = errors.New("the meter fails")

func (m *meter) Measure(_ context.Context, sequences [][]int) (*tally.Tally, error) {
	if m.calls++; m.calls == m.fail {
		return nil, errMeter
	}
	sums := tally.New(Blocks(m.e), m.e.Count)
	for _, tokens := range sequences {
		m.seen = append(m.seen, tokens)
		sums.Tokens += uint64(len(tokens))
		for i, id := range tokens {
			for _, block := range sums.Blocks() {
				rng := rand.New(rand.NewPCG(uint64(id), uint64(block)))
				for _, expert := range rng.Perm(m.e.Count)[:m.e.Used] {
					sums.Layers[block][expert].Add(rng.Float32(), rng.Float64()*float64(i+1), rng.Float64())
				}
			}
		}
	}
	return sums, nil
}

func text(label string, weight float64, documents ...string) *Text {
	t := &Text{Label: label, File: label + ".txt", Weight: weight}
	for _, d := range documents {
		t.Documents = append(t.Documents, Document{Text: d})
	}
	return t
}

func long(seed uint64, n int) string {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + rng.IntN(26))
	}
	return string(b)
}

func cut(t testing.TB, rules Rules, texts ...*Text) []*Kind {
	t.Helper()
	kinds, err := Cut(t.Context(), letters{}, rules, texts)
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

func TestParseSource(t *testing.T) {
	for s, want := range map[string]string{
		"a.txt":             "all a.txt 1",
		"code=a.txt":        "code a.txt 1",
		"code=a.txt:0.5":    "code a.txt 0.5",
		"code=C:/x.txt":     "code C:/x.txt 1",
		"dir/x=y.txt":       "all dir/x=y.txt 1",
		"code=a.txt:2:0.25": "code a.txt:2 0.25",
		"größe=a=b.txt":     "größe a=b.txt 1",
	} {
		label, file, weight, err := ParseSource(s)
		if got := fmt.Sprint(label, " ", file, " ", weight); got != want || err != nil {
			t.Errorf("%q: %q (%v), want %q", s, got, err, want)
		}
	}
	for _, s := range []string{"code=a.txt:0", "code=a.txt:-1", "code=a.txt:NaN", "code=a.txt:Inf"} {
		if _, _, _, err := ParseSource(s); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

func TestReadText(t *testing.T) {
	lines := "{\"text\": \"abc\"}\n\n{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}\n{\"tokens\": [1, 2], \"text\": \"x\"}"
	got, err := ReadText("l", "dir/x.jsonl", 1, []byte(lines))
	want := []Document{{Text: "abc"}, {Messages: []Message{{"user", "hi"}}}, {Tokens: []int{1, 2}}}
	if err != nil || !reflect.DeepEqual(got.Documents, want) || got.File != "x.jsonl" || len(got.SHA256) != 64 {
		t.Errorf("read %+v (%v)", got, err)
	}
	for name, c := range map[string]struct{ file, data, want string }{
		"not UTF-8":          {"a.txt", "ab\xffc", "byte 2 is not UTF-8"},
		"not UTF-8 in lines": {"a.jsonl", "{}\n{\"text\": \"\xff\"}", "line 1"},
		"no JSON":            {"a.jsonl", "{\"text\": \"a\"}\nplain", "line 2"},
		"another object":     {"a.jsonl", "{\"prompt\": \"a\"}", `want an object with "text"`},
		"a wrong type":       {"a.ndjson", "{\"text\": 7}", "line 1"},
	} {
		if _, err := ReadText("l", c.file, 1, []byte(c.data)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

func TestCut(t *testing.T) {
	sizes := func(k *Kind) (list []int) {
		for _, c := range k.Chunks {
			list = append(list, len(c))
		}
		return list
	}
	for name, c := range map[string]struct {
		rules Rules
		text  *Text
		want  []int
		left  int
	}{
		"whole chunks":              {Rules{Context: 4, BOS: -1}, text("a", 1, "abcdefgh"), []int{4, 4}, 0},
		"a tail":                    {Rules{Context: 4, BOS: -1}, text("a", 1, "abcdefghij"), []int{4, 4, 2}, 0},
		"a tail of one token":       {Rules{Context: 4, BOS: -1}, text("a", 1, "abcdefghi"), []int{4, 4}, 1},
		"a tail left out":           {Rules{Context: 4, BOS: -1, DropTail: true}, text("a", 1, "abcdefghij"), []int{4, 4}, 2},
		"BOS in each":               {Rules{Context: 4, BOS: 7}, text("a", 1, "abcdefg"), []int{4, 4, 2}, 0},
		"documents do not go on":    {Rules{Context: 4, BOS: -1}, text("a", 1, "abc", "de", "f"), []int{3, 2}, 1},
		"BOS that is there already": {Rules{Context: 8, BOS: 'a'}, text("a", 1, "abc"), []int{3}, 0},
	} {
		k := cut(t, c.rules, c.text)[0]
		if got := sizes(k); !slices.Equal(got, c.want) || k.Left != c.left {
			t.Errorf("%s: chunks of %v, %d left out, want %v and %d", name, got, k.Left, c.want, c.left)
		}
		if c.rules.BOS >= 0 && slices.ContainsFunc(k.Chunks, func(chunk []int) bool { return chunk[0] != c.rules.BOS }) {
			t.Errorf("%s: a chunk begins without BOS", name)
		}
	}
	for name, c := range map[string]struct {
		texts []*Text
		want  string
	}{
		"no token":      {[]*Text{text("a", 1)}, "a.txt: nothing to measure on: 0 tokens"},
		"one token":     {[]*Text{text("a", 1, "x")}, "nothing to measure on: 1 token,"},
		"other weights": {[]*Text{text("a", 1, "xyz"), text("a", 2, "xyz")}, "has 1 already"},
	} {
		if _, err := Cut(t.Context(), letters{}, Rules{Context: 4, BOS: -1}, c.texts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	k := cut(t, Rules{Context: 99, BOS: -1}, &Text{Label: "a", Weight: 1, Documents: []Document{{Messages: []Message{{"u", "x"}}}}})[0]
	if !slices.Equal(k.Chunks[0], []int{999, 'u', ':', 'x'}) {
		t.Errorf("a conversation is cut into %v", k.Chunks)
	}
}

func finish(t testing.TB, r *Run, m Meter) []byte {
	t.Helper()
	for !r.Done() {
		if err := r.Step(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	got, err := r.Measurements()
	if err != nil {
		t.Fatal(err)
	}
	got.Source.Architecture = "x"
	data, err := got.Encode(r.experts)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func kindsOfTwo(t testing.TB) []*Kind {
	return cut(t, Rules{Context: 16, BOS: -1}, text("a", 1, long(1, 200), long(2, 41)), text("b", 0.5, long(3, 130)))
}

// However many chunks are measured side by side, each is measured once and the result is the
// same.
func TestRunMeasuresEachChunkOnce(t *testing.T) {
	e := experts(t)
	var want []byte
	for _, sideBySide := range []int{1, 2, 3, 7, 100} {
		m := &meter{e: e}
		r := NewRun(e, kindsOfTwo(t), sideBySide)
		got := finish(t, r, m)
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%d side by side: another result", sideBySide)
		}
		var chunks [][]int
		for _, k := range r.Kinds {
			chunks = append(chunks, k.Chunks...)
		}
		slices.SortFunc(m.seen, slices.Compare)
		slices.SortFunc(chunks, slices.Compare)
		if !slices.EqualFunc(m.seen, chunks, slices.Equal) {
			t.Errorf("%d side by side: other chunks than there are", sideBySide)
		}
		if done, all := r.Tokens(); done != all || all != 371 {
			t.Errorf("%d of %d tokens", done, all)
		}
	}
}

// A run that fails anywhere, and goes on from its checkpoint, gives the bits of one that did
// not fail.
func TestResume(t *testing.T) {
	e := experts(t)
	basis := map[string]string{"model": "m", "texts": "t"}
	want := finish(t, NewRun(e, kindsOfTwo(t), 2), &meter{e: e})
	whole := NewRun(e, kindsOfTwo(t), 2)
	for at := 1; at <= len(whole.groups); at++ {
		first := NewRun(e, kindsOfTwo(t), 2)
		m := &meter{e: e, fail: at}
		var err error
		for err == nil {
			err = first.Step(t.Context(), m)
		}
		saved, err := first.Checkpoint(basis)
		if err != nil {
			t.Fatal(err)
		}
		second := NewRun(e, kindsOfTwo(t), 2)
		if err := second.Resume(saved, basis); err != nil {
			t.Fatal(err)
		}
		if second.next != at-1 {
			t.Errorf("goes on at group %d, want %d", second.next, at-1)
		}
		if got := finish(t, second, &meter{e: e}); !bytes.Equal(got, want) {
			t.Errorf("interrupted at group %d: another result", at)
		}
	}
}

func TestResumeRefuses(t *testing.T) {
	e := experts(t)
	basis := map[string]string{"model": "m", "engine": "x"}
	r := NewRun(e, kindsOfTwo(t), 2)
	if err := r.Step(t.Context(), &meter{e: e}); err != nil {
		t.Fatal(err)
	}
	saved, err := r.Checkpoint(basis)
	if err != nil {
		t.Fatal(err)
	}
	fresh := func() *Run { return NewRun(e, kindsOfTwo(t), 2) }
	if err := fresh().Resume(saved, map[string]string{"model": "n", "engine": "x"}); !errors.Is(err, ErrOtherRun) || !strings.Contains(err.Error(), `model was "m", is "n"`) {
		t.Errorf("another model: %v", err)
	}
	if err := NewRun(e, kindsOfTwo(t), 1).Resume(saved, basis); !errors.Is(err, ErrOtherRun) {
		t.Errorf("other groups: %v", err)
	}
	for n := range saved {
		if n%7 == 0 && fresh().Resume(saved[:n], basis) == nil {
			t.Errorf("%d of %d bytes are taken", n, len(saved))
		}
	}
	for i := 0; i < len(saved); i += 11 {
		changed := bytes.Clone(saved)
		changed[i] ^= 4
		if fresh().Resume(changed, basis) == nil {
			t.Errorf("byte %d changed is taken", i)
		}
	}
}

func TestStability(t *testing.T) {
	e := experts(t)
	r := NewRun(e, cut(t, Rules{Context: 64, BOS: -1}, text("a", 1, long(5, 64*80))), 1)
	m := &meter{e: e}
	if _, known, err := r.Stability(4); known || err != nil {
		t.Errorf("before anything was measured: %v, %v", known, err)
	}
	for !r.Done() {
		if err := r.Step(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	s, known, err := r.Stability(4)
	if err != nil || !known || s.Chance != 0.5 || s.Overlap < 0.8 || s.Retention < 0.9 || s.Retention > 1 {
		t.Errorf("stability %+v (%v, %v)", s, known, err)
	}
}

func TestMeterThatLeavesOut(t *testing.T) {
	e := experts(t)
	r := NewRun(e, kindsOfTwo(t), 1)
	if err := r.Step(t.Context(), short{&meter{e: e}}); err == nil || !strings.Contains(err.Error(), "want") {
		t.Errorf("error %v", err)
	}
	if r.next != 0 {
		t.Error("the group counts as measured")
	}
}

// short leaves out a pair.
type short struct{ *meter }

func (s short) Measure(ctx context.Context, sequences [][]int) (*tally.Tally, error) {
	sums, err := s.meter.Measure(ctx, sequences)
	sums.Layers[1][0].Tokens++
	return sums, err
}
