// Package lists reads and writes lists of digests in the forms that are in circulation:
//
//   - sums of files as sha256sum, shasum, BSD tools and openssl write them; [WriteSums]
//     writes the list of a release
//   - tree listings of the Hugging Face hub, [ReadTree]
//   - manifests of llama-gguf-hash, [ReadGGUFHashes] and [WriteGGUFHashes]
//
// Readers are strict: what two programs could read in two ways is an error. To hold an
// artifact against a list is the subject of package verify.
package lists
