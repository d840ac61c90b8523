package picture

import (
	"bytes"
	"crypto/sha256"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"ggufreap/reap"
)

// large is a choice of the size of Kimi-K3: 92 layers with 896 experts.
func large(layers, count, keep int) *Choice {
	r := rand.New(rand.NewPCG(1, 2))
	c := &Choice{Experts: &reap.Experts{Count: count, Used: 8, Groups: 1, GroupsUsed: 1}, Scores: &reap.Scores{Layers: map[int][]float64{}, Counts: map[int][]float64{}}, Keep: keep}
	for block := 1; block <= layers; block++ {
		scores, counts := make([]float64, count), make([]float64, count)
		for i := range scores {
			counts[i] = float64(r.IntN(400) * r.IntN(8))
			scores[i] = counts[i] * (1 + r.Float64()) * float64(block)
		}
		c.Scores.Layers[block], c.Scores.Counts[block] = scores, counts
		c.Experts.Layers = append(c.Experts.Layers, &reap.Layer{Block: block})
	}
	return c
}

// all are all pictures of a choice.
func all(t testing.TB, c *Choice) []*Picture {
	plan, err := reap.Choose(c.Experts, c.Scores, c.Keep, reap.ChooseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := reap.Choose(c.Experts, reap.RandomScores(c.Experts, 7), c.Keep, reap.ChooseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	compared, err := reap.Compare(c.Experts, c.Scores, plan, other)
	if err != nil {
		t.Fatal(err)
	}
	hostile := "<script>alert(1)</script>\u202e\x01&"
	return []*Picture{
		HeatMap(c), KeptMap(plan, c.Scores), KeptMap(plan, nil), Shares(c), Evenness(c), Agreement(compared, hostile),
		Ties(reap.Explain(c.Experts, c.Scores, c.Keep, nil)),
		Bytes([]Part{{"routed experts", 3e11, 2e11}, {hostile, 5e9, 5e9}}), Kinds([]Share{{"routed experts", 3e11}, {"the rest", 5e9}}),
		Shards([]Share{{hostile, 1 << 34}, {"b", 1 << 33}}), Halves([]Half{{"code", 0.8, 0.9}, {hostile, 0.5, 0.7}}, 0.63),
	}
}

// TestPicturesAreSound wants well-formed SVG and PNG of every picture, a table, inert names,
// and at most 2 MB.
func TestPicturesAreSound(t *testing.T) {
	dir := os.Getenv("GGUFREAP_PICTURES") // to look at them
	for _, p := range all(t, large(92, 896, 568)) {
		svg, err := p.SVG()
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, p.Name, svg)
		fragment, err := p.Fragment()
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, p.Name, []byte(fragment))
		cells := strings.Index(fragment, "base64,")
		words := fragment
		if cells > 0 { // an image may hold any letters
			words = fragment[:cells] + fragment[cells+strings.Index(fragment[cells:], "\""):]
		}
		for _, bad := range []string{"<script", "\u202e", "\x01", "NaN", "Inf"} {
			if strings.Contains(words, bad) {
				t.Errorf("%s holds %q", p.Name, bad)
			}
		}
		for _, color := range []string{"#222226", "#FFFFFF"} {
			if strings.Contains(fragment, color) {
				t.Errorf("%s has a color of its own, %s", p.Name, color)
			}
		}
		picture, err := p.PNG()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := png.Decode(bytes.NewReader(picture)); err != nil {
			t.Error(err)
		}
		if len(svg) > 2_000_000 || len(picture) > 2_000_000 {
			t.Errorf("%s: SVG of %d bytes, PNG of %d", p.Name, len(svg), len(picture))
		}
		for _, row := range p.Rows {
			if len(row) != len(p.Columns) {
				t.Errorf("%s: row %q for columns %q", p.Name, row, p.Columns)
			}
		}
		if len(p.Rows) == 0 || p.Title == "" || p.About == "" {
			t.Errorf("%s has no table, title or words", p.Name)
		}
		if dir != "" {
			os.WriteFile(dir+"/"+p.Name+".png", picture, 0o644)
			os.WriteFile(dir+"/"+p.Name+".svg", svg, 0o644)
		}
	}
}

