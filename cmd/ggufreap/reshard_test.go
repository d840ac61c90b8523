package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest/stage"
)

// TestReshardAndBack cuts a model in every way, cuts that anew, and merges it into the
// file that it was.
func TestReshardAndBack(t *testing.T) {
	t.Chdir(t.TempDir())
	odd := smallMoE()
	odd.Tensors = append(odd.Tensors,
		gguftest.Tensor{Name: "opaque", Type: 1000, Shape: []uint64{7, 3}, Data: bytes.Repeat([]byte{7}, 64)},
		gguftest.Tensor{Name: "empty", Type: gguf.F32, Shape: []uint64{0}},
		gguftest.Tensor{Name: "scalar", Type: gguf.F32},
	)
	source := write(t, odd, gguf.Split{})[0]
	whole, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string][]string{
		"count":   {"--shards", "5"},
		"size":    {"--max-shard-size", "60kB"},
		"tensors": {"--max-shard-tensors", "1"},
		"empty":   {"--shards", "3", "--empty-first"},
	} {
		t.Run(name, func(t *testing.T) {
			first, second, third := name+"-1", name+"-2", name+"-3"
			succeed(t, slices.Concat([]string{"reshard", "-o", first}, flags, []string{source})...)
			succeed(t, "reshard", "-o", second, "--shards", "2", "--name", "other.gguf", first)
			succeed(t, "reshard", "-o", third, "--shards", "1", "--name", "small", filepath.Join(second, "other-00002-of-00002.gguf"))
			merged, err := os.ReadFile(filepath.Join(third, "small.gguf"))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(merged, whole) {
				t.Error("the merged file is not the one that was split")
			}
			for _, dir := range []string{first, second, third} {
				succeed(t, "verify", dir)
			}
		})
	}
	if now, err := os.ReadFile(source); err != nil || !bytes.Equal(now, whole) {
		t.Error("the source changed")
	}
}

// TestReshardDryRun wants the files of a dry run to be those of a real one, byte for
// byte in size, and nothing to be written.
func TestReshardDryRun(t *testing.T) {
	t.Chdir(t.TempDir())
	source := write(t, smallMoE(), gguf.Split{Shards: 2})[0]
	before := folder(t, ".")
	var planned, written struct {
		Folder      *string
		TensorBytes int64 `json:"tensor_bytes"`
		Shards      []struct {
			File string
			Size int64
		}
	}
	if err := json.Unmarshal([]byte(succeed(t, "reshard", "--json", "--dry-run", "--shards", "4", source)), &planned); err != nil {
		t.Fatal(err)
	}
	if after := folder(t, "."); len(after) != len(before) {
		t.Errorf("a dry run left %d files, there were %d", len(after), len(before))
	}
	if err := json.Unmarshal([]byte(succeed(t, "reshard", "--json", "-o", "out", "--shards", "4", source)), &written); err != nil {
		t.Fatal(err)
	}
	if planned.Folder != nil || written.Folder == nil || !slices.Equal(planned.Shards, written.Shards) || len(planned.Shards) != 4 {
		t.Errorf("planned %+v, written %+v", planned, written)
	}
	for _, s := range planned.Shards {
		info, err := os.Stat(filepath.Join("out", s.File))
		if err != nil || info.Size() != s.Size {
			t.Errorf("%s: %v, want %d bytes", s.File, err, s.Size)
		}
	}
}

// TestReshardKeepsTheWeightsDigest says of a model in any cut that it is the same.
func TestReshardKeepsTheWeightsDigest(t *testing.T) {
	t.Chdir(t.TempDir())
	source := write(t, smallMoE(), gguf.Split{})[0]
	digests := map[string]bool{}
	for _, shards := range []string{"1", "2", "7"} {
		var doc struct {
			WeightsDigest string `json:"weights_digest"`
		}
		if err := json.Unmarshal([]byte(succeed(t, "reshard", "--json", "-o", "out"+shards, "--shards", shards, source)), &doc); err != nil {
			t.Fatal(err)
		}
		digests[doc.WeightsDigest] = true
	}
	if len(digests) != 1 {
		t.Errorf("one model has the digests %v", digests)
	}
}

