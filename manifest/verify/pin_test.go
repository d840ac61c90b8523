package verify

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"testing"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/modeltest"
)

const (
	hexA        = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" // SHA-256 of "a"
	emptyBLAKE3 = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
)

func mustPin(t testing.TB, m *gguf.Model, o manifest.BuildOptions) *manifest.Pin {
	t.Helper()
	pin, err := manifest.BuildPin(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	return pin
}

func pinContents(t *testing.T, c gguf.Contents, s gguf.Split, slabs manifest.SlabCount) *manifest.Pin {
	t.Helper()
	return mustPin(t, modeltest.New(t, c, s), manifest.BuildOptions{Slabs: slabs})
}

func encodePin(t testing.TB, name string, p *manifest.Pin) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := manifest.EncodePin(&b, name, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// mustDraft writes contents as so many shards into a fresh folder, and pins them on their
// way out.
func mustDraft(t *testing.T, stem string, c gguf.Contents, slabs manifest.SlabCount, shards int) (dir string, pin *manifest.Pin) {
	t.Helper()
	dir = t.TempDir()
	layout, err := gguf.NewLayout(c, gguf.Split{Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	draft, err := manifest.NewDraft(stem, layout, slabs, nil)
	if err != nil {
		t.Fatal(err)
	}
	var sums []manifest.Sum
	for i, shard := range layout.Shards {
		var file bytes.Buffer
		parts := draft.Shard(i, nil)
		if err := errors.Join(shard.Write(t.Context(), &file, make([]byte, 4096), parts.Tensor), parts.End()); err != nil {
			t.Fatal(err)
		}
		writeFile(t, dir, gguf.ShardName(stem, i, shards), file.Bytes())
		sums = append(sums, sha256.Sum256(file.Bytes()))
	}
	if pin, err = draft.Finish(sums); err != nil {
		t.Fatal(err)
	}
	return dir, pin
}

func finding(kind Kind, file, tensor string, expert int, what string) Finding {
	return Finding{Kind: kind, File: file, Tensor: tensor, Expert: expert, What: what}
}
