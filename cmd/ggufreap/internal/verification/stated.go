package verification

import (
	"fmt"
	"path"

	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/manifest/verify"
	"ggufreap/reap"
)

// checkStated tells what a release cannot show of its source: the hub stated a SHA-256 of each
// of its files, and nobody can take that of a file of which only parts travelled. A pin of the
// source has sums that were taken of the whole files.
func (v *Job) checkStated(stated *reap.Stated, r *verify.Report) {
	if stated == nil {
		return
	}
	same, other := v.pinnedAsStated(stated)
	where := fmt.Sprintf("hf://%s@%s", stated.Repo, stated.Commit)
	for _, f := range other {
		r.Add(planFinding(fmt.Sprintf("the hub stated of %s that its sha256 is %s, the source's pin says otherwise", where+"/"+f.Path, f.SHA256)))
	}
	switch {
	case len(other) > 0:
	case same == len(stated.Files):
		r.Checked = append(r.Checked, fmt.Sprintf("the source's pin has the sha256 that the hub states: %d of %s of %s", same, text.Files(same), where))
	default:
		r.Gaps = append(r.Gaps, verify.Gap{
			What:     fmt.Sprintf("the sha256 of the source's files, as the hub states it of %s of %s: what was dropped did not have to travel, so nobody took it", text.Files(len(stated.Files)), where),
			NotShown: "whether the source's files are those that the hub lists; a pin of them (--source-pin) has their sums, and tells of each expert",
		})
	}
}

// pinnedAsStated counts the files of the source's pin that have the stated sums, and lists
// those of which the hub stated other ones.
func (v *Job) pinnedAsStated(stated *reap.Stated) (same int, other []reap.StatedFile) {
	if v.Source == nil {
		return 0, nil
	}
	pinned := map[string]manifest.File{}
	for _, f := range v.Source.Files {
		pinned[f.Name] = f
	}
	for _, f := range stated.Files {
		p, known := pinned[path.Base(f.Path)]
		switch {
		case !known || f.SHA256 == "" || p.Size != f.Size: // cut another way
		case p.SHA256.String() == f.SHA256:
			same++
		default:
			other = append(other, f)
		}
	}
	return same, other
}
