// Package stage writes releases: a folder of many gigabytes is whole, or it says that it
// is not and can be gone on with.
//
// # How a folder comes to be whole
//
// [Open] makes every check that needs no tensor data, and locks the folder.
// [Folder.WriteShards] writes the shards under temporary names and syncs them as they grow;
// the journal ([manifest.JournalName]) notes how much of each is durable. [Folder.WriteFile]
// does the same for the documents. [Folder.Publish] gives the files their names, writes the list of sums
// ([manifest.SumsName]), and removes the journal last of all. A folder with a list and no
// journal is a finished release.
//
// A run that ends before leaves the durable beginnings of its shards and the journal. One
// that is opened with Resume for the same release reads these, which it believes only when
// their digests are right, and writes the rest; the folder is then the same, byte for byte,
// as that of a run that nothing interrupted.
//
// GUARANTEES.md in this folder says what holds at every moment, for those who use it.
//
// # In parts
//
// [OpenPart] does one part of a release in a folder that other tasks write to, [Gather] reads
// the records that they leave, and [Gathering.Publish] makes a release of them. No lock is
// relied on: files get their names when they are whole, records last.
//
// # Where things are
//
// release.go has what a folder is to hold, folder.go its life from Open on, check.go what Open
// refuses, write.go all shards and the documents, shard.go one shard from what is there to its
// end, keeper.go what is made durable when, publish.go the end, leave.go a run that ends before.
// share.go has which part of a release a task does, part.go the folder of one, partfound.go what
// an earlier task of it left, partwrite.go the rest, place.go how its files get their names,
// records.go its record; gather.go and assemble.go how parts are joined.
// journal.go is the journal, journalform.go the form of its lines, origin.go what it says a
// release is made from. The digests of what is written are those of package manifest, the file
// system is behind internal/disk.
package stage
