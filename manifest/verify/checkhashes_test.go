package verify

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/modeltest"
	"ggufreap/manifest/lists"
)

func mustHashes(t testing.TB, text string) lists.GGUFHashes {
	t.Helper()
	rows, err := lists.ReadGGUFHashes(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestCheckAgainstGGUFHashes(t *testing.T) {
	m := modeltest.Open(t, modeltest.Write(t, t.TempDir(), "x", modeltest.ABC(), gguf.Split{})[0])
	renamed := modeltest.Open(t, modeltest.Write(t, t.TempDir(), "renamed", modeltest.ABC(), gguf.Split{})[0])
	for name, edit := range map[string]func(s string) string{
		"as printed":   func(s string) string { return s },
		"CRLF":         func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"of Windows":   func(s string) string { return strings.ReplaceAll(s, "models/", `C:\my models\`) },
		"without path": func(s string) string { return strings.ReplaceAll(s, "models/", "") },
	} {
		rows := mustHashes(t, edit(modeltest.ABCHashes))
		for _, m := range []*gguf.Model{m, renamed} {
			r := mustCheck(t, m, rows, CheckOptions{})
			if !r.OK() || !says(r.Checked, "9 of 9 are as the manifest says (sha1, sha256, xxh64)") || !says(gapTexts(r), "data of tensors only") {
				t.Errorf("%s: %s: got %+v", name, m.Name, r)
			}
		}
	}
}

func TestCheckAgainstWrongGGUFHashes(t *testing.T) {
	m := modeltest.Open(t, modeltest.Write(t, t.TempDir(), "x", modeltest.ABC(), gguf.Split{})[0])
	for name, test := range map[string]struct {
		manifest string
		want     []Finding
		gaps     []string
	}{
		"tensor": {strings.Replace(modeltest.ABCHashes, "44bc", "44bd", 1),
			[]Finding{finding(KindDigest, "x.gguf", "second", manifest.NoExpert, "xxh64 is 44bc2cf5ad770999, the manifest says 44bd2cf5ad770999")}, nil},
		"whole": {strings.Replace(modeltest.ABCHashes, "84bb", "94bb", 1),
			[]Finding{finding(KindDigest, "x.gguf", "", manifest.NoExpert, "of all tensors together sha1 is 84bb")}, nil},
		"more tensors": {modeltest.ABCHashes + "xxh64     d24ec4f1a98c6e5b  models/x.gguf:third\n",
			[]Finding{finding(KindMissing, "x.gguf", "third", manifest.NoExpert, "in the manifest and not in the file")}, nil},
		"more files": {modeltest.ABCHashes + "xxh64     d24ec4f1a98c6e5b  models/y.gguf\n",
			[]Finding{finding(KindMissing, "y.gguf", "", manifest.NoExpert, "in the manifest and not in the model")}, nil},
		"fewer tensors": {"xxh64     d24ec4f1a98c6e5b  x.gguf:first\n", nil,
			[]string{"no line for 1 of 2 tensors", "xxh64 is the only hash"}},
		"all tensors and no whole": {func() string {
			var lines string
			for line := range strings.Lines(modeltest.ABCHashes) {
				if strings.Contains(line, ":") {
					lines += line
				}
			}
			return lines
		}(), nil, nil},
		"whole only": {"sha1      84bb906a0633227fc09c15558cda30058d7fb41a  x.gguf\n", nil,
			[]string{"sha1 is the strongest hash"}},
		"uuid": {"uuid      1564ff23-5af6-5504-82a0-5d0f84b16e66  x.gguf\n", nil, []string{"a uuid is all that the manifest has"}},
		"uuid of other data": {"uuid      8c2cdb42-98a0-5bc0-9bb5-9a1db3f7e1a0  x.gguf\nxxh3      d24ec4f1a98c6e5b  x.gguf\n",
			[]Finding{finding(KindDigest, "x.gguf", "", manifest.NoExpert, "of all tensors together uuid is 1564ff235af6550482a05d0f84b16e66")},
			[]string{"lines of xxh3 were not compared: 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := mustCheck(t, m, mustHashes(t, test.manifest), CheckOptions{})
			checkFindings(t, r.Findings, test.want)
			for _, gap := range test.gaps {
				if !says(gapTexts(r), gap) {
					t.Errorf("no gap says %q: %q", gap, gapTexts(r))
				}
			}
			if partly := says(test.gaps, "no line for"); says(gapTexts(r), "no line for") != partly {
				t.Errorf("tensors without a line: want %v, got %q", partly, gapTexts(r))
			}
		})
	}
	for _, none := range []string{"xxh3      d24ec4f1a98c6e5b  x.gguf\n", "sha1      84bb906a0633227fc09c15558cda30058d7fb41a  y.gguf:first\nxxh64     d24ec4f1a98c6e5b  z.gguf\n"} {
		if _, err := Check(context.Background(), m, mustHashes(t, none), CheckOptions{}); !errors.Is(err, ErrNothingCompared) {
			t.Errorf("%q: %v, want ErrNothingCompared", none, err)
		}
	}
	if _, err := Check(context.Background(), m, mustHashes(t, modeltest.ABCHashes), CheckOptions{Quick: true}); err == nil {
		t.Error("digests were checked without reading")
	}
}

// TestGGUFHashesFollowTheTable hashes a file whose data does not lie in the order of its
// table: the whole digest is over the tensors as the table has them.
func TestGGUFHashesFollowTheTable(t *testing.T) {
	path := modeltest.Write(t, t.TempDir(), "x", modeltest.ABC(), gguf.Split{})[0]
	change(t, path, func(data []byte) []byte {
		// Both offsets are in the table, 0 and 32: swap them, and the data with them.
		first := bytes.Index(data, []byte("first")) + 5 + 4 + 8 + 4
		second := bytes.Index(data, []byte("second")) + 6 + 4 + 8 + 4
		data[first], data[second] = 32, 0
		start := len(data) - 64
		a, b := bytes.Clone(data[start:start+32]), bytes.Clone(data[start+32:])
		return slices.Concat(data[:start], b, a)
	})
	r := mustCheck(t, modeltest.Open(t, path), mustHashes(t, modeltest.ABCHashes), CheckOptions{})
	if !r.OK() || !says(r.Checked, "9 of 9") {
		t.Errorf("got %+v", r)
	}
}

// TestGGUFHashesOfNamesWithColons wants a tensor found whose name has colons, be it the
// longest of the model or a part of another.
func TestGGUFHashesOfNamesWithColons(t *testing.T) {
	c := modeltest.ABC()
	c.Views[0].Name, c.Views[1].Name = "a:b:longest", "longest"
	m := modeltest.Open(t, modeltest.Write(t, t.TempDir(), "x", c, gguf.Split{})[0])
	r := mustCheck(t, m, mustHashes(t, strings.NewReplacer(":first", ":a:b:longest", ":second", ":longest").Replace(modeltest.ABCHashes)), CheckOptions{})
	if !r.OK() || !says(r.Checked, "9 of 9 are as the manifest says") {
		t.Errorf("got %+v", r)
	}
}

func TestGGUFHashesOfShards(t *testing.T) {
	m := modeltest.New(t, modeltest.Contents(1), gguf.Split{Shards: 3})
	var first []byte
	for _, workers := range []int{1, 4} {
		var b bytes.Buffer
		var last int64
		if err := lists.WriteGGUFHashes(context.Background(), &b, m, workers, func(done, total int64) { last = total - done }); err != nil {
			t.Fatal(err)
		}
		if last != 0 {
			t.Errorf("progress ends %d bytes short", last)
		}
		if first == nil {
			first = b.Bytes()
		}
		if !bytes.Equal(b.Bytes(), first) {
			t.Errorf("%d workers give another manifest", workers)
		}
	}
	if n := bytes.Count(first, []byte("\n")); n != len(m.Tensors())+3 {
		t.Errorf("%d lines, want %d", n, len(m.Tensors())+3)
	}
	if r := mustCheck(t, m, mustHashes(t, string(first)), CheckOptions{}); !r.OK() || !says(r.Checked, "11 of 11") {
		t.Errorf("got %+v", r)
	}
	swapped := strings.NewReplacer("m-00001", "m-00002", "m-00002", "m-00001").Replace(string(first))
	if r := mustCheck(t, m, mustHashes(t, swapped), CheckOptions{}); r.OK() {
		t.Error("lines of one file were taken for another's")
	}
}
