package evidence

import (
	"regexp"
	"slices"
	"strings"

	"ggufreap/gguf/pattern"
	"ggufreap/gguf/words"
)

// form is how the value of a field is written.
type form string

const (
	text     form = "text"
	integer  form = "integer"
	number   form = "number"
	bytesize form = "bytes"
	day      form = "date"
	digest   form = "digest"
	ids      form = "ids"
)

// part is what a field is for.
type part string

const (
	condition part = "condition" // what was run, on what
	setting   part = "setting"   // what was asked for
	scoring   part = "scoring"   // of a benchmark
	result    part = "result"    // what came of it
)

// A field is one that the format defines.
type field struct {
	name  string
	form  form
	part  part
	about string // for people, one clause
}

// fields are all fields of rows and setups, in the order of output.
var fields = []field{
	{"model", text, condition, "name of the model"},
	{"artifact", text, condition, "label of the files that ran; pin_digest identifies them"},
	{"pin_digest", digest, condition, "pin digest of the release that ran, as `ggufreap pin` prints it"},
	{"model_revision", text, condition, "commit or tag of the model's repository"},
	{"engine", text, condition, "program that ran the model"},
	{"runtime_revision", text, condition, "commit or version of the engine"},
	{"image_digest", text, condition, "digest of the container image"},
	{"system", text, condition, "machines, processors, memory"},
	{"node_count", integer, condition, "machines that the model ran on"},
	{"parallelism", text, condition, "how it was spread over them: layer split, tensor parallel, RPC"},
	{"weight_precision", text, condition, "type of the weights"},
	{"kv_dtype", text, condition, "type of the key-value cache"},
	{"load_mode", text, condition, "mmap, no-mmap, direct I/O"},
	{"network", text, condition, "settings of the network, each with a name of its own"},
	{"experiment_date", day, condition, "YYYY-MM-DD, or as much of it as is known"},
	{"context_limit_tokens", integer, setting, "configured context limit; not a tested one"},
	{"configured_max_requests", integer, setting, "requests that the server was set to take at once"},
	{"concurrency", integer, condition, "requests that ran at once"},
	{"temperature", number, setting, "sampling temperature"},
	{"top_p", number, setting, "nucleus sampling"},
	{"thinking", text, setting, "thinking mode and its budget"},
	{"output_tokens_cap", integer, setting, "most tokens that an answer could have"},
	{"timeout_seconds", number, setting, "seconds after which an answer was given up"},
	{"retry_policy", text, setting, "what was tried again, and when"},
	{"cache_state", text, condition, "cold: nothing of the prompt was cached; warm: a prefix was"},
	{"input_tokens", integer, condition, "tokens of the prompt, counted"},
	{"actual_output_tokens", integer, condition, "tokens that were generated, counted"},
	{"repetitions", integer, condition, "runs that the result is of"},
	{"benchmark", text, scoring, "name of the benchmark"},
	{"pass", text, scoring, "first or retry"},
	{"retries", text, scoring, "id of the row that this one retries"},
	{"limits_changed", text, scoring, "what a retry was allowed beyond the pass before it, or none"},
	{"unpruned_control", text, scoring, "id of the row that ran the model before pruning under the same controls"},
	{"subset", text, scoring, "which items: all, a fixed subset and how it was chosen, random"},
	{"subset_ids", ids, scoring, "ids of the items"},
	{"total", integer, scoring, "items that were asked: the denominator"},
	{"correct", integer, result, "items that were right"},
	{"failed_ids", ids, scoring, "ids of items that were wrong, time outs aside"},
	{"timed_out_ids", ids, scoring, "ids of items that were given up"},
	{"decode_tokens_per_second", number, result, "generation, the prompt aside"},
	{"prefill_tokens_per_second", number, result, "reading of the prompt; cache_state says from what"},
	{"prompt_and_generation_tokens_per_second", number, result, "both in one rate, as llama-bench -pg gives"},
	{"ttft_seconds", number, result, "time to the first token"},
	{"perplexity", number, result, "exponential of the mean negative log likelihood"},
	{"kl_divergence_mean", number, result, "mean KL divergence to the base, in nats"},
	{"same_top_token_percent", number, result, "positions where base and model prefer the same token"},
	{"peak_runtime_RAM", bytesize, result, "most memory that was held at any time, with the method"},
	{"occupied_RAM", bytesize, result, "memory held at some time; not a peak"},
}

