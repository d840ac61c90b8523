package loadable

import (
	"fmt"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/reap"
)

// tables hold what llama.cpp asks for, by architecture.
var tables = map[string]func(*loader){
	"afmoe":          afmoe,
	"arctic":         arctic,
	"bailingmoe":     bailingmoe,
	"bailingmoe2":    bailingmoe2,
	"bailingmoe3":    bailingmoe3,
	"cohere2moe":     cohere2MoE,
	"dbrx":           dbrx,
	"deepseek":       deepseek,
	"deepseek2":      deepseek2,
	"deepseek32":     deepseek32,
	"deepseek4":      deepseek4,
	"dots1":          dots1,
	"ernie4_5-moe":   ernieMoE,
	"exaone-moe":     exaoneMoE,
	"gemma4":         gemma4,
	"glm-dsa":        glmDSA,
	"glm4moe":        glm4moe,
	"gpt-oss":        gptOSS,
	"granite":        granite,
	"granitehybrid":  graniteHybrid,
	"granitemoe":     granite,
	"grok":           grok,
	"grovemoe":       grovemoe,
	"hunyuan-moe":    hunyuanMoE,
	"hy_v3":          hyV3,
	"jamba":          jamba,
	"kimi-k3":        kimiK3,
	"kimi-linear":    kimiLinear,
	"laguna":         laguna,
	"lfm2moe":        lfm2MoE,
	"llada-moe":      lladaMoE,
	"llama":          llama,
	"llama4":         llama4,
	"mellum":         mellum,
	"mimo2":          mimo2,
	"minicpm":        minicpm,
	"minimax-01":     minimax01,
	"minimax-m2":     minimaxM2,
	"minimax-m3":     minimaxM3,
	"mistral3":       mistral3,
	"mistral4":       deepseek2,
	"nemotron_h_moe": nemotronHMoE,
	"olmoe":          olmoe,
	"phimoe":         phimoe,
	"qwen2moe":       qwen2moe,
	"qwen35moe":      qwen35moe,
	"qwen3moe":       qwen3moe,
	"qwen3next":      qwen3next,
	"qwen3vlmoe":     qwen3vlmoe,
	"refact":         refact,
	"rnd1":           qwen3moe,
	"smallthinker":   smallthinker,
	"step35":         step35,
}

// Known reports whether the rules of an architecture name every key and every tensor that
// llama.cpp asks for.
func Known(architecture string) bool {
	_, known := tables[architecture]
	return known
}

// checkTable plays llama.cpp's loader with the architecture's table.
func (c *check) checkTable() {
	table, known := tables[c.arch]
	if !known || c.blocks == 0 || c.draftAlone() {
		return
	}
	l := &loader{check: c, asked: map[string]bool{}}
	if !l.readCommon() {
		return
	}
	table(l)
	if l.stopped {
		return
	}
	l.askScales()
	l.tellMissing()
	l.tellUnknown()
}

// A loader asks for the tensors of one model as llama.cpp does.
type loader struct {
	*check

	E, V          uint64 // model width, tokens
	heads, kv, ff func(block int) uint64
	full, sliding headSize // of heads that see all, and of those with a sliding window
	windowed      func(block int) bool
	keyLen, valueLen,
	rot uint64 // of the first block's heads
	experts, used uint64
	trunk         int // blocks before those for drafting

	stopped bool // a key is missing or has another type: nothing follows from it
	// optional says that tensors may be absent; unused, that llama.cpp does not take them
	// into use, and does not ask for their scales.
	optional, unused bool

	asked   map[string]bool
	missing []absence
	scaled  []scaledTensor
}

// absence is a tensor that is not there, in one block or several.
type absence struct {
	name   string
	blocks []int // none for a tensor outside of blocks
}

type scaledTensor struct {
	stem  string // the name without "weight"
	count uint64 // numbers in its scale
}

// readCommon takes what every architecture has; it reports false when a key is not sound.
func (l *loader) readCommon() bool {
	for key, sound := range l.keys {
		if !sound && strings.HasPrefix(key, l.arch+".") {
			return false
		}
	}
	n, _, known := l.vocabulary()
	l.E, l.V = l.number("embedding_length"), n
	l.heads, l.ff = l.perBlock("attention.head_count"), l.perBlock("feed_forward_length")
	l.kv = l.heads
	if _, there := l.md.Arch("attention.head_count_kv"); there {
		l.kv = l.perBlock("attention.head_count_kv")
	}
	l.readHeads()
	l.experts, l.trunk = l.number("expert_count"), l.blocks-l.drafts
	if used := l.numbers("expert_used_count"); len(used) > 0 {
		l.used = used[0]
	}
	return known
}

func (l *loader) numberOr(suffix string, otherwise uint64) uint64 {
	if n, there := l.md.ArchUint(suffix); there {
		return n
	}
	return otherwise
}

// key reads a number that the architecture needs.
func (l *loader) key(suffix string) uint64 {
	v, ok := l.read(keyRule{suffix, gguf.Uint32, true})
	l.stopped = l.stopped || !ok
	n, _ := v.Uint()
	return n
}

// keyOr reads a number that may be absent.
func (l *loader) keyOr(suffix string, otherwise uint64) uint64 {
	v, there := l.read(keyRule{suffix, gguf.Uint32, false})
	if !there {
		l.stopped = l.stopped || !l.keys[l.md.ArchKey(suffix)]
		return otherwise
	}
	n, _ := v.Uint()
	return n
}

