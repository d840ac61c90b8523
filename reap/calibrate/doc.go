// Package calibrate collects REAP saliency out of a model that llama.cpp computes.
//
// It looks at the graph of the computation and finds what it needs by structure, since names
// of results differ between architectures. In a layer L it begins at the MUL_MAT_ID whose
// weights are blk.L.ffn_down_exps.weight, with the experts' numbers as its third operand:
//
//	h   the second operand, what enters the down projection
//	f   the result; after an ADD_ID (a bias) or a MUL by a scale of the down projection, the
//	    result of that
//	g   the second operand of the MUL that f is the first operand of
//
// g is the weight that the model applies: after normalising and with its constant scale. Where
// nothing multiplies f the model weights the experts' input (llama4), and g*|f| has no
// meaning: that is an error.
package calibrate
