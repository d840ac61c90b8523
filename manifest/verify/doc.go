// Package verify says whether an artifact is what somebody says it is.
//
// [Release] looks at a folder: its list of sums, its shards, its own pin, and, with the
// pin of its source, whether it is made of the source's bytes, which [Prove] finds out from
// two pins. [Check] holds one artifact against one piece of [Evidence]. [Warnings] are what
// is odd in the headers of a model alone.
//
// All of them answer with a [Report] or a part of one: what was found, what was checked,
// and what was not. An error only means that nobody could finish looking.
//
// # Where things are
//
// release.go has the order in which a folder is looked at; releaselist.go its list of sums,
// releasemodels.go its models, data.go their bytes, ownpin.go the folder's own pin, vouchedby.go
// and signed.go who says that they are right. prove.go holds two pins against each other:
// proveblock.go the experts of a layer, provestray.go those that are elsewhere in the source,
// proveplan.go what the plan says of them, proveids.go tables of expert numbers, provekeys.go
// metadata. check.go has a model against evidence, checklist.go, checkpin.go and checkhashes.go
// each kind of it. report.go is what all of them fill.
package verify
