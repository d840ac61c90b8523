package reap

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"testing"

	"ggufreap/gguf"
)

// hashed is a model whose layer 1 looks its experts up by token, as deepseek4 does.
// The router rows of experts 0 to 7 point in directions of 0, 10, 20, ... degrees.
func hashed(table ...int32) *recipe {
	r := moe(2)
	r.remove("blk.1.exp_probs_b")
	r.add("blk.1.ffn_gate_tid2eid.weight", gguf.I32, 2, uint64(len(table)/2)).data = int32s(table...)
	cos := []float32{1, .9848, .9397, .8660, .7660, .6428, .5, .3420}
	sin := []float32{0, .1736, .3420, .5, .6428, .7660, .8660, .9397}
	var rows []float32
	for e := range 8 {
		row := make([]float32, 16)
		length := float32(1 + e%3) // which the cosine does not see
		row[3], row[11] = length*cos[e], length*sin[e]
		rows = append(rows, row...)
	}
	r.find("blk.1.ffn_gate_inp.weight").data = floats(rows...)
	ones := make([]float32, 16)
	for i := range ones {
		ones[i] = 1
	}
	r.find("blk.1.ffn_norm.weight").data = floats(ones...)
	return r
}

func TestIDTable(t *testing.T) {
	r := hashed(
		0, 4, // both kept
		1, 4, // 1 goes to 0, which is nearest
		1, 0, // 1 would go to 0, but the token has it
		6, 7, // 6 goes to 5, 7 then to the next, 4
		5, 5, // kept as it stands
	)
	table := r.find("blk.1.ffn_gate_tid2eid.weight")
	table.shape = append(table.shape, 1) // which makes no other table
	m := r.model(t)
	e := mustExperts(t, m)
	p := planFor(e, 5, 0, 4)

	_, err := Views(context.Background(), m, e, p)
	faults, _ := err.(Faults)
	wantFaults(t, faults, `tensor "blk.1.ffn_gate_tid2eid.weight": 3 of 5 tokens name a dropped expert (4 entries)`)

	p.Rules.DroppedIDs = NearestKept
	out := pruned(t, m, e, p, 1)
	// Old 5, 0, 4 are new 0, 1, 2.
	want := int32s(1, 2, 1, 2, 2, 1, 0, 2, 0, 0)
	if got := tensorBytes(t, out, "blk.1.ffn_gate_tid2eid.weight"); !bytes.Equal(got, want) {
		t.Errorf("table % x, want % x", got, want)
	}
}

// A plan that drops no named expert needs no rule, and new numbers follow the list.
func TestIDTableWithoutDropped(t *testing.T) {
	m := hashed(0, 4, 4, 5, 5, 0).model(t)
	e := mustExperts(t, m)
	out := pruned(t, m, e, planFor(e, 5, 0, 4), 1)
	if got, want := tensorBytes(t, out, "blk.1.ffn_gate_tid2eid.weight"), int32s(1, 2, 2, 0, 0, 1); !bytes.Equal(got, want) {
		t.Errorf("table % x, want % x", got, want)
	}
}

// RemapIDs makes of a table what pruning makes of it.
func TestRemapIDs(t *testing.T) {
	ids := []int32{0, 4, 1, 4, 1, 0, 6, 7, 5, 5}
	m := hashed(ids...).model(t)
	e := mustExperts(t, m)
	p := planFor(e, 5, 0, 4)
	p.Rules.DroppedIDs = NearestKept
	want := tensorBytes(t, pruned(t, m, e, p, 1), "blk.1.ffn_gate_tid2eid.weight")
	i := slices.IndexFunc(e.Layers, func(l *Layer) bool { return l.Block == 1 })
	ranks, err := Nearest(m, e, e.Layers[i], nil)
	if err != nil || len(ranks) != 8*7*2 {
		t.Fatalf("%d bytes of ranks for 8 experts, %v", len(ranks), err)
	}
	nearest := func(expert int) []int {
		list := make([]int, 7)
		for k := range list {
			list[k] = int(binary.LittleEndian.Uint16(ranks[2*(7*expert+k):]))
		}
		return list
	}
	remap := func(table []byte, used int) error {
		return RemapIDs(table, binary.LittleEndian, used, 8, []int{5, 0, 4}, nearest)
	}
	table := int32s(ids...)
	if err := remap(table, 2); err != nil || !bytes.Equal(table, want) {
		t.Errorf("table % x, %v, want % x", table, err, want)
	}
	for used, want := range map[int]string{0: "40 bytes are not rows of 0 ids", 3: "40 bytes are not rows of 3 ids"} {
		if err := remap(int32s(ids...), used); err == nil || err.Error() != want {
			t.Errorf("%d ids in a row: error %v, want %s", used, err, want)
		}
	}
	if err := remap(int32s(0, 4, 0, 4, 0, 9), 2); err == nil || !strings.Contains(err.Error(), "row 2: ") {
		t.Errorf("an unknown expert in row 2: error %v", err)
	}
}

func TestIDTableErrors(t *testing.T) {
	m := hashed(0, 4, 8, 1).model(t)
	e := mustExperts(t, m)
	_, err := Views(context.Background(), m, e, planFor(e, 0, 1, 4))
	if err == nil || !strings.Contains(err.Error(), "row 1: entry 0 is expert 8, want 0 to 7") {
		t.Errorf("error %v", err)
	}
	r := hashed(0, 4)
	r.find("blk.1.ffn_gate_tid2eid.weight").shape = []uint64{1, 2}
	_, faults := FindExperts(r.model(t))
	wantFaults(t, faults, "rows of 1 ids, want 2")
}

// Reads of any place and length see the same bytes as one read of all.
func TestRemappedReadAt(t *testing.T) {
	m := hashed(0, 4, 1, 4, 1, 0, 6, 7, 5, 5).model(t)
	e := mustExperts(t, m)
	p := planFor(e, 5, 0, 4)
	p.Rules.DroppedIDs = NearestKept
	view, err := tableView(context.Background(), m, e, p, e.Layer(1))
	if err != nil {
		t.Fatal(err)
	}
	source := view.Extents[0].Source
	whole := make([]byte, 40)
	if _, err := source.ReadAt(whole, 0); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	for from := range 40 {
		for to := from; to <= 40; to++ {
			part := make([]byte, to-from)
			if _, err := source.ReadAt(part, int64(from)); err != nil && err != io.EOF {
				t.Fatal(err)
			}
			if !bytes.Equal(part, whole[from:to]) {
				t.Errorf("bytes %d to %d: % x, want % x", from, to, part, whole[from:to])
			}
		}
	}
	for _, n := range []int{1, 8, 20} {
		if _, err := source.ReadAt(make([]byte, n), 40); err != io.EOF {
			t.Errorf("reading %d bytes behind the end: %v", n, err)
		}
	}
}