// TestReshardBesideAnUnfinishedPrune must not be told to go on with what prune began.
func TestReshardBesideAnUnfinishedPrune(t *testing.T) {
	t.Chdir(t.TempDir())
	source := write(t, smallMoE(), gguf.Split{})[0]
	m, err := gguf.Open(source)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	layout, err := gguf.NewLayout(m.Contents(), gguf.Split{Shards: 3})
	if err != nil {
		t.Fatal(err)
	}
	folder, err := stage.Open("out", stage.Release{Stem: "other", Layout: layout}, stage.Options{Sources: m.Paths()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := folder.WriteShards(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	r := ggufreap(t, "reshard", "--shards", "2", "-o", "out", source)
	if r.code != exitFailed || !strings.Contains(r.stderr, "not the same as this one") || strings.Contains(r.stderr, "to go on") {
		t.Errorf("exit %d\n%s", r.code, r.stderr)
	}
}

// TestReshardRepairsSplitKeys has a set whose total does not fit and a whole file with the
// keys of a shard. Tensors stay what they were.
func TestReshardRepairsSplitKeys(t *testing.T) {
	t.Chdir(t.TempDir())
	paths := write(t, smallMoE(), gguf.Split{Shards: 2})
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(data, []byte(gguf.KeySplitTensors)) + len(gguf.KeySplitTensors) + 4
		data[at]++
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	whole := with(smallMoE(), func(md *gguf.Metadata) { md.Set("xplit.count", gguf.Uint16Value(3)) })
	whole.Name = "whole"
	whole.Metadata.Set("xplit.tensors.count", gguf.Int32Value(int32(len(whole.Tensors))))
	writeBytes(t, whole, func(file []byte) []byte { return bytes.ReplaceAll(file, []byte("xplit."), []byte("split.")) })
	for name, shards := range map[string]int{paths[0]: 2, "whole.gguf": 1} {
		if r := ggufreap(t, "reshard", "--shards", "1", "-o", "no", name); r.code == exitOK || !strings.Contains(r.stderr, "--repair-split") {
			t.Errorf("%s: exit %d without the flag: %s", name, r.code, r.stderr)
		}
		out := "out-" + gguf.Stem(name)
		r := ggufreap(t, "reshard", "--repair-split", "-o", out, name)
		if r.code != exitOK || !strings.Contains(r.stderr, "right split keys are written in place of: ") {
			t.Fatalf("%s: exit %d: %s", name, r.code, r.stderr)
		}
		was, err := gguf.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer was.Close()
		is, err := gguf.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		defer is.Close()
		if is.Err() != nil || was.Err() == nil || len(is.Files) != shards || len(is.Tensors()) != len(was.Tensors()) {
			t.Errorf("%s: %d files, %d of %d tensors: before %v, after %v", name, len(is.Files), len(is.Tensors()), len(was.Tensors()), was.Err(), is.Err())
		}
		if total, ok := is.Metadata().Uint(gguf.KeySplitTensors); ok != (shards > 1) || ok && total != uint64(len(is.Tensors())) {
			t.Errorf("%s: the total is %d, %v", name, total, ok)
		}
	}
}

// TestReshardRepairsSwappedNames has the first two shards under each other's names: the keys say
// what comes first, since the metadata stands there, and none of it is lost.
func TestReshardRepairsSwappedNames(t *testing.T) {
	source := writeModel(t, smallK3(), 3)
	dir := t.TempDir()
	for i, name := range []int{1, 0, 2} {
		data, err := os.ReadFile(source[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(source[name])), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	if r := ggufreap(t, "reshard", "--repair-split", "-o", out, dir); r.code != exitOK {
		t.Fatalf("exit %d\n%s", r.code, r.stderr)
	}
	for _, path := range source {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(out, filepath.Base(path))); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what it was under its right name: %v", filepath.Base(path), err)
		}
	}
}

// TestReshardRepairsNumbers has sets of three shards whose numbers and counts contradict each
// other or the names. They are cut anew in the order of their names, and no tensor is lost. Where
// names do not tell either, nothing is written.
func TestReshardRepairsNumbers(t *testing.T) {
	source := writeModel(t, smallK3(), 3)
	want := mustOpenModel(t, source[0])
	for name, numbers := range map[string][3][2]uint16{ // split.no and split.count of each
		"one count":   {{0, 3}, {1, 3}, {2, 4}},
		"all counts":  {{0, 4}, {1, 4}, {2, 4}},
		"twice":       {{0, 3}, {1, 3}, {1, 3}},
		"from 1":      {{1, 3}, {2, 3}, {3, 3}},
		"backwards":   {{2, 3}, {1, 3}, {0, 3}},
		"all of them": {{7, 9}, {7, 2}, {0, 1}},
	} {
		dir := t.TempDir()
		for i, path := range source {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for k, key := range []string{gguf.KeySplitNo, gguf.KeySplitCount} {
				at := bytes.Index(data, []byte(key)) + len(key) + 4
				binary.LittleEndian.PutUint16(data[at:], numbers[i][k])
			}
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		first, out := filepath.Join(dir, filepath.Base(source[0])), filepath.Join(t.TempDir(), "out")
		if r := ggufreap(t, "reshard", "--shards", "1", "-o", out, first); r.code == exitOK || !strings.Contains(r.stderr, "--repair-split") {
			t.Errorf("%s, without the flag: exit %d\n%s", name, r.code, r.stderr)
		}
		if r := ggufreap(t, "reshard", "--repair-split", "-o", out, first); r.code != exitOK || !strings.Contains(r.stderr, "right split keys are written in place of") {
			t.Errorf("%s: exit %d\n%s", name, r.code, r.stderr)
			continue
		}
		got := mustOpenModel(t, out)
		if got.Err() != nil || len(got.Files) != 3 {
			t.Errorf("%s: %v", name, got.Err())
		}
		if r := ggufreap(t, "diff", source[0], out); r.code != exitOK {
			t.Errorf("%s: another model\n%s", name, r.stdout)
		}
		for i, tensor := range want.Tensors() {
			if got.Tensors()[i].Name != tensor.Name {
				t.Fatalf("%s: tensor %d is %q, want %q", name, i, got.Tensors()[i].Name, tensor.Name)
			}
		}
		if err := os.Rename(filepath.Join(dir, filepath.Base(source[1])), filepath.Join(dir, "b.gguf")); err != nil {
			t.Fatal(err)
		}
		if r := ggufreap(t, "reshard", "--repair-split", "-o", out+"2", first); r.code != exitFailed || exists(out+"2") {
			t.Errorf("%s, one renamed: exit %d\n%s", name, r.code, r.stderr)
		}
	}
}
