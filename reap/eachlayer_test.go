package reap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestEachLayer(t *testing.T) {
	e := mustExperts(t, moe(40).model(t))
	var read int64
	got, err := eachLayer(context.Background(), e, RouterNorm, func(n int64) { read += n },
		func(_ context.Context, l *Layer, progress func(int64)) ([]float64, []int, error) {
			progress(int64(l.Block))
			return []float64{float64(l.Block)}, nil, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Blocks(), e.Blocks()) || got.Criterion.Name != RouterNorm || got.Places != nil {
		t.Errorf("%+v", got)
	}
	for block, scores := range got.Layers {
		if scores[0] != float64(block) {
			t.Errorf("block %d has the scores of block %v", block, scores[0])
		}
	}
	if want := int64(40 * 41 / 2); read != want {
		t.Errorf("%d bytes reported, want %d", read, want)
	}
}

// Layers behind one that fails may have failed before it: the first in order counts.
func TestEachLayerFails(t *testing.T) {
	e := mustExperts(t, moe(40).model(t))
	for range 20 {
		_, err := eachLayer(context.Background(), e, RouterNorm, nil, func(ctx context.Context, l *Layer, progress func(int64)) ([]float64, []int, error) {
			progress(1)
			if l.Block == 5 {
				time.Sleep(time.Millisecond) // the next worker has failed by then
			}
			if l.Block == 5 || l.Block == 6 {
				return nil, nil, fmt.Errorf("layer %d is odd", l.Block)
			}
			return nil, nil, ctx.Err()
		})
		if err == nil || err.Error() != "layer 5 is odd" {
			t.Fatalf("error is %v", err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := eachLayer(ctx, e, RouterNorm, nil, func(context.Context, *Layer, func(int64)) ([]float64, []int, error) { return nil, nil, nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Sums side by side are the sums of one row after the other, to the last bit.
func TestScaledNormsSideBySide(t *testing.T) {
	rows := make([][]float64, rowsAtOnce)
	gamma := make([]float64, 1000)
	for j := range gamma {
		gamma[j] = float64(mix64(uint64(j))>>11) / (1 << 40)
		for i := range rows {
			rows[i] = append(rows[i], float64(mix64(uint64(i*1000+j))>>11)/(1<<50)-1)
		}
	}
	for _, g := range [][]float64{gamma, nil} {
		for n := 1; n <= rowsAtOnce; n++ {
			together := scaledNorms(rows[:n], g)
			for i := range n {
				if alone := scaledNorms(rows[i:i+1], g)[0]; together[i] != alone {
					t.Errorf("row %d of %d: %v, alone %v", i, n, together[i], alone)
				}
			}
		}
	}
}

func BenchmarkRouterNorm(b *testing.B) {
	m := moe(1)
	m.find("blk.1.ffn_norm.weight").shape = []uint64{7168}
	m.find("blk.1.ffn_gate_inp.weight").shape = []uint64{7168, 8}
	model := m.model(b)
	e := mustExperts(b, model)
	b.SetBytes(7168 * 8 * 4)
	for b.Loop() {
		if _, err := RouterNormScores(context.Background(), model, e, nil); err != nil {
			b.Fatal(err)
		}
	}
}
