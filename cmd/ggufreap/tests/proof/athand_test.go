package proof

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/gguf"
	"ggufreap/manifest"
)

// TestVerifyUsesWhatLiesAtHand gives a flipped bit away by evidence beside the model, with no
// flag that names it.
func TestVerifyUsesWhatLiesAtHand(t *testing.T) {
	spec := programtest.SmallK3()
	file, err := spec.File()
	if err != nil {
		t.Fatal(err)
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(file))
	bad := bytes.Clone(file)
	bad[len(bad)-1000] ^= 1
	for name, lay := range map[string]func(dir string, data []byte) (path, says string){
		"SHA256SUMS": func(dir string, data []byte) (string, string) {
			programtest.WriteText(t, filepath.Join(dir, "SHA256SUMS"), digest+"  m.gguf\n"+strings.Repeat("0", 64)+"  other.bin\n")
			return "m.gguf", "SHA256SUMS"
		},
		"a sum of its own": func(dir string, data []byte) (string, string) {
			programtest.WriteText(t, filepath.Join(dir, "m.gguf.sha256"), digest+"  m.gguf\n")
			return "m.gguf", "m.gguf.sha256"
		},
		"a bare digest": func(dir string, data []byte) (string, string) {
			programtest.WriteText(t, filepath.Join(dir, "m.gguf.sha256"), digest+"\n")
			return "m.gguf", "m.gguf.sha256"
		},
		"a hub's cache": func(dir string, data []byte) (string, string) {
			os.MkdirAll(filepath.Join(dir, "blobs"), 0o777)
			os.MkdirAll(filepath.Join(dir, "snapshots", "main"), 0o777)
			programtest.WriteText(t, filepath.Join(dir, "blobs", digest), string(data))
			if err := os.Symlink(filepath.Join("..", "..", "blobs", digest), filepath.Join(dir, "snapshots", "main", "m.gguf")); err != nil {
				t.Fatal(err)
			}
			return "snapshots/main/m.gguf", "the name of its blob"
		},
		"Ollama": func(dir string, data []byte) (string, string) {
			programtest.WriteText(t, filepath.Join(dir, "sha256-"+digest), string(data))
			return "sha256-" + digest, "the name of its blob"
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, data := range [][]byte{file, bad} {
				dir := t.TempDir()
				path, says := lay(dir, data)
				if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
					programtest.WriteText(t, filepath.Join(dir, path), string(data))
				}
				for _, named := range []string{path, filepath.Dir(path)} {
					if named == "." && name == "Ollama" {
						continue // a folder is looked through for models by magic, once a list names them
					}
					r := programtest.Run(t, "verify", filepath.Join(dir, named))
					ok := bytes.Equal(data, file)
					if ok && (r.Code != programtest.OK || !strings.Contains(r.Stdout, "sums: 1 of 1 file has the bytes that "+says+" lists")) {
						t.Errorf("%s: exit %d, %s%s", named, r.Code, r.Stdout, r.Stderr)
					}
					if !ok && (r.Code != programtest.Differs || !strings.Contains(r.Stdout, says+" says "+digest)) {
						t.Errorf("%s: a flipped bit: exit %d, %s%s", named, r.Code, r.Stdout, r.Stderr)
					}
				}
			}
		})
	}
}

// TestVerifyFindsTheSourcesPin proves a release by a pin that lies in its folder, and by the
// source itself.
func TestVerifyFindsTheSourcesPin(t *testing.T) {
	proofFolder(t)
	programtest.Succeed(t, "prune", "--keep", "16", "--source-pin", "source.pin.json.zst", "-o", "out", "source")
	pin, err := manifest.ReadPin("source.pin.json.zst")
	if err != nil {
		t.Fatal(err)
	}
	if out := programtest.Succeed(t, "verify", "--source", "source", "--source-digest", pin.PinDigest.String(), "out"); !strings.Contains(out, "unproven        0 bytes") {
		t.Errorf("with the source: %s", out)
	}
	if r := programtest.Run(t, "verify", "--source", "source", "--source-digest", "blake3:"+strings.Repeat("0", 64), "out"); r.Code != programtest.Failed || !strings.Contains(r.Stderr, "it is another pin") {
		t.Errorf("with another digest: exit %d, %s", r.Code, r.Stderr)
	}
	data, err := os.ReadFile("source.pin.json.zst")
	if err != nil {
		t.Fatal(err)
	}
	programtest.WriteText(t, "out/K3.pin.json.zst", string(data))
	out := programtest.Succeed(t, "verify", "out")
	if !strings.Contains(out, "K3.pin.json.zst: is the pin of the source, and was used") || !strings.Contains(out, "unproven        0 bytes") || !strings.Contains(out, "the one that the release itself states") {
		t.Errorf("with a pin in the folder: %s", out)
	}
	if out := programtest.Succeed(t, "verify", "--source-digest", pin.PinDigest.String(), "out"); strings.Contains(out, "the one that the release itself states") {
		t.Errorf("with the digest from elsewhere: %s", out)
	}
}

// TestVerifyNamesUnfinishedDownloads lays beside models what programs that download leave.
func TestVerifyNamesUnfinishedDownloads(t *testing.T) {
	shards := func(t *testing.T) (string, []string) {
		dir := t.TempDir()
		paths, err := programtest.SmallK3().Write(dir, gguf.Split{Shards: 3})
		if err != nil {
			t.Fatal(err)
		}
		return dir, paths
	}
	for _, suffix := range []string{".aria2", ".part", ".incomplete", ".crdownload", ".!qB", ".download", ".partial", ".0123456789abcdef.incomplete"} {
		t.Run(suffix, func(t *testing.T) {
			dir, paths := shards(t)
			programtest.WriteText(t, paths[1]+suffix, "x")
			for _, named := range []string{dir, paths[0]} {
				r := programtest.Run(t, "verify", named)
				if r.Code != programtest.Differs || !strings.Contains(r.Stdout, filepath.Base(paths[1])+": may not be whole: ") {
					t.Errorf("beside: exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
				}
			}
			os.Remove(paths[1])
			for _, named := range []string{dir, paths[0]} {
				r := programtest.Run(t, "verify", named)
				if r.Code != programtest.Differs || !strings.Contains(r.Stdout, "is part of a download of") {
					t.Errorf("in its place: exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
				}
			}
		})
	}
	dir, paths := shards(t)
	data, err := os.ReadFile(paths[2])
	if err != nil {
		t.Fatal(err)
	}
	clear(data[len(data)/4:])
	programtest.WriteText(t, paths[2], string(data))
	if r := programtest.Run(t, "verify", dir); r.Code != programtest.Differs || !strings.Contains(r.Stdout, "bytes of zero: downloads that were not finished look so") {
		t.Errorf("zeros: exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
}
