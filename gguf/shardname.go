package gguf

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"ggufreap/gguf/pattern"
)

// shardPattern is the name of a shard: five digits, as a count of at most 65535 needs,
// and at the end of the base name only. "best-of-breed.gguf" and "m-1-of-2.gguf" are no
// shards.
var shardPattern = pattern.Lazy(`(?s)^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

const shardFormat = "%s-%05d-of-%05d.gguf"

// A shardName is what a file name says about a split: shard No, from 1, of Count.
type shardName struct {
	stem      string
	no, count int
}

// parseShardName reads the base name of path. It reports false for a name that is not
// one of a split's, as shard 3 of 2.
func parseShardName(path string) (shardName, bool) {
	m := shardPattern().FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return shardName{}, false
	}
	no, _ := strconv.Atoi(m[2])
	count, _ := strconv.Atoi(m[3])
	n := shardName{stem: m[1], no: no, count: count}
	return n, no >= 1 && no <= count && count <= maxSplitShards
}

// ShardName returns the file name of shard i, from 0, of n: "STEM-00001-of-00014.gguf",
// or "STEM.gguf" when the model is one file.
func ShardName(stem string, i, n int) string {
	if n == 1 {
		return stem + ".gguf"
	}
	return fmt.Sprintf(shardFormat, stem, i+1, n)
}

// Stem returns the base name of path without a shard's number and without ".gguf".
func Stem(path string) string {
	if n, ok := parseShardName(path); ok {
		return n.stem
	}
	base := filepath.Base(path)
	if ext := filepath.Ext(base); strings.EqualFold(ext, ".gguf") {
		return strings.TrimSuffix(base, ext)
	}
	return base
}

// IsModelFile reports whether a file of this name is looked at in a folder: its name ends
// in ".gguf", in upper or lower case. Hidden files are left out: some systems put one with
// other contents beside each file.
func IsModelFile(name string) bool {
	base := filepath.Base(name)
	return strings.EqualFold(filepath.Ext(base), ".gguf") && !strings.HasPrefix(base, ".")
}