func wellFormed(t *testing.T, name string, text []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// TestSameBytes draws everything twice.
func TestSameBytes(t *testing.T) {
	a, b := all(t, large(6, 64, 40)), all(t, large(6, 64, 40))
	for i := range a {
		x, _ := a[i].SVG()
		y, _ := b[i].SVG()
		p, _ := a[i].PNG()
		q, _ := b[i].PNG()
		if !bytes.Equal(x, y) || !bytes.Equal(p, q) {
			t.Errorf("%s differs from one drawing to the next", a[i].Name)
		}
	}
}

// BenchmarkHeatMap draws 92 by 896 cells as SVG and as PNG.
func BenchmarkHeatMap(b *testing.B) {
	c := large(92, 896, 568)
	for b.Loop() {
		p := HeatMap(c)
		svg, _ := p.SVG()
		picture, _ := p.PNG()
		b.ReportMetric(float64(len(svg)), "SVG-bytes")
		b.ReportMetric(float64(len(picture)), "PNG-bytes")
	}
}

// TestSumsEverywhere holds the pictures against sums that other processors must come to as
// well. GGUFREAP_UPDATE=1 writes them.
func TestSumsEverywhere(t *testing.T) {
	var b strings.Builder
	for i, p := range all(t, large(5, 896, 568)) {
		svg, err := p.SVG()
		if err != nil {
			t.Fatal(err)
		}
		picture, err := p.PNG()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%x  %d-%s.svg\n%x  %d-%s.png\n", sha256.Sum256(svg), i, p.Name, sha256.Sum256(picture), i, p.Name)
	}
	const file = "testdata/pictures.sha256"
	if os.Getenv("GGUFREAP_UPDATE") != "" {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != b.String() {
		t.Errorf("pictures changed (%v):\n%s", err, b.String())
	}
}

// TestSharesAgreeWithExplain finds the share at the cut a second way.
func TestSharesAgreeWithExplain(t *testing.T) {
	for _, groups := range []int{1, 4} {
		c := large(5, 64, 40)
		c.Experts.Groups, c.Experts.GroupsUsed = groups, max(1, groups/2)
		x := reap.Explain(c.Experts, c.Scores, c.Keep, nil)
		p := Shares(c)
		for _, row := range p.Rows {
			if row[0] == "40" && (row[1] != percent(x.Mass) || row[2] != percent(x.Worst.Mass)) {
				t.Errorf("%d groups: %q, explain says %s and %s", groups, row, percent(x.Mass), percent(x.Worst.Mass))
			}
		}
		plan, err := reap.Choose(c.Experts, c.Scores, c.Keep, reap.ChooseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		byList := *c
		byList.Kept = plan.Layers
		for _, block := range plan.Blocks() {
			for _, order := range [][]int{c.order(block), byList.order(block)} {
				left := slices.Sorted(slices.Values(order[:c.Keep]))
				if !slices.Equal(left, plan.Layers[block]) {
					t.Errorf("%d groups, layer %d: left of the cut are %v, the plan keeps %v", groups, block, left, plan.Layers[block])
				}
				for i := 1; i < len(order); i++ {
					if i != c.Keep && c.Scores.Layers[block][order[i]] > c.Scores.Layers[block][order[i-1]] {
						t.Errorf("layer %d: rank %d is better than the one before it", block, i)
					}
				}
			}
		}
	}
}

func TestGini(t *testing.T) {
	for _, c := range []struct {
		list []float64
		want float64
	}{{[]float64{3, 3, 3, 3}, 0}, {[]float64{0, 0, 0, 8}, 0.75}, {[]float64{1, 2, 3, 4}, 0.25}, {nil, math.NaN()}, {[]float64{0, 0}, math.NaN()}} {
		if got := gini(c.list); math.Abs(got-c.want) > 1e-15 || (got != got) != (c.want != c.want) {
			t.Errorf("gini of %v is %v, want %v", c.list, got, c.want)
		}
	}
}
