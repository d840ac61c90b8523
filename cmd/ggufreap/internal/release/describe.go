package release

import (
	"path/filepath"
	"slices"
	"strings"

	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/table"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
)

// Describe prints the files of a release.
func Describe(con *ui.Console, r *Release) {
	con.Field("tensor data", "%s", text.Size(r.Layout.TensorBytes()))
	con.Field("files", "%s, %s", text.Files(len(r.Layout.Shards)), text.Size(r.Layout.Bytes()))
	con.Field("was", "%s, %s", text.Files(r.Source.Shards), text.Size(r.Source.FileBytes()))
	if n := len(r.same()); r.Link && n > 0 {
		con.Field("linked", "%s: other names of the source's, and changed with them", text.Files(n))
	}
	if r.Engine != "" {
		con.Field("engine", "%s would load it", text.Safe(r.Engine))
	}
	con.Printf("\n")
	con.Table("", []table.Column{table.Left("file"), table.Right("tensors"), table.Right("bytes")}, func(yield func([]string) bool) {
		for i, name := range r.shardNames() {
			shard := r.Layout.Shards[i]
			if !yield([]string{text.Safe(name), text.Grouped(len(shard.Views)), text.Grouped(shard.Size)}) {
				return
			}
		}
	})
	con.Printf("\n")
	if r.Pin == nil {
		con.Field("written", "nothing: this was a dry run")
		return
	}
	if r.Pin.WeightsDigest.IsZero() {
		con.Field("pin digest", "none: a name has a control character")
	} else {
		con.Field("pin digest", "%s", r.Pin.PinDigest)
		con.Field("weights digest", "%s", r.Pin.WeightsDigest)
	}
	con.Field("documents", "%s", strings.Join(slices.Concat(r.documentNames(), []string{manifest.SumsName}, r.Signed), ", "))
	con.Field("written", "%s", text.Safe(filepath.Clean(r.Folder)))
}
