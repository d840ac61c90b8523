package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/cmd/ggufreap/internal/verification"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
	"ggufreap/manifest/verify"
	"ggufreap/reap"
)

var flips = flag.Int("flips", 65, "how many bits of a release TestFlips flips")

// A region is bytes of a release that are alike.
type region struct {
	name  string
	spans []span
}

// A span is bytes of a file.
type span struct {
	file         string
	offset, size int64
}

// unprotected says which regions, in a release whose pin and list were made anew, hold bits
// that no digest counts, and why.
var unprotected = map[string]string{}

// TestFlips flips single bits of a release, all regions alike: as they are, and with a pin
// and a list of sums that were made anew behind the flip. Each must be found with --strict,
// against the pin of the source; with -v it prints how many were, by region.
func TestFlips(t *testing.T) {
	model := gguftest.K3(gguftest.K3Options{Name: "small", Experts: 8, Used: 2, Layers: 3, Hidden: 64, Latent: 32, Width: 32})
	home := filepath.Dir(writeModel(t, model, 9)[0])
	dir, pin := filepath.Join(t.TempDir(), "release"), filepath.Join(t.TempDir(), "source.pin.json")
	succeed(t, "pin", "-o", pin, home)
	succeed(t, "prune", "--keep", "4", "--criterion", "seeded-random", "--source-pin", pin, "--shards", "9", "-o", dir, home)
	files := folder(t, dir)
	regions := regionsOf(t, dir, files)
	source, err := manifest.ReadPin(pin)
	if err != nil {
		t.Fatal(err)
	}
	const seed = 20261130
	rng := rand.New(rand.NewPCG(seed, 1))
	asIs, anew, all, allAnew := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for n := range *flips {
		r := regions[n%len(regions)]
		at := r.pick(rng)
		bit := byte(1) << rng.IntN(8)
		data := []byte(files[at.file])
		data[at.offset] ^= bit
		writeText(t, filepath.Join(dir, at.file), string(data))
		all[r.name]++
		if found(t, dir, source) {
			asIs[r.name]++
		} else {
			t.Errorf("seed %d: bit %d of byte %d of %s (%s) is missed", seed, bit, at.offset, at.file, r.name)
		}
		if at.file != manifest.PinName && at.file != manifest.SumsName {
			allAnew[r.name]++
			makeAnew(t, dir)
			if found(t, dir, source) {
				anew[r.name]++
			} else if unprotected[r.name] == "" {
				t.Errorf("seed %d: bit %#x of byte %d of %s (%s) is missed when pin and list are made anew", seed, bit, at.offset, at.file, r.name)
			}
		}
		for _, name := range []string{at.file, manifest.PinName, manifest.SumsName} {
			writeText(t, filepath.Join(dir, name), files[name])
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "flips: %d single bits\n%-32s %14s  %s\n", *flips, "region", "found as it is", "found with pin and list made anew")
	for _, r := range regions {
		fmt.Fprintf(&b, "%-32s %6d of %5d  %5d of %5d  %s\n", r.name, asIs[r.name], all[r.name], anew[r.name], allAnew[r.name], unprotected[r.name])
	}
	t.Log(b.String())
}

// pick returns a byte of the region.
func (r region) pick(rng *rand.Rand) span {
	var total int64
	for _, s := range r.spans {
		total += s.size
	}
	at := rng.Int64N(total)
	for _, s := range r.spans {
		if at < s.size {
			return span{s.file, s.offset + at, 1}
		}
		at -= s.size
	}
	panic("behind the last span")
}

// found reports whether verify finds something, or cannot look at the release at all.
func found(t *testing.T, dir string, source *manifest.Pin) bool {
	t.Helper()
	job := &verification.Job{Path: dir, Source: source, Strict: true}
	report, err := verify.Release(t.Context(), dir, verify.Options{Strict: true, Inspect: job.Inspect, Source: source, SourceKey: reap.KeySourcePin,
		Measure: asPin, Prove: job.Prove})
	return err != nil || !report.OK()
}

func asPin(m *gguf.Model) manifest.BuildOptions {
	experts, _ := reap.FindExperts(m)
	return manifest.BuildOptions{Slabs: routedSlabs(experts), IDs: idTables(m, experts, nil)}
}

// makeAnew writes the pin and the list of a release as whoever changed it would. A model that
// can have no pin gets none.
func makeAnew(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, manifest.PinName)
	os.Remove(path)
	if m, err := gguf.Open(dir); err == nil {
		pin, err := manifest.BuildPin(t.Context(), m, asPin(m))
		m.Close()
		var b bytes.Buffer
		if err == nil && manifest.EncodePin(&b, path, pin) == nil {
			writeText(t, path, b.String())
		}
	}
	writeText(t, filepath.Join(dir, manifest.SumsName), programtest.ListFolder(t, dir))
}

// regionsOf sorts the bytes of a release.
func regionsOf(t *testing.T, dir string, files map[string]string) []region {
	t.Helper()
	spans := map[string][]span{}
	add := func(region, file string, from, to int64) {
		if from < to {
			spans[region] = append(spans[region], span{file, from, to - from})
		}
	}
	m := openModel(t, dir)
	experts, faults := reap.FindExperts(m)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	roles := map[string]string{}
	for _, tensor := range experts.Tensors() {
		roles[tensor.Name] = "experts"
		if len(tensor.Shape) < 3 {
			roles[tensor.Name] = "routers and biases"
		}
	}
	for i, f := range m.Files {
		name := filepath.Base(f.Name)
		infos := int64(bytes.Index([]byte(files[name]), []byte(f.Tensors[0].Name))) - 8
		place := "first shard: "
		if i > 0 {
			place = "later shards: "
		}
		add(place+"magic, version, counts", name, 0, 24)
		add(place+"keys and values", name, 24, infos)
		add(place+"table of tensors", name, infos, f.HeaderSize)
		add("padding", name, f.HeaderSize, f.DataOffset)
		for _, tensor := range f.Tensors {
			role := roles[tensor.Name]
			if role == "" {
				role = "other tensors"
			}
			add(role, name, tensor.DataOffset(), tensor.DataOffset()+tensor.Size)
			add("padding", name, tensor.DataOffset()+tensor.Size, tensor.DataOffset()+tensor.Span)
		}
	}
	for _, name := range []string{"plan.json", manifest.PinName, manifest.SumsName} {
		add(name, name, 0, int64(len(files[name])))
	}
	var regions []region
	for name, list := range spans {
		regions = append(regions, region{name, list})
	}
	slices.SortFunc(regions, func(a, b region) int { return strings.Compare(a.name, b.name) })
	return regions
}
