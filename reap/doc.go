// Package reap chooses which routed experts of a mixture-of-experts model to keep,
// and describes the pruned model as views of its source.
//
// The pieces, each a plain value that can be made by hand:
//
//   - [Experts] says which tensors of a model hold one slab, row or number for each
//     routed expert. It is read from headers, by tensor names and shapes.
//   - [Scores] holds a number for each expert of each layer, with the [Criterion]
//     that made it.
//   - [Plan] holds for each layer the experts to keep, in their new order.
//   - [Views] and [Metadata] are what the plan makes of the model: lists of byte
//     ranges and a few changed keys. No weight is decoded or changed.
//
// # One rule for every tensor
//
// The expert axis is the last (outermost) dimension of every routed tensor, so
// expert e is one run of bytes, a slab, and the slabs stand in order of e. Quantized
// blocks run along the first dimension and never cross a slab. New expert i is old
// expert keep[i] in every routed tensor of the layer: projections, biases, scales,
// router rows and selection bias. A mistake in one of them yields a file that loads
// and talks nonsense, so a tensor that cannot be placed by its name stops the run.
//
// All layers keep the same number of experts: a GGUF file states one expert_count
// for the whole model, and llama.cpp refuses an array there.
//
// # Faults
//
// What stands in the way is reported all at once, as [Faults].
package reap
