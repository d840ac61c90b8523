// Package evidence keeps apart what was measured, what was configured, what somebody
// stated, and what nobody said of a model.
//
// A [Document] is read from YAML or JSON with the schema ggufreap/evidence/v1. Its rows are
// workloads with their conditions and results. Every value has a [Kind], and a value that
// was stated elsewhere has a source. What is absent is [NotSpecified] in every output: there
// are no blanks, no defaults and no guesses.
//
// The rules that keep kinds apart:
//
//   - A first pass of a benchmark has a denominator and ids. A retry names the pass that it
//     retries, covers some of what that one failed, and says how limits changed. A composite
//     is computed from both ([Document.Composites]) and never entered.
//   - A configured limit is no measurement: a context counts as tested by a row with that
//     many input tokens ([Document.TestedContext]).
//   - Two rows are compared with what differs in their controls ([Document.Comparisons]).
//   - Rates of different kinds (decode, cold and warm prefill, time to the first token) stand
//     in tables of their own and are never averaged. No number is made of others but counts
//     of a composite and the interval of a share.
//
// [Read] reports everything that is wrong at once, with line numbers. [Import] makes rows of
// what llama-bench, llama-perplexity, llama-server and lm-evaluation-harness write.
//
// EVIDENCE.md in this folder describes the format for those who write it.
package evidence

// Schema is the first field of a document, and the only schema that is read.
const Schema = "ggufreap/evidence/v1"

// NotSpecified stands wherever nothing is known.
const NotSpecified = "Not specified"
