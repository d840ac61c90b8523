package reap_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"ggufreap/reap"
)

// perExpert matches names after "blk.N." of what must follow a keep list. It is written by
// hand, not taken from the table that is tested here.
var perExpert = regexp.MustCompile(`^(ffn_(gate|up|down|gate_up)_exps\.(weight|bias|scale|input_scale)|ffn_gate_inp\.(weight|bias)|exp_probs_b(\.bias)?)$`)

// checkBytes compares every tensor of a release with the generator's output, cut by name.
func (j judgement) checkBytes(t *testing.T, plan *reap.Plan, r release) {
	t.Helper()
	if len(r.views) != len(j.spec.Tensors) {
		t.Fatalf("%d tensors, want %d", len(r.views), len(j.spec.Tensors))
	}
	for i, v := range r.views {
		if name := j.spec.Tensors[i].Name; v.Name != name {
			t.Fatalf("tensor %d is %q, want %q", i, v.Name, name)
		}
		var block int
		var name string
		fmt.Sscanf(v.Name, "blk.%d.%s", &block, &name)
		source, got := specBytes(t, j.spec, v.Name), viewBytes(t, v)
		keep := plan.Layers[block]
		switch {
		case name == string(reap.IDTable):
			checkTable(t, source, oldIDs(t, r, v.Name, keep), keep)
			continue
		case perExpert.MatchString(name):
			slab := len(source) / plan.NumExperts
			var kept []byte
			for _, id := range keep {
				kept = append(kept, source[id*slab:(id+1)*slab]...)
			}
			source = kept
		}
		if !bytes.Equal(got, source) {
			t.Errorf("tensor %q differs from the source's kept slabs", v.Name)
		}
	}
}

// checkTable wants kept ids where they were, and kept ones in place of dropped ones, none
// of them twice for a token.
func checkTable(t *testing.T, source, got []byte, keep []int) {
	t.Helper()
	const used = 4
	for token, row := range slices.Collect(slices.Chunk(source, 4*used)) {
		seen := map[int]bool{}
		for i := range used {
			old := int(binary.LittleEndian.Uint32(row[4*i:]))
			now := int(binary.LittleEndian.Uint32(got[4*(token*used+i):]))
			if slices.Contains(keep, old) && now != old || !slices.Contains(keep, now) || seen[now] {
				t.Errorf("token %d: expert %d became %d", token, old, now)
			}
			seen[now] = true
		}
	}
}
