package evidence

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ggufreap/gguf/jsondoc"
	"ggufreap/gguf/pattern"
)

// Lines of llama-perplexity. The number may stand behind a time stamp.
var (
	finalPPL   = pattern.Lazy(`Final estimate: PPL = ([0-9.]+) \+/- ([0-9.]+)`)
	meanPPL    = pattern.Lazy(`Mean PPL\(Q\)\s*:\s*([0-9.]+)\s*±\s*([0-9.]+)`)
	basePPL    = pattern.Lazy(`Mean PPL\(base\)\s*:\s*([0-9.]+)\s*±\s*([0-9.]+)`)
	meanKLD    = pattern.Lazy(`Mean\s+KLD:\s*(-?[0-9.]+)\s*±\s*([0-9.]+)`)
	sameTop    = pattern.Lazy(`Same top p:\s*([0-9.]+)\s*±\s*([0-9.]+)`)
	chunkLine  = pattern.Lazy(`over ([0-9]+) chunks, n_ctx=([0-9]+)`)
	buildLine  = pattern.Lazy(`build: [0-9]+ \(([0-9a-f]+)\)`)
	promptTime = pattern.Lazy(`prompt eval time =\s*[0-9.]+ ms /\s*([0-9]+) tokens \(\s*[0-9.]+ ms per token,\s*([0-9.]+) tokens per second\)`)
	evalTime   = pattern.Lazy(`(?:^|\s)eval time =\s*[0-9.]+ ms /\s*([0-9]+) (?:tokens|runs) +\(\s*[0-9.]+ ms per token,\s*([0-9.]+) tokens per second\)`)
)

// perplexity reads what llama-perplexity prints: the last of each figure, which is that of
// the whole text.
func (in *reading) perplexity(f File) error {
	text := string(f.Data)
	r := start("llama-perplexity", "perplexity of a text", "llama-perplexity", f)
	r.add("engine", "llama.cpp")
	if m := lastMatch(buildLine(), text); m != nil {
		r.add("runtime_revision", m[1])
	}
	if m := lastMatch(chunkLine(), text); m != nil {
		r.add("chunks", m[1])
		r.add("tokens_of_a_chunk", m[2])
	}
	found := false
	figure := func(name string, patterns ...func() *regexp.Regexp) {
		for _, p := range patterns {
			if m := lastMatch(p(), text); m != nil {
				r = append(r, member{name, measured(m[1], "± "+m[2]+" (standard error)")})
				found = true
				return
			}
		}
	}
	figure("perplexity", meanPPL, finalPPL)
	figure("kl_divergence_mean", meanKLD)
	figure("same_top_token_percent", sameTop)
	if m := lastMatch(basePPL(), text); m != nil {
		r.add("perplexity_of_the_base", m[1])
	}
	if !found {
		return errors.New("llama-perplexity did not come to a final figure")
	}
	in.rows = append(in.rows, r)
	return nil
}

func lastMatch(p *regexp.Regexp, text string) []string {
	all := p.FindAllStringSubmatch(text, -1)
	if all == nil {
		return nil
	}
	return all[len(all)-1]
}

// serverLog reads the lines that llama-server prints for each request. They do not say
// whether a part of the prompt was cached.
func (in *reading) serverLog(f File) error {
	for line := range strings.Lines(string(f.Data)) {
		if m := promptTime().FindStringSubmatch(line); m != nil {
			r := start("llama-server-prefill", "prompt of a request", "llama-server log", f)
			r.add("engine", "llama.cpp")
			r.add("processed_tokens", m[1])
			r.add("prefill_tokens_per_second", m[2])
			in.rows = append(in.rows, r)
		} else if m := evalTime().FindStringSubmatch(line); m != nil {
			r := start("llama-server-decode", "generation of a request", "llama-server log", f)
			r.add("engine", "llama.cpp")
			r.add("actual_output_tokens", m[1])
			r.add("decode_tokens_per_second", m[2])
			in.rows = append(in.rows, r)
		}
	}
	return nil
}

// serverTimings are what llama-server adds to an answer.
type serverTimings struct {
	CacheN             *int64         `json:"cache_n"` // tokens of the prompt that were cached
	PromptN            int64          `json:"prompt_n"`
	PromptPerSecond    jsontext.Value `json:"prompt_per_second"`
	PredictedN         int64          `json:"predicted_n"`
	PredictedPerSecond jsontext.Value `json:"predicted_per_second"`
	DraftN             *int64         `json:"draft_n"`
}

type serverSettings struct {
	Temperature jsontext.Value `json:"temperature"`
	TopP        jsontext.Value `json:"top_p"`
	NPredict    int64          `json:"n_predict"`
}

// serverJSON reads answers with timings, one or many, or timings alone.
func (in *reading) serverJSON(f File) error {
	return eachObject(f.Data, func(fields map[string]jsontext.Value) error {
		raw, ok := fields["timings"]
		if !ok {
			raw, _ = json.Marshal(fields)
		}
		var t serverTimings
		var settings serverSettings
		if err := json.Unmarshal(raw, &t); err != nil {
			return fmt.Errorf("timings: %w", jsondoc.ReadError(err))
		}
		if s, ok := fields["generation_settings"]; ok {
			if err := json.Unmarshal(s, &settings); err != nil {
				return fmt.Errorf("generation_settings: %w", jsondoc.ReadError(err))
			}
		}
		in.timings(f, plain(fields["model"]), t, settings)
		return nil
	})
}

func (in *reading) timings(f File, model string, t serverTimings, s serverSettings) {
	common := func(id, workload string) row {
		r := start(id, workload, "llama-server", f)
		r.add("artifact", model)
		r.add("engine", "llama.cpp")
		r.add("temperature", plain(s.Temperature))
		r.add("top_p", plain(s.TopP))
		if s.NPredict > 0 {
			r.add("output_tokens_cap", strconv.FormatInt(s.NPredict, 10))
		}
		if t.DraftN != nil {
			r.add("draft_tokens", strconv.FormatInt(*t.DraftN, 10))
		}
		return r
	}
	if t.PromptN > 0 && plain(t.PromptPerSecond) != "" {
		r := common("llama-server-prefill", "prompt of a request")
		t.prompt(&r)
		r.add("processed_tokens", strconv.FormatInt(t.PromptN, 10))
		r.add("prefill_tokens_per_second", plain(t.PromptPerSecond))
		in.rows = append(in.rows, r)
	}
	if t.PredictedN > 0 && plain(t.PredictedPerSecond) != "" {
		r := common("llama-server-decode", "generation of a request")
		t.prompt(&r)
		r.add("actual_output_tokens", strconv.FormatInt(t.PredictedN, 10))
		r.add("decode_tokens_per_second", plain(t.PredictedPerSecond))
		in.rows = append(in.rows, r)
	}
}

// prompt says what is known of the prompt: its length only where the cached part is told.
func (t serverTimings) prompt(r *row) {
	switch {
	case t.CacheN == nil:
		return
	case *t.CacheN == 0:
		r.add("cache_state", "cold")
	default:
		r.add("cache_state", "warm")
		r.add("cached_tokens", strconv.FormatInt(*t.CacheN, 10))
	}
	r.add("input_tokens", strconv.FormatInt(t.PromptN+*t.CacheN, 10))
}
