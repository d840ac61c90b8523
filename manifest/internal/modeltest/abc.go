package modeltest

import (
	"strings"

	"ggufreap/gguf"
)

// ABCHashes is what llama-gguf-hash --all prints of ABC in "models/x.gguf",
// but for its xxh3 lines: the digests are those that xxhsum -H64, sha1sum and sha256sum
// give for "a", "abc" and "aabc".
const ABCHashes = `xxh64     d24ec4f1a98c6e5b  models/x.gguf:first
sha1      86f7e437faa5a7fce15d1ddcb9eaeaea377667b8  models/x.gguf:first
sha256    ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  models/x.gguf:first
xxh64     44bc2cf5ad770999  models/x.gguf:second
sha1      a9993e364706816aba3e25717850c26c9cd0d89d  models/x.gguf:second
sha256    ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  models/x.gguf:second
xxh64     e59c882d2faffba2  models/x.gguf
sha1      84bb906a0633227fc09c15558cda30058d7fb41a  models/x.gguf
sha256    223189358b15aac5609ec6d35ccfa7df93b8f2507344c03445351586b0459228  models/x.gguf
`

func ABC() gguf.Contents {
	c := gguf.Contents{Version: 3, Metadata: gguf.NewMetadata()}
	c.Metadata.Set("general.architecture", gguf.TextValue("test"))
	for _, t := range []struct{ name, data string }{{"first", "a"}, {"second", "abc"}} {
		v := gguf.View{Name: t.name, Type: gguf.I8, Shape: []uint64{uint64(len(t.data))}}
		v.Append(gguf.Extent{Source: strings.NewReader(t.data), Length: int64(len(t.data))})
		c.Views = append(c.Views, v)
	}
	return c
}
