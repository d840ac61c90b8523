package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

var updatePlans = flag.Bool("update-plans", false, "write testdata/plans.sha256 anew")

// TestSamePlansEverywhere holds the plans of a model and of a set of scores to digests that
// are the same on every machine; "make test-cross" runs it on processors of other kinds.
func TestSamePlansEverywhere(t *testing.T) {
	golden, err := filepath.Abs(filepath.Join("testdata", "plans.sha256"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if _, err := gguftest.K3(gguftest.K3Options{}).Write(".", gguf.Split{Shards: gguftest.K3Shards}); err != nil {
		t.Fatal(err)
	}
	// Headers of the real size, 93 layers of which 92 have 896 experts; scores need no data.
	if _, err := gguftest.K3Real(1536, gguf.IQ1_S).WriteSparse(".", gguf.Split{Shards: gguftest.K3Shards}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("random.npz", randomScores(), 0o666); err != nil {
		t.Fatal(err)
	}
	const small, large = "K3-00001-of-00009.gguf", "Kimi-K3-00001-of-00009.gguf"
	var sums strings.Builder
	for _, p := range []struct {
		name string
		args []string
	}{
		{"fixture-router-mass.json", []string{"--preset", "reap568", "--criterion", "router-mass", small}},
		{"fixture-router-norm.json", []string{"--preset", "reap568", small}},
		{"fixture-seeded-random.json", []string{"--keep", "568", "--criterion", "seeded-random", "--seed", "7", small}},
		{"random-reap-mean.json", []string{"--preset", "reap568", "--from", "random.npz", large}},
		{"random-reap-sum.json", []string{"--keep", "301", "--criterion", "reap-sum", "--from", "random.npz", large}},
		{"random-count.json", []string{"--fit", "250GB", "--criterion", "count", "--from", "random.npz", large}},
		{"random-explained.json", []string{"--preset", "reap568", "--from", "random.npz", "--explain", large}},
	} {
		out := succeed(t, append([]string{"plan", "--json"}, p.args...)...)
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(out)), p.name)
	}
	if *updatePlans {
		if err := os.WriteFile(golden, []byte(sums.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := sums.String(); got != string(want) {
		t.Errorf("plans differ from those of other machines; got\n%swant\n%s", got, want)
	}
}

// randomScores makes an npz of 93 rows of 896 sums and counts: full-precision numbers, ties,
// and experts without tokens. Its first row, a dense layer, is zero.
func randomScores() []byte {
	const rows, experts = 93, 896
	rng := rand.New(rand.NewPCG(93, 896))
	var sums, counts []byte
	for row := range rows {
		for range experts {
			var sum, count float64
			if row > 0 && rng.IntN(50) > 0 {
				count = float64(1 + rng.IntN(200))
				sum = float64(1+rng.IntN(3)) * 0.75 // few values: ties
				if rng.IntN(2) == 0 {
					sum = 100 * rng.Float64()
				}
			}
			sums = binary.LittleEndian.AppendUint64(sums, math.Float64bits(sum))
			counts = binary.LittleEndian.AppendUint64(counts, math.Float64bits(count))
		}
	}
	moe := make([]byte, rows-1)
	for i := range moe {
		moe[i] = byte(i + 1)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range []struct {
		name, descr, shape string
		data               []byte
	}{
		{"saliency", "<f8", fmt.Sprintf("(%d, %d)", rows, experts), sums},
		{"counts", "<f8", fmt.Sprintf("(%d, %d)", rows, experts), counts},
		{"moe_layers", "|u1", fmt.Sprintf("(%d,)", rows-1), moe},
	} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: m.name + ".npy", Method: zip.Store})
		if err != nil {
			panic(err) // writing memory does not fail
		}
		header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", m.descr, m.shape)
		w.Write([]byte("\x93NUMPY\x01\x00"))
		w.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(header))))
		w.Write([]byte(header))
		w.Write(m.data)
	}
	z.Close()
	return b.Bytes()
}
