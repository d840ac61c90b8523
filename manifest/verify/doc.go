// Package verify says whether an artifact is what somebody says it is.
//
// [Release] looks at a folder: its list of sums, its shards, its own pin, and, with the
// pin of its source, whether it is made of the source's bytes, which [Prove] finds out from
// two pins. [Check] holds one artifact against one piece of [Evidence]. [Warnings] are what
// is odd in the headers of a model alone.
//
// All of them answer with a [Report] or a part of one: what was found, what was checked,
// and what was not. An error only means that nobody could finish looking.
package verify
