// Package gguf reads and writes GGUF model files, split ones included.
//
// # The format
//
// A file is a header, a data section, and nothing else. All integers share the
// file's byte order, little endian unless the version word says otherwise.
//
//	"GGUF"                magic
//	u32                   version: 2 and 3 are read and written
//	u64                   number of tensors
//	u64                   number of metadata pairs
//	pairs                 key, u32 value type, value
//	tensor infos          name, u32 dims, u64 each dim, u32 ggml type, u64 offset
//	padding               to a multiple of general.alignment (32 unless set)
//	data                  each tensor at its offset from here, padded likewise
//
// A string is a u64 length and that many bytes. An array is a u32 element type,
// a u64 count and the elements. Dims stand innermost first.
//
// A split model is several such files. Each carries split.no (u16, from 0),
// split.count (u16) and split.tensors.count (i32, over all shards); only the first
// carries the model's own metadata. File names count from 1:
// NAME-00001-of-00009.gguf.
//
// # How the package is laid out
//
// A [File] is one parsed file, a [Model] the shards of one artifact read as one.
// Metadata is a list of typed [Value]s that keep their encoded bytes, so a copied
// pair is the same bytes. A [Tensor] knows its type, shape and place.
//
// To write, name the tensors as [View]s: lists of byte ranges of some source.
// [NewLayout] cuts them into shards and computes every offset and size before a
// byte is copied; a [ShardLayout] then writes itself through a [Writer]. Splitting,
// merging and pruning are all this one operation.
//
// Reading is header work only. Long arrays stay where they are in the file and are
// decoded when asked for; no data byte is read until a tensor's reader is used.
//
// scanner.go reads the parts of a header within bounds, scanvalue.go a value; header.go puts
// them together. open.go finds the files of a model from a path: shardname.go and shardset.go
// by the names of shards, pieces.go by those of pieces that are to be joined (joined.go),
// hubcache.go in a hub's cache. problem.go has what is wrong with them, diagnose.go what a file
// is that is no model.
package gguf
