// Package planfile reads and writes the documents that plans stand in: our own, which is
// the same bytes for equal plans, and those of other tools, which say less about
// themselves.
//
//	{"schema":"ggufreap/plan/v1",...}            our own, see [Encode]
//	{"layers":{"1":{"keep":[5,1,6]}}}            kimi-k3-mlx, kimi-k3-gguf-prune
//	{"keep":{"1":[5,1,6]}}, {"1":[5,1,6]}        the same, bare
//	{"keep":[[],[5,1,6]]}                        the same, place in the list = block
//	{"format":"aikar-moe-prune",...}             experts to drop (llama.cpp PR 26794)
//	{"pruned_experts":[[1,3],[1,4]]}             block and expert to drop (vLLM PR 37824)
//
// A keep list's order is the order of the new experts. Everything that is wrong with a
// document is reported at once, as [reap.Faults]. What is read is not yet checked against
// a model: see [reap.Plan.Check].
package planfile
