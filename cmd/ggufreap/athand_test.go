package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/manifest"
)

// TestVerifyUsesWhatLiesAtHand gives a flipped bit away by evidence beside the model, with no
// flag that names it.
func TestVerifyUsesWhatLiesAtHand(t *testing.T) {
	spec := smallK3()
	file, err := spec.File()
	if err != nil {
		t.Fatal(err)
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(file))
	bad := bytes.Clone(file)
	bad[len(bad)-1000] ^= 1
	for name, lay := range map[string]func(dir string, data []byte) (path, says string){
		"SHA256SUMS": func(dir string, data []byte) (string, string) {
			writeText(t, filepath.Join(dir, "SHA256SUMS"), digest+"  m.gguf\n"+strings.Repeat("0", 64)+"  other.bin\n")
			return "m.gguf", "SHA256SUMS"
		},
		"a sum of its own": func(dir string, data []byte) (string, string) {
			writeText(t, filepath.Join(dir, "m.gguf.sha256"), digest+"  m.gguf\n")
			return "m.gguf", "m.gguf.sha256"
		},
		"a bare digest": func(dir string, data []byte) (string, string) {
			writeText(t, filepath.Join(dir, "m.gguf.sha256"), digest+"\n")
			return "m.gguf", "m.gguf.sha256"
		},
		"a hub's cache": func(dir string, data []byte) (string, string) {
			os.MkdirAll(filepath.Join(dir, "blobs"), 0o777)
			os.MkdirAll(filepath.Join(dir, "snapshots", "main"), 0o777)
			writeText(t, filepath.Join(dir, "blobs", digest), string(data))
			if err := os.Symlink(filepath.Join("..", "..", "blobs", digest), filepath.Join(dir, "snapshots", "main", "m.gguf")); err != nil {
				t.Fatal(err)
			}
			return "snapshots/main/m.gguf", "the name of its blob"
		},
		"Ollama": func(dir string, data []byte) (string, string) {
			writeText(t, filepath.Join(dir, "sha256-"+digest), string(data))
			return "sha256-" + digest, "the name of its blob"
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, data := range [][]byte{file, bad} {
				dir := t.TempDir()
				path, says := lay(dir, data)
				if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
					writeText(t, filepath.Join(dir, path), string(data))
				}
				for _, named := range []string{path, filepath.Dir(path)} {
					if named == "." && name == "Ollama" {
						continue // a folder is looked through for models by magic, once a list names them
					}
					r := ggufreap(t, "verify", filepath.Join(dir, named))
					ok := bytes.Equal(data, file)
					if ok && (r.code != exitOK || !strings.Contains(r.stdout, "sums: 1 of 1 file has the bytes that "+says+" lists")) {
						t.Errorf("%s: exit %d, %s%s", named, r.code, r.stdout, r.stderr)
					}
					if !ok && (r.code != exitDiffers || !strings.Contains(r.stdout, says+" says "+digest)) {
						t.Errorf("%s: a flipped bit: exit %d, %s%s", named, r.code, r.stdout, r.stderr)
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
	succeed(t, "prune", "--keep", "16", "--source-pin", "source.pin.json.zst", "-o", "out", "source")
	pin, err := manifest.ReadPin("source.pin.json.zst")
	if err != nil {
		t.Fatal(err)
	}
	if out := succeed(t, "verify", "--source", "source", "--source-digest", pin.PinDigest.String(), "out"); !strings.Contains(out, "unproven        0 bytes") {
		t.Errorf("with the source: %s", out)
	}
	if r := ggufreap(t, "verify", "--source", "source", "--source-digest", "blake3:"+strings.Repeat("0", 64), "out"); r.code != exitFailed || !strings.Contains(r.stderr, "it is another pin") {
		t.Errorf("with another digest: exit %d, %s", r.code, r.stderr)
	}
	data, err := os.ReadFile("source.pin.json.zst")
	if err != nil {
		t.Fatal(err)
	}
	writeText(t, "out/K3.pin.json.zst", string(data))
	out := succeed(t, "verify", "out")
	if !strings.Contains(out, "K3.pin.json.zst: is the pin of the source, and was used") || !strings.Contains(out, "unproven        0 bytes") || !strings.Contains(out, "the one that the release itself states") {
		t.Errorf("with a pin in the folder: %s", out)
	}
	if out := succeed(t, "verify", "--source-digest", pin.PinDigest.String(), "out"); strings.Contains(out, "the one that the release itself states") {
		t.Errorf("with the digest from elsewhere: %s", out)
	}
}

// TestVerifyNamesUnfinishedDownloads lays beside models what programs that download leave.
func TestVerifyNamesUnfinishedDownloads(t *testing.T) {
	shards := func(t *testing.T) (string, []string) {
		dir := t.TempDir()
		paths, err := smallK3().Write(dir, gguf.Split{Shards: 3})
		if err != nil {
			t.Fatal(err)
		}
		return dir, paths
	}
	for _, suffix := range []string{".aria2", ".part", ".incomplete", ".crdownload", ".!qB", ".download", ".partial", ".0123456789abcdef.incomplete"} {
		t.Run(suffix, func(t *testing.T) {
			dir, paths := shards(t)
			writeText(t, paths[1]+suffix, "x")
			for _, named := range []string{dir, paths[0]} {
				r := ggufreap(t, "verify", named)
				if r.code != exitDiffers || !strings.Contains(r.stdout, filepath.Base(paths[1])+": may not be whole: ") {
					t.Errorf("beside: exit %d, %s%s", r.code, r.stdout, r.stderr)
				}
			}
			os.Remove(paths[1])
			for _, named := range []string{dir, paths[0]} {
				r := ggufreap(t, "verify", named)
				if r.code != exitDiffers || !strings.Contains(r.stdout, "is part of a download of") {
					t.Errorf("in its place: exit %d, %s%s", r.code, r.stdout, r.stderr)
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
	writeText(t, paths[2], string(data))
	if r := ggufreap(t, "verify", dir); r.code != exitDiffers || !strings.Contains(r.stdout, "bytes of zero: downloads that were not finished look so") {
		t.Errorf("zeros: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
}
