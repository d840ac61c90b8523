// Package loadable says from a model's headers alone whether llama.cpp would load it.
//
// A file can be sound by its format and still be of no use: a block is missing, an embedding
// has a row more than there are tokens, a key is written as u64 where llama.cpp reads a u32.
// llama.cpp finds such things when it loads the model; this package finds them without it,
// and reads no tensor data.
//
// The rules are of three kinds:
//
//   - For every architecture: the tokenizer's lists, the blocks that the metadata announces,
//     lists with an entry for each block, shapes of tensors that are multiplied with each
//     other.
//   - For every architecture that llama.cpp knows: the keys that it reads whatever the
//     architecture, with their types.
//   - For the architectures of [Known], which are all whose pruning was judged: every key, and
//     every tensor with its shape, as llama.cpp's own code asks for them
//     (llama-model-loader.cpp, and load_arch_hparams and load_arch_tensors in src/models).
//
// They are held against llama.cpp itself by a test: on small models of every architecture
// with experts, and on thousands of damaged ones, nothing is refused here that llama.cpp
// loads, and of the damaged ones all that llama.cpp refuses have a finding. Types of tensors
// that an operation cannot take, values that make no sense to the code behind the loader, and
// the room in memory are not looked at.
package loadable
