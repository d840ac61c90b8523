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
	for _, form := range []string{
		"%s.aria2", "%s.part", "%s.incomplete", "%s.crdownload", "%s.!qB", "%s.download", "%s.partial", "%s.0123456789abcdef.incomplete", "%s.download.part", "%s.aria2__temp",
		"%s.fdmdownload", "%s.dtapart", "%s.xltd", "%s.td.cfg", "%s.jc!", "%s.!sync", "%s.lftp-pget-status", "%s.downloading", "%s.unfinished", "%s.1a2B3c4D", "%s_.gstmp",
		".%s.Ab3xYz", ".syncthing.%s.tmp", "~syncthing~%s.tmp", "downloading_%s.part", ".azDownload-01234567-89ab-cdef-0123-456789abcdef-%s",
	} {
		t.Run(form, func(t *testing.T) {
			dir, paths := shards(t)
			programtest.WriteText(t, filepath.Join(dir, fmt.Sprintf(form, filepath.Base(paths[1]))), "x")
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
	programtest.WriteText(t, filepath.Join(dir, "Unconfirmed 1234.crdownload"), "GGUF")
	os.Remove(paths[1])
	if r := programtest.Run(t, "verify", paths[0]); r.Code != programtest.Differs || !strings.Contains(r.Stdout, "missing") {
		t.Errorf("under a name of no file: exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	dir, paths = shards(t)
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

// TestVerifyUsesWhatAHubsProgramNoted lays beside models the records that "hf download" keeps of
// a folder that it downloads into.
func TestVerifyUsesWhatAHubsProgramNoted(t *testing.T) {
	const records = ".cache/huggingface/download"
	top := t.TempDir()
	paths, err := programtest.SmallK3().Write(filepath.Join(top, "Q8_0"), gguf.Split{Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	record := func(file, etag string) {
		path := filepath.Join(top, records, file+".metadata")
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		programtest.WriteText(t, path, strings.Repeat("9", 40)+"\n"+etag+"\n1764547200.5\n")
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		record("Q8_0/"+filepath.Base(path), fmt.Sprintf("%x", sha256.Sum256(data)))
	}
	for _, named := range []string{filepath.Join(top, "Q8_0"), paths[1]} {
		if out := programtest.Succeed(t, "verify", named); strings.Count(out, "sums: 1 of 1 file has the bytes that ../"+records+"/Q8_0/") != 2 {
			t.Errorf("%s", out)
		}
	}
	record("Q8_0/"+filepath.Base(paths[1]), strings.Repeat("0", 64))
	if r := programtest.Run(t, "verify", paths[0]); r.Code != programtest.Differs || !strings.Contains(r.Stdout, ".metadata says 0000") {
		t.Errorf("another sum: exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	record("Q8_0/"+filepath.Base(paths[1]), strings.Repeat("0", 40)) // the name of a git object
	part := filepath.Join(top, "Q8_0", records, "0123.incomplete")
	if err := os.MkdirAll(filepath.Dir(part), 0o777); err != nil {
		t.Fatal(err)
	}
	programtest.WriteText(t, part, "x")
	if r := programtest.Run(t, "verify", paths[0]); r.Code != programtest.OK || !strings.Contains(r.Stdout, `1 file of downloads that are not finished: "0123.incomplete"`) {
		t.Errorf("a git object: exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
}
