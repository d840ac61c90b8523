package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"ggufreap/reap/llama"
)

// A judge compares models with the full one over held-out text.
type judge struct {
	tool    *tool
	engine  *llama.Engine
	threads int
	windows map[string][][]int     // by domain
	full    map[string][][]float32 // logits of all windows, by domain
	perfect verdict                // of the full model
	all     string                 // scores of all domains
	one     map[string]string      // scores of each
	means   map[string]float64     // mean divergence, by keep count and criterion, of all domains' scores
}

// A verdict is what a model is like, by domain.
type verdict struct{ divergence, perplexity map[string]float64 }

// windowTokens is the length that the model was trained on.
const windowTokens = 256

// readTexts cuts windows out of the held-out texts, evenly spread, and runs the full model.
func (j *judge) readTexts(windows int) error {
	m, err := j.engine.Open(model, llama.Options{Threads: j.threads})
	if err != nil {
		return err
	}
	defer m.Close()
	j.windows, j.full = map[string][][]int{}, map[string][][]float32{}
	for _, domain := range domains {
		data, err := os.ReadFile(filepath.Join(folder, domain+".heldout.txt"))
		if err != nil {
			return err
		}
		tokens, err := m.Tokenize(string(data), false)
		if err != nil {
			return err
		}
		for i := range windows {
			at := i * (len(tokens) - windowTokens) / max(windows-1, 1)
			j.windows[domain] = append(j.windows[domain], tokens[at:at+windowTokens])
		}
		if j.full[domain], err = logits(m, j.windows[domain]); err != nil {
			return err
		}
	}
	j.perfect, err = j.compare(m)
	return err
}

// judge runs a model.
func (j *judge) judge(path string) (verdict, error) {
	m, err := j.engine.Open(path, llama.Options{Threads: j.threads})
	if err != nil {
		return verdict{}, err
	}
	defer m.Close()
	return j.compare(m)
}

func (j *judge) compare(m *llama.Model) (verdict, error) {
	v := verdict{map[string]float64{}, map[string]float64{}}
	for _, domain := range domains {
		got, err := logits(m, j.windows[domain])
		if err != nil {
			return v, err
		}
		var divergence, surprise float64
		predicted := 0
		for w, window := range j.windows[domain] {
			for i := range window {
				row := got[w*windowTokens+i]
				norm := logSum(row)
				divergence += klDivergence(j.full[domain][w*windowTokens+i], row, norm)
				if i+1 < len(window) {
					surprise += norm - float64(row[window[i+1]])
					predicted++
				}
			}
		}
		v.divergence[domain] = divergence / float64(len(got))
		v.perplexity[domain] = math.Exp(surprise / float64(predicted))
	}
	return v, nil
}

func logits(m *llama.Model, windows [][]int) ([][]float32, error) {
	var rows [][]float32
	for _, window := range windows {
		part, err := m.Logits(window)
		if err != nil {
			return nil, err
		}
		rows = append(rows, part...)
	}
	return rows, nil
}

// klDivergence is KL(p || q) of the distributions that logits stand for.
func klDivergence(p, q []float32, normQ float64) float64 {
	normP := logSum(p)
	var sum float64
	for i := range p {
		logP := float64(p[i]) - normP
		sum += math.Exp(logP) * (logP - (float64(q[i]) - normQ))
	}
	return sum
}

func logSum(logits []float32) float64 {
	most := math.Inf(-1)
	for _, x := range logits {
		most = max(most, float64(x))
	}
	var sum float64
	for _, x := range logits {
		sum += math.Exp(float64(x) - most)
	}
	return most + math.Log(sum)
}

// mean is that over the domains: of divergences the arithmetic one, of perplexities the
// geometric one.
func (v verdict) mean() (divergence, perplexity float64) {
	for _, domain := range domains {
		divergence += v.divergence[domain] / float64(len(domains))
		perplexity += math.Log(v.perplexity[domain]) / float64(len(domains))
	}
	return divergence, math.Exp(perplexity)
}

// row writes a line of a table in Markdown.
func row(cells ...any) {
	line := "|"
	for _, c := range cells {
		if x, ok := c.(float64); ok {
			line += fmt.Sprintf(" %.4f |", x)
			continue
		}
		line += fmt.Sprintf(" %v |", c)
	}
	fmt.Println(line)
}
