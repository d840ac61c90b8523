package card

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ggufreap/manifest"
)

// TestSplit wants all bytes on some machine, layers in order, and no machine with more than in
// the best of all ways to cut.
func TestSplit(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		layers, nodes := 1+r.IntN(7), 1+r.IntN(4)
		pin := &manifest.Pin{Tensors: []manifest.Tensor{{Name: "output.weight", Size: int64(r.IntN(40))}}}
		sizes := []int64{}
		for i := range layers {
			n := int64(1 + r.IntN(100))
			sizes = append(sizes, n)
			pin.Tensors = append(pin.Tensors, manifest.Tensor{Name: fmt.Sprintf("blk.%d.x.weight", i), Size: n - 1}, manifest.Tensor{Name: fmt.Sprintf("blk.%d.y", i), Size: 1})
		}
		rest := pin.Tensors[0].Size
		var most, sum, all int64
		at := 0
		for i, n := range Split(pin, nodes) {
			if n.From != at || n.To < n.From {
				t.Fatalf("machine %d has layers %d to %d, the one before ended at %d", i, n.From, n.To, at)
			}
			at = n.To
			most, sum = max(most, n.Bytes), sum+n.Bytes
		}
		for _, n := range sizes {
			all += n
		}
		if at != layers || sum != all+rest {
			t.Fatalf("%d of %d layers, %d of %d bytes", at, layers, sum, all+rest)
		}
		if best := bestCut(sizes, nodes, rest); most != best {
			t.Fatalf("%v with %d beside on %d machines: %d, the best is %d", sizes, rest, nodes, most, best)
		}
	}
}

// bestCut tries every way.
func bestCut(sizes []int64, nodes int, rest int64) int64 {
	var sum int64
	for _, n := range sizes {
		sum += n
	}
	if nodes == 1 {
		return sum + rest
	}
	best := sum + rest
	var first int64
	for i := 0; i <= len(sizes); i++ {
		best = min(best, max(first, bestCut(sizes[i:], nodes-1, rest)))
		if i < len(sizes) {
			first += sizes[i]
		}
	}
	return best
}

// TestRenew wants sections in their places, and everything else as it was.
func TestRenew(t *testing.T) {
	a, b := section{"a", "new a\n"}, section{"b", "new b\n"}
	for name, c := range map[string]struct{ text, want string }{
		"empty":   {"", a.String() + "\n" + b.String()},
		"end":     {"# T\n", "# T\n\n" + a.String() + "\n" + b.String()},
		"places":  {"x\n" + section{"b", "old\n"}.String() + "y\n" + section{"a", "old\nold\n"}.String() + "z", "x\n" + b.String() + "y\n" + a.String() + "z"},
		"between": {section{"a", "old\n"}.String() + "mine\n", a.String() + "\n" + b.String() + "\nmine\n"},
		"CR LF":   {"x\r\n" + strings.ReplaceAll(section{"a", "old\n"}.String(), "\n", "\r\n"), "x\r\n" + a.String() + "\n" + b.String()},
	} {
		got, err := renew(c.text, []section{a, b})
		if err != nil || got != c.want {
			t.Errorf("%s: %v\n%q\nwant\n%q", name, err, got, c.want)
		}
		if again, err := renew(got, []section{a, b}); err != nil || again != got {
			t.Errorf("%s: a second time it is %q (%v)", name, again, err)
		}
	}
	for _, text := range []string{begin("a") + "\n", end("a") + "\n", a.String() + a.String(), begin("a") + "\n" + b.String() + end("a") + "\n", begin("a") + "\n" + end("b") + "\n"} {
		if _, err := renew(text, []section{a}); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// TestFrontMatter wants what people wrote to stay: other fields, comments, more tags.
func TestFrontMatter(t *testing.T) {
	fields := []frontField{{key: "license", values: []string{"mit"}}, {key: "tags", values: []string{"gguf", "moe"}, list: true}, {key: "base_model"}}
	for name, c := range map[string]struct{ text, want string }{
		"empty":    {"", "license: mit\ntags:\n  - gguf\n  - moe\n"},
		"the same": {"tags: [moe,   gguf, mine] # kept\nlicense:   'mit'\n", "tags: [moe,   gguf, mine] # kept\nlicense:   'mit'\n"},
		"others":   {"# mine\nlanguage: de # also\nlicense: gpl\ntags:\n  - mine\n", "# mine\nlanguage: de # also\nlicense: mit\ntags:\n  - mine\n  - gguf\n  - moe\n"},
		"one tag":  {"tags: mine\nlicense: mit\n", "tags:\n  - mine\n  - gguf\n  - moe\nlicense: mit\n"},
	} {
		got, err := renewFront(c.text, fields)
		if err != nil || got != c.want {
			t.Errorf("%s: %v\n%q\nwant\n%q", name, err, got, c.want)
		}
	}
	for _, text := range []string{"a: [", "- a\n", "x\n"} {
		if _, err := renewFront(text, fields); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	for _, hostile := range []string{"a: b\nc", "- x", "#", "yes", "{", "'"} { // values that YAML would read as something else
		matter, err := renewFront("", []frontField{{key: "license", values: []string{hostile}}})
		if err != nil {
			t.Fatal(err)
		}
		if again, err := renewFront(matter, []frontField{{key: "license", values: []string{hostile}}}); err != nil || again != matter {
			t.Errorf("%q is read back as something else from %q (%v)", hostile, matter, err)
		}
	}
}

// TestPlain wants no text to be read as Markdown, HTML or a mark.
func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"<!-- ggufreap:end run -->": "&lt;!-- ggufreap:end run --&gt;", "a|b\nc": `a\|b c`, "[x](y)": `\[x\](y)`, "`x` *y* _z_": "\\`x\\` \\*y\\* \\_z\\_",
	} {
		if got := plain(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"a": "`a`", "a`b": "`` a`b ``", "a|b": "`a\\|b`"} {
		if got := code(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
