package reap

import (
	"fmt"
	"math/bits"
)

// Limits of llama.cpp that depend on the number of routed experts.
const (
	oldLimit     = 512  // LLAMA_MAX_EXPERTS of builds without Kimi-K3
	engineLimit  = 1024 // LLAMA_MAX_EXPERTS since then (llama-hparams.h)
	routerMatrix = 4    // the CPU's fast kernel for the router takes multiples (llamafile/sgemm.cpp)
	fusedMost    = 512  // the CUDA router takes powers of two up to this (topk-moe.cu)
)

// fusedOthers are further counts of CUDA's fused router.
var fusedOthers = [...]int{288, 576}

// KeepAdvice says what a keep count costs in llama.cpp, one sentence each,
// nothing for a count that costs nothing. It is advice: every count that [Experts.CheckKeep]
// accepts can be written.
func KeepAdvice(keep int) []string {
	var advice []string
	if keep%routerMatrix != 0 {
		advice = append(advice, fmt.Sprintf("%d is not a multiple of %d: on the CPU llama.cpp then runs the router by another kernel, so logits of prompts differ from those of a masked source in their last bits", keep, routerMatrix))
	}
	if !fused(keep) {
		advice = append(advice, fmt.Sprintf("llama.cpp's fused CUDA router handles %d, %d and powers of two up to %d; with %d experts routing runs as several kernels", fusedOthers[0], fusedOthers[1], fusedMost, keep))
	}
	switch {
	case keep > engineLimit:
		advice = append(advice, fmt.Sprintf("llama.cpp stops at %d experts", engineLimit))
	case keep > oldLimit:
		advice = append(advice, fmt.Sprintf("builds of llama.cpp without Kimi-K3 stop at %d experts", oldLimit))
	}
	return advice
}

func fused(count int) bool {
	for _, n := range fusedOthers {
		if count == n {
			return true
		}
	}
	return count <= fusedMost && bits.OnesCount(uint(count)) == 1
}