func findField(name string) (field, bool) {
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return field{}, false
	}
	return fields[i], true
}

// What is said of names under which people enter what this format keeps apart.
const (
	refuseShare     = "a share without a denominator: give correct and total, with ids"
	refuseComposite = "a composite is computed from a first pass and its retries, never entered"
	refuseRate      = "rates of different kinds: say decode_tokens_per_second or prefill_tokens_per_second"
	refuseMean      = "a mean of what was measured apart: give each its own row"
	refuseContext   = "a context is tested by a row with that many input_tokens; a setting is context_limit_tokens"
	refuseMemory    = "say peak_runtime_RAM with its method, or occupied_RAM"
	refuseTokens    = "say output_tokens_cap for what was allowed, actual_output_tokens for what was generated"
	refuseCriterion = "how experts were chosen is taken from the plan of the release, not from its writer"
)

// refused are such names, with what to do instead.
var refused = map[string]string{
	"accuracy":           refuseShare,
	"score":              refuseShare,
	"pass_rate":          refuseShare,
	"pass_at_1":          refuseShare,
	"percent":            refuseShare,
	"composite":          refuseComposite,
	"final_score":        refuseComposite,
	"correct_final":      refuseComposite,
	"correct_with_retry": refuseComposite,
	"tokens_per_second":  refuseRate,
	"tok_s":              refuseRate,
	"tps":                refuseRate,
	"throughput":         refuseRate,
	"speed":              refuseRate,
	"tested_context":     refuseContext,
	"max_context":        refuseContext,
	"context":            refuseContext,
	"context_tokens":     refuseContext,
	"memory":             refuseMemory,
	"ram":                refuseMemory,
	"peak_memory":        refuseMemory,
	"output_tokens":      refuseTokens,
	"max_tokens":         refuseTokens,
	"criterion":          refuseCriterion,
	"criterion_evidence": refuseCriterion,
	"pruning_method":     refuseCriterion,
}

// refusedForms are forms of such names, of which there are many: the first that fits tells.
var refusedForms = []struct {
	form func() *regexp.Regexp
	why  string
}{
	{pattern.Lazy(`composite|combinedscore|(after|with|incl|including)retr(y|ies)|bestof\d*$`), refuseComposite},
	{pattern.Lazy(`(avg|average|mean|median|overall).*(tps|toks|token|prefill|decode|prompt|ttft|latency|throughput|speed|rate)|(tps|toks|token|prefill|decode|prompt|ttft|throughput|speed).*(avg|average|mean|median|overall)`), refuseMean},
	{pattern.Lazy(`tps$|toks$|tokenspersecond|tokenspersec|tokenss$|throughput|(prefill|decode|prompt|generation|inference|eval)(speed|rate)`), refuseRate},
	{pattern.Lazy(`accuracy|passrate|passat\d|pass@|successrate|exactmatch|score$|percent(age)?correct`), refuseShare},
	{pattern.Lazy(`^(humaneval|mbpp|gsm8?k|mmlu|arc|hellaswag|truthfulqa|aime|gpqa|swebench|ifeval|bbh|livecodebench|winogrande|piqa|math\d*)(plus|pro|diamond|verified|\d+)?$`), refuseShare},
	{pattern.Lazy(`(peak|max|used|resident|runtime)(v|gpu|cpu|system)?(ram|memory|mem)(used|usage|gb|gib|bytes)?$|(ram|memory)(used|usage|peak|gb|gib)$|^rss$|maxrss`), refuseMemory},
	{pattern.Lazy(`(tested|working|effective|verified|usable|validated|supported|max|maximum)(tested)?context|context(tested|verified|validated|length|size|window)`), refuseContext},
}

// squeeze is a name without what people vary: case, hyphens, underscores, spaces.
func squeeze(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_. /", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// meant returns the field that a name is a slip of, "" when it is a name of its own.
func meant(name string) string {
	for _, f := range fields {
		if squeeze(f.name) == squeeze(name) || len(name) > 5 && words.Distance(squeeze(f.name), squeeze(name)) <= 2 {
			return f.name
		}
	}
	return ""
}

// refusal returns why a name cannot be used, "" when it can.
func refusal(name string) string {
	squeezed := squeeze(name)
	for known, why := range refused {
		if squeeze(known) == squeezed {
			return why
		}
	}
	for _, f := range refusedForms {
		if f.form().MatchString(squeezed) {
			return f.why
		}
	}
	return ""
}
