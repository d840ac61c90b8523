package stage

import (
	"ggufreap/gguf"
	"ggufreap/manifest"
)

// A Release is what a folder is to hold: the shards of a layout and some documents.
type Release struct {
	Stem   string // of the shards' names
	Layout *gguf.Layout
	Slabs  manifest.SlabCount // which tensors carry how many slabs; nil when none does
	IDs    manifest.IDTables  // which tensors are tables of expert ids; nil when none is
	// Documents are the names of the other files, the list of sums excepted.
	Documents []string
	// Same are paths of files that some shards, by number from 0, are to be byte for byte:
	// they share their blocks where the file system can, and are copied where not.
	Same map[int]string
	// Link makes those shards other names of these files: hard links.
	Link bool
	// Known are the sums of documents whose bytes are known beforehand. By them a finished
	// release is told from another one.
	Known map[string]manifest.Sum
	// Vouchers are names of files that vouch for a list of sums. Those that are there do not
	// fit the list that takes its place, and are removed before it is.
	Vouchers []string
	// Origin names what the release is made from. An interrupted release goes on only
	// when it is made from the same.
	Origin []Fact
}

func (r *Release) shardName(i int) string { return gguf.ShardName(r.Stem, i, len(r.Layout.Shards)) }

// names lists every file, the list of sums last.
func (r *Release) names() []string {
	var names []string
	for i := range r.Layout.Shards {
		names = append(names, r.shardName(i))
	}
	return append(append(names, r.Documents...), manifest.SumsName)
}

// A Source is a file on another machine.
type Source struct {
	Name     string // base name
	Size     int64
	Identity string // what tells it from any other file of that name and size
}

// Options change how a release is written.
type Options struct {
	// Sources are paths that the release is made from. A folder that holds one of
	// them, by whatever name or link, is refused.
	Sources []string
	// Inputs are paths of other files that it is made from, for which the same holds.
	Inputs []string
	// Far are the files that the release is made from where they are no files of this
	// machine. An interrupted release goes on only with files of the same identity.
	Far []Source
	// Unchanged returns an error when a source is no longer what it was when it was
	// opened. It is asked before bytes count as kept.
	Unchanged func() error
	// Resume goes on with a release that an earlier run left unfinished in the folder.
	// Where there is none it begins one.
	Resume bool
	// Force accepts a folder that is not empty. Files of the release's names are
	// replaced when it is published. Model files that are no part of it, folders and
	// special files are still refused.
	Force bool
	// Check looks at the digests of each tensor once it has passed; its error ends the
	// run. It is called from several goroutines; nil checks nothing.
	Check func(t *manifest.Tensor) error
	// Workers is how many shards are written at once; 0 means two a processor.
	Workers int
	// Lanes are numbers of neighbouring shards that one worker writes, one after the
	// other; without any, each free worker takes the next shard.
	Lanes []int
	// Progress is told how many bytes of the shards are written or checked.
	Progress manifest.Progress
}
