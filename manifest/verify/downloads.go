package verify

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"

	"ggufreap/gguf"
	"ggufreap/gguf/pattern"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
)

// partNames tell a file that a program which downloads or copies writes, and what it is a part of.
// Other programs use such names too, so that they want the name of a model.
var partNames = []func() *regexp.Regexp{
	pattern.Lazy(`^(?:\.syncthing\.|~syncthing~)(.+)\.tmp$`), // Syncthing
	pattern.Lazy(`^\.(.+)\.[A-Za-z0-9]{6}$`),                 // rsync
	pattern.Lazy(`^(.+)(?:\.[0-9A-Fa-f]{8}|_\.gstmp)$`),      // the tools of S3 and Google
	pattern.Lazy(`^\.azDownload-[0-9a-f-]{36}-(.+)$`),        // azcopy
	pattern.Lazy(`^downloading_(.+)\.part$`),                 // LM Studio
}

// anyPart tells by its ending a part of any file.
var anyPart = pattern.Lazy(`(?i)^(.+?)(?:(?:\.[0-9a-f]{6,64})?\.(?:aria2(?:__temp)?|part|partial|partfile|incomplete|unfinished|crdownload|download|downloading|` +
	`opdownload|fdmdownload|filepart|dtapart|dctmp|ytdl|lftp-pget-status|xltd|!qb|!ut|!bt|!sync|bc!|jc!|td|td\.cfg|tmp|temp|st))+$`)

// partOf returns the name of the file that one is part of by its name, "" for none.
func partOf(name string) string {
	for _, form := range partNames {
		if match := form().FindStringSubmatch(name); match != nil && gguf.IsModelFile(match[1]) {
			return match[1]
		}
	}
	if match := anyPart().FindStringSubmatch(name); match != nil {
		return match[1]
	}
	return ""
}

// reportDownloads reports files that are not whole, by what programs leave that download.
func (v *verifier) reportDownloads() {
	for _, name := range v.downloads() {
		of := partOf(path.Base(name))
		beside := v.looked(of)
		switch {
		case beside && v.vouched[of]:
			v.report.note(name, fmt.Sprintf("is what a download of %q left", of))
		case beside:
			v.report.find(KindStructure, of, fmt.Sprintf("may not be whole: %q beside it marks a download that is not finished", name))
		case gguf.IsModelFile(of) || v.contents[name].model:
			v.report.find(KindStructure, name, fmt.Sprintf("is part of a download of %q that is not finished", of))
		}
	}
	if parts := v.hubParts(); len(parts) > 0 {
		v.report.note(hubRecords, fmt.Sprintf("%s of downloads that are not finished: %s", words.Count(len(parts), "file"), nameList(parts)))
	}
}

// reportUnsettled reports files beside which stands what an interrupted edit in place leaves.
func (v *verifier) reportUnsettled(names []string) {
	for _, m := range v.models {
		for _, path := range slices.Concat(m.Paths(), m.Unreadable) {
			names = append(names, v.name(path))
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if _, err := os.Lstat(v.path(name) + manifest.OldHeaderSuffix); err == nil {
			v.report.find(KindStructure, name, fmt.Sprintf("an edit in place was interrupted, so that its header may be half the old and half the new one: \"ggufreap edit --in-place\" takes it back, with %q beside it", path.Base(name)+manifest.OldHeaderSuffix))
		}
	}
}

// downloads lists the files beside the models that are named like parts of downloads.
func (v *verifier) downloads() []string {
	if len(v.contents) > 0 {
		return v.parts
	}
	entries, _ := os.ReadDir(v.dir)
	var parts []string
	for _, e := range entries {
		if of := partOf(e.Name()); of != "" && v.announced[of] {
			parts = append(parts, e.Name())
		}
	}
	return parts
}

// longZeros is how many zero bytes at the end of a file make one ask whether it is whole.
const longZeros = 64 << 10

// reportZeroTails reports shards that end in a long run of zeros, as preallocated downloads
// do, where nothing vouches for their bytes.
func (v *verifier) reportZeroTails() {
	for _, m := range v.models {
		for _, f := range m.Files {
			if v.vouched[v.name(f.Name)] || m == v.main() && v.pin != nil {
				continue
			}
			if n := zeroTail(f, f.Size); n >= longZeros {
				v.report.Add(Finding{Kind: KindStructure, File: v.name(f.Name), Expert: manifest.NoExpert, Parts: []Part{{File: v.name(f.Name), Offset: f.Size - n, Length: n}},
					What: fmt.Sprintf("ends in %s of zero: downloads that were not finished look so", words.Count(n, "byte"))})
			}
		}
	}
}

// zeroTail counts the zero bytes at the end.
func zeroTail(r io.ReaderAt, size int64) int64 {
	buf := make([]byte, 1<<20)
	for end := size; end > 0; {
		part := buf[:min(int64(len(buf)), end)]
		if n, _ := r.ReadAt(part, end-int64(len(part))); n < len(part) {
			return 0
		}
		if filled := len(bytes.TrimRight(part, "\x00")); filled > 0 {
			return size - end + int64(len(part)-filled)
		}
		end -= int64(len(part))
	}
	return size
}