// must wants keys of a type whose values no shape depends on.
func (l *loader) must(typ gguf.ValueType, suffixes ...string) {
	for _, suffix := range suffixes {
		l.read(keyRule{suffix, typ, true})
	}
}

// may wants keys that are there to have the type.
func (l *loader) may(typ gguf.ValueType, suffixes ...string) {
	for _, suffix := range suffixes {
		l.read(keyRule{suffix, typ, false})
	}
}

// outer is the block of tensors that are outside of blocks.
const outer = -1

// eachBlock asks for the tensors of every block that has any: the absent ones are told as
// such.
func (l *loader) eachBlock(blocks int, ask func(block int)) {
	for block := range blocks {
		if _, present := l.traits[block]; present {
			ask(block)
		}
	}
}

// beginBlock says what the tensors of a draft block are: not used, and optional where the drafts
// lie in another file.
func (l *loader) beginBlock(block int) {
	l.unused = block >= l.trunk
	l.optional = l.unused && l.trunkOnly()
}

// needDrafts wants the draft blocks in this file.
func (l *loader) needDrafts() {
	var absent []int
	for block := l.trunk; block < l.blocks; block++ {
		if _, present := l.traits[block]; !present {
			absent = append(absent, block)
		}
	}
	if len(absent) > 0 {
		l.refuse(l.m.Name, "%s: announced by %q, and no tensor of %s is there", blockList(absent), l.md.ArchKey("nextn_predict_layers"), words.Verb(len(absent), "it", "them"))
	}
}

// need asks for a tensor that must be there unless optional is set.
func (l *loader) need(block int, name string, dims ...uint64) bool {
	there := l.ask(block, name, dims)
	if !there && !l.optional {
		l.miss(block, name)
	}
	return there
}

// want asks for a tensor that may be absent.
func (l *loader) want(block int, name string, dims ...uint64) bool {
	return l.ask(block, name, dims)
}

func (l *loader) ask(block int, name string, dims []uint64) bool {
	full := name
	if block != outer {
		full = fmt.Sprintf("blk.%d.%s", block, name)
	}
	l.asked[full] = true
	t := l.m.Tensor(full)
	if t == nil {
		return false
	}
	if !sameShape(t.Shape, dims) {
		l.misshapen(t, shapeText(dims))
	} else if strings.HasPrefix(full, "rope_f") && t.Type != gguf.F32 {
		l.refuseTensor(t, "is %s, llama.cpp takes factors of a rotation in F32 only", t.Type)
	}
	if stem, weight := strings.CutSuffix(full, "weight"); weight && !l.unused && block != outer {
		l.noteScaled(stem, name)
	}
	return true
}

// sameShape compares dims; those that are not written are 1.
func sameShape(got, want []uint64) bool {
	at := func(dims []uint64, i int) uint64 {
		if i < len(dims) {
			return dims[i]
		}
		return 1
	}
	for i := range max(len(got), len(want)) {
		if at(got, i) != at(want, i) {
			return false
		}
	}
	return true
}

// scalable are the matrices that may have a scale and an input scale beside them (the
// generic pass at the end of llama_model_base::load_tensors).
var scalable = []string{
	"attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_output.weight", "attn_qkv.weight", "attn_gate.weight",
	"ffn_gate.weight", "ffn_down.weight", "ffn_up.weight",
	"ffn_gate_shexp.weight", "ffn_down_shexp.weight", "ffn_up_shexp.weight",
	"ffn_gate_exps.weight", "ffn_down_exps.weight", "ffn_up_exps.weight", "ffn_gate_up_exps.weight",
	"ssm_in.weight", "ssm_out.weight", "ssm_alpha.weight", "ssm_beta.weight",
	"nextn.eh_proj.weight", "nextn.shared_head_head.weight",
}

func (l *loader) noteScaled(stem, name string) {
	if !slices.Contains(scalable, name) {
		return
	}
	count := uint64(1)
	if strings.Contains(name, "_exps.") {
		count = l.experts
	}
	l.scaled = append(l.scaled, scaledTensor{stem, count})
}

func (l *loader) askScales() {
	for _, s := range l.scaled {
		l.want(outer, s.stem+"scale", s.count)
		l.want(outer, s.stem+"input_scale", s.count)
	}
}

func (l *loader) miss(block int, name string) {
	i := slices.IndexFunc(l.missing, func(a absence) bool { return a.name == name })
	if i < 0 {
		i = len(l.missing)
		l.missing = append(l.missing, absence{name: name})
	}
	if block != outer {
		l.missing[i].blocks = append(l.missing[i].blocks, block)
	}
}

// tellMissing names the tensors that are not there, one line for each name.
func (l *loader) tellMissing() {
	for _, a := range l.missing {
		switch {
		case len(a.blocks) > 0:
			l.refuse(l.m.Name, "%s: no tensor %q, llama.cpp does not load %s without it", blockList(a.blocks), a.name, l.arch)
		case a.name != "token_embd.weight": // told for every architecture
			l.refuse(l.m.Name, "has no tensor %q, llama.cpp does not load %s without it", a.name, l.arch)
		}
	}
}

// tellUnknown names the tensors that nobody asked for.
func (l *loader) tellUnknown() {
	for _, t := range l.m.Tensors() {
		if block, _, ok := reap.SplitBlock(t.Name); ok && block >= l.blocks || l.asked[t.Name] {
			continue
		}
		l.add(gguf.Problem{Where: tensorPlace(t), Tensor: t.Name,
			What: fmt.Sprintf("is not known in %s: llama.cpp loads no model with a tensor that it does not ask for", l.arch)})
	}
}
