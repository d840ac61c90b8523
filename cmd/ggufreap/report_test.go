package main

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/gguf"
	"ggufreap/reap"
	"ggufreap/reap/scorefile"
)

// scriptName is one that would run, or turn the order of letters, where it is not escaped.
const scriptName = "</title><script>alert(1)</script>\u202egnp\x1b[31m\"'&"

// reportFolder makes a model, its pin, a plan, a release and scores in an empty folder.
func reportFolder(t *testing.T) (model string) {
	t.Helper()
	t.Chdir(t.TempDir())
	write(t, smallMoE(), gguf.Split{Shards: 2})
	model = "small-00001-of-00002.gguf"
	succeed(t, "pin", "-o", "source.json", model)
	succeed(t, "plan", "--keep", "4", "--pin", "source.json", "-o", "plan.json", model)
	succeed(t, "plan", "--keep", "4", "--criterion", "seeded-random", "-o", "other.json", model)
	succeed(t, "prune", "--plan", "plan.json", "--source-pin", "source.json", "-o", "cut", model)
	m, err := gguf.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	e, err := reap.ReadExperts(m)
	if err != nil {
		t.Fatal(err)
	}
	measured := &scorefile.Measurements{Source: reap.Source{Architecture: e.Architecture, Name: scriptName}, Tokens: 100, Layers: map[int]*scorefile.Layer{}}
	for i, label := range []string{scriptName, "code"} {
		measured.Sources = append(measured.Sources, scorefile.Source{Label: label, Tokens: 50, Layers: map[int]*scorefile.Layer{}})
		measured.Inputs = append(measured.Inputs, scorefile.Text{Label: label, File: label + ".txt", SHA256: strings.Repeat("0", 64)})
		for _, l := range e.Layers {
			counts, sums := make([]float64, e.Count), make([]float64, e.Count)
			for id := range counts {
				counts[id] = float64((id*(i+3) + l.Block) % 5)
				sums[id] = counts[id] * float64(id+1)
			}
			measured.Sources[i].Layers[l.Block] = &scorefile.Layer{Count: counts, ReapSum: sums}
		}
	}
	for _, l := range e.Layers {
		all := &scorefile.Layer{Count: make([]float64, e.Count), ReapSum: make([]float64, e.Count)}
		for _, s := range measured.Sources {
			for id := range all.Count {
				all.Count[id] += s.Layers[l.Block].Count[id]
				all.ReapSum[id] += s.Layers[l.Block].ReapSum[id]
			}
		}
		measured.Layers[l.Block] = all
	}
	text, err := measured.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	npz, err := measured.EncodeNPZ(e, e.Layers[len(e.Layers)-1].Block+1)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, "scores.json", text)
	writeFile(t, "scores.npz", npz)
	succeed(t, "plan", "--keep", "4", "--from", "scores.npz", "-o", "ofnpz.json", model)
	return model
}

// TestReport draws each kind of subject, twice, and looks for what no page may have.
func TestReport(t *testing.T) {
	model := reportFolder(t)
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"plan":     {[]string{"plan.json"}, []string{"Experts that are kept"}},
		"model":    {[]string{"--model", model, "--compare", "other.json", "plan.json"}, []string{"Scores by layer and rank", "Share of the score", "Agreement with other.json", "Bytes by kind, before and after", "those that the plan was made of"}},
		"measured": {[]string{"--scores", "scores.json", "plan.json"}, []string{"not those that the plan was made of", "<dt>ties</dt>", "Each kind of text"}},
		"scores":   {[]string{"--keep", "4", "scores.json"}, []string{"Scores scores.json", "How uneven experts are", "&lt;/title&gt;&lt;script&gt;"}},
		"npz":      {[]string{"--keep", "4", "scores.npz"}, []string{"Scores scores.npz", "How uneven experts are"}},
		"of npz":   {[]string{"ofnpz.json"}, []string{"Scores by layer and rank", "those that the plan was made of"}},
		"no cut":   {[]string{"scores.json"}, []string{"no cut"}},
		"pin":      {[]string{"source.json"}, []string{"Bytes by kind", "small-00001-of-00002.gguf"}},
		"release":  {[]string{"--source-pin", "source.json", "cut"}, []string{"Release small-REAP4", "Bytes by kind, before and after", "Shards"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := strings.ReplaceAll(name, " ", "-")
			succeed(t, append([]string{"report", "-o", out + ".html", "--png", out}, c.args...)...)
			succeed(t, append([]string{"report", "-o", out + "2.html", "--png", out}, c.args...)...) // the same bytes, or it would refuse
			page, err := os.ReadFile(out + ".html")
			if err != nil {
				t.Fatal(err)
			}
			if again, _ := os.ReadFile(out + "2.html"); !bytes.Equal(page, again) {
				t.Error("the page differs from one run to the next")
			}
			for _, want := range c.want {
				if !bytes.Contains(page, []byte(want)) {
					t.Errorf("no %q", want)
				}
			}
			checkPage(t, string(page))
			checkPictures(t, out, strings.Count(string(page), "<svg"))
		})
	}
}

var loads = regexp.MustCompile(`(?i)<script|<iframe|<link|<object|<embed|\son[a-z]+=|@import|url\(|(src|href)="(https?:|//|file:)`)

