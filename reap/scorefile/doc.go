// Package scorefile reads what calibration runs measured of a model's experts, from the
// files that tools in use write:
//
//	npz                  saliency sums and counts of kimi-k3-mlx, by source label too
//	saliency JSON        the document of this project, see [Measurements.Encode]
//	hotness CSV          counts of a llama.cpp fork that streams experts
//	expert_stats.json    of llama.cpp PR 20454, both variants
//	importance cache     of llama-prune (llama.cpp PR 26794)
//	imatrix GGUF         counts and squared activations of llama.cpp
//	saliency GGUF        sums and counts of a llama.cpp fork, tensors "reap.s_sum.blk.N"
//
// A file is known by its content, not by its name. Files that cannot be used are refused
// with the reason: the legacy imatrix, PyTorch pickles, plans, models.
//
// How many experts there are, which blocks have them and how many are used comes from the
// model; a file that says otherwise is refused with everything that is wrong with it.
// Files come from strangers: sizes that they state are checked before memory is taken, and
// nothing is read of an archive but the members that are needed.
package scorefile
