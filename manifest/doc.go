// Package manifest gives a model artifact an identity that rests on its bytes.
//
// # Digests
//
//   - tensor digest: BLAKE3-256 of a tensor's data bytes, padding excluded
//   - slab digest: BLAKE3-256 of one routed expert's bytes in a tensor
//   - weights digest: BLAKE3-256 over one line for each tensor,
//     NAME TAB TYPE TAB DIM0,DIM1,... TAB HEX LF
//     sorted by name as bytes; HEX is the tensor digest, TYPE is in upper case
//     as ggml spells it, dims are in canonical shape: innermost first, without those
//     of 1 at the outer end, of which at least one stays
//   - structure digest: BLAKE3-256 over the same lines without the data digest,
//     NAME TAB TYPE TAB DIM0,DIM1,... LF
//   - metadata digest: BLAKE3-256 over one line for each key other than split.*,
//     KEY TAB TYPE TAB HEX LF
//     sorted by key as bytes; HEX is the BLAKE3-256 of the value's encoded bytes
//
// Names and keys that hold a byte below 0x20 could forge a line and are refused.
// What remains sorts after TAB, so that sorting whole lines as bytes is the same
// as sorting by name. A type that ggml has not named is spelled "unknown(N)".
//
// # How a digest is written
//
// Where the field's name is the algorithm (sha256, blake3) the value is bare:
// 64 lower-case hexadecimal digits. Anywhere else the value carries its
// algorithm: "blake3:" and the digits.
//
// # Where things are
//
// A [Pin] comes from an artifact that is read ([BuildPin]), from one that is read while
// something is made of it ([Recorder]), or from one that is written ([Draft]). Two pins
// are compared by [CompareTensors] and [ComparePairs]; what is written of a pinned source
// is held against it by a [Derivation].
//
// What others say of an artifact, and how a release's own list of sums is read and
// written, is in package lists. Package verify holds an artifact against such evidence, a
// release against itself, and a release against the pin of its source. How a folder comes
// to be whole, with its journal and its interruptions, is the subject of package stage; how
// work is divided among machines, and their records are joined, that of package parts.
// All of them lie below this package and build on it, and it on none of them.
//
// IDENTITY.md in this folder describes the pin document, the evidence that an artifact can
// be held against, releases and the proof of derivation for those who use them.
//
// # What the package does not know
//
// How experts are chosen, which tensors hold them, and the command line. Callers
// say which tensors carry slabs, and how many.
package manifest