// checkPage wants a page that runs and loads nothing, and a table for every picture.
func checkPage(t *testing.T, page string) {
	t.Helper()
	if found := loads.FindString(page); found != "" {
		t.Errorf("the page has %q", found)
	}
	for _, bad := range []string{"\u202e", "\x1b", "NaN", "ZgotmplZ"} {
		if strings.Contains(strings.Join(regexp.MustCompile(`base64,[^"]*`).Split(page, -1), ""), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	pictures, tables := strings.Count(page, "<svg"), strings.Count(page, "<table>")
	if pictures == 0 || tables != pictures {
		t.Errorf("%d pictures, %d tables", pictures, tables)
	}
	if strings.Count(page, "</html>") != 1 || strings.Count(page, "<title>")-strings.Count(page, "<rect")-1 > 0 && pictures == 0 {
		t.Error("the page does not end, or has another page's parts")
	}
}

// checkPictures wants as many PNG and SVG files as the page has pictures.
func checkPictures(t *testing.T, dir string, count int) {
	t.Helper()
	for _, end := range []string{"png", "svg"} {
		paths, err := filepath.Glob(filepath.Join(dir, "*."+end))
		if err != nil || len(paths) != count {
			t.Errorf("%d files %s, want %d (%v)", len(paths), end, count, err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if end == "png" {
				if _, err := png.Decode(bytes.NewReader(data)); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
		}
	}
}

// TestReportRefuses wants a clear error, and nothing written, for what cannot be drawn.
func TestReportRefuses(t *testing.T) {
	model := reportFolder(t)
	if err := os.WriteFile("noise", []byte("noise"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"nothing says where", []string{"plan.json"}},
		{"takes one", []string{"-o", "x.html"}},
		{"takes one", []string{"-o", "x.html", "plan.json", "cut"}},
		{"no such file", []string{"-o", "x.html", "missing.json"}},
		{"neither a plan", []string{"-o", "x.html", "noise"}},
		{"is the source", []string{"-o", "plan.json", "--force", "plan.json"}},
		{"would be taken for a model", []string{"-o", model, "--force", "--model", model, "plan.json"}},
		{"a plan has its own count", []string{"-o", "x.html", "--keep", "3", "--scores", "scores.json", "plan.json"}},
		{"holds a plan against", []string{"-o", "x.html", "--compare", "other.json", "plan.json"}},
		{"exists", []string{"-o", "noise", "plan.json"}},
		{"no such file", []string{"-o", "x.html", "--source-pin", "missing", "cut"}},
	} {
		r := ggufreap(t, append([]string{"report"}, c.args...)...)
		if r.code != exitFailed || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%q: exit %d, %s, want %q", c.args, r.code, r.stderr, c.want)
		}
		if exists("x.html") {
			t.Fatalf("%q left a page", c.args)
		}
	}
}

// TestReportOfStreams reads what comes from standard input, and prints the page.
func TestReportOfStreams(t *testing.T) {
	model := reportFolder(t)
	for name, want := range map[string]string{"plan.json": "Plan standard input", "source.json": "Pin of small", "scores.json": "Scores standard input"} {
		r := ggufreapFrom(t, string(readFile(t, name)), "report", "-o", "-", "-")
		if r.code != exitOK || !strings.HasPrefix(r.stdout, "<!DOCTYPE html>") || !strings.Contains(r.stdout, "<h1>"+want) {
			t.Errorf("%s: exit %d, %s, %.600s", name, r.code, r.stderr, r.stdout)
		}
	}
	for path, want := range map[string]string{model: "<h1>Model small", "cut": "<h1>Release small-REAP4"} {
		if page := succeed(t, "report", "-o", "-", path); !strings.Contains(page, want) {
			t.Errorf("%s: no %q in %.600s", path, want, page)
		}
	}
	if exists("-") {
		t.Error("a file is called -")
	}
}

// TestReportOfTheHub draws a model that is not here, from its headers.
func TestReportOfTheHub(t *testing.T) {
	programtest.OnHub(t, smallMoE(), 2)
	t.Chdir(t.TempDir())
	if page := succeed(t, "report", "-o", "-", "hf://org/K3/IQ1_S"); !strings.Contains(page, "<h1>Model small") || !strings.Contains(page, "Bytes by kind") {
		t.Errorf("the page is %.600s", page)
	}
}

// TestReportFindsScores takes the file that a plan was made of where it lies beside the plan, and
// no other of its name.
func TestReportFindsScores(t *testing.T) {
	model := reportFolder(t)
	succeed(t, "plan", "--keep", "4", "--from", "scores.json", "-o", "measured.json", model)
	if page := succeed(t, "report", "-o", "-", "measured.json"); !strings.Contains(page, "those that the plan was made of") || !strings.Contains(page, "Scores by layer and rank") {
		t.Errorf("the scores beside the plan are not drawn: %.3000s", page)
	}
	writeFile(t, "scores.json", append(readFile(t, "scores.json"), '\n'))
	r := ggufreap(t, "report", "-o", "-", "--model", model, "measured.json")
	if r.code != exitOK || strings.Contains(r.stdout, "Scores by layer and rank") || !strings.Contains(r.stderr, "are in no file that was given") {
		t.Errorf("scores of another sum: exit %d, %s", r.code, r.stderr)
	}
}
