package reap

import (
	"slices"
	"strings"
)

// Standing is what is known of the pruning of an architecture. ARCHITECTURES.md says how
// models are judged.
type Standing string

// The standings.
const (
	Judged      Standing = "judged"        // llama.cpp ran pruned models of it
	KnownByName Standing = "known by name" // its tensors are those of others; no pruned model of it was run
	NotJudged   Standing = "not judged"    // nothing is known of it
)

// StandingOf returns the standing of an architecture.
func StandingOf(architecture string) Standing {
	switch {
	case slices.Contains(judged, architecture):
		return Judged
	case slices.Contains(knownByName, architecture):
		return KnownByName
	}
	return NotJudged
}

// Meaning says in a few words what follows from the standing.
func (s Standing) Meaning() string {
	switch s {
	case Judged:
		return "llama.cpp ran pruned models of this architecture and agrees"
	case KnownByName:
		return "its tensors have the names and shapes of others, and no pruned model of it was run"
	}
	return "no pruned model of this architecture was run: compare what the release says with what its source says"
}

// judged are the architectures that have a row in ARCHITECTURES.md.
var judged = strings.Fields(`
afmoe arctic bailingmoe bailingmoe2 bailingmoe3 cohere2moe dbrx deepseek deepseek2 deepseek32
deepseek4 dots1 ernie4_5-moe exaone-moe gemma4 glm-dsa glm4moe gpt-oss granite granitemoe
granitehybrid grok grovemoe hunyuan-moe hy_v3 jamba kimi-k3 kimi-linear laguna lfm2moe
llada-moe llama llama4 mellum mimo2 minicpm minimax-01 minimax-m2 minimax-m3 mistral3 mistral4
nemotron_h_moe olmoe phimoe qwen2moe qwen35moe qwen3moe qwen3next qwen3vlmoe refact rnd1
smallthinker step35`)

// knownByName are the others that llama.cpp gives routed experts.
var knownByName = strings.Fields(`
deepseek2-ocr dflash dots3note hy_v4 jina-bert-v3 llama-embed maple nomic-bert-moe qwen4exp`)
