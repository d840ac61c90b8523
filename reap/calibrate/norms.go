package calibrate

import (
	"fmt"
	"math"
	"sync"

	"ggufreap/reap/llama"
)

// Rows are copied out of llama.cpp's memory in slices, so that a layer's output, which can
// have hundreds of megabytes, is never held whole, and workers sum them while llama.cpp goes
// on.
const (
	sliceFloats = 1 << 18 // 1 MiB
	inFlight    = 32      // slices in flight, at most
)

// norms computes sums of squares of rows in the background.
type norms struct {
	work chan job
	free chan []float32
	todo sync.WaitGroup
	done sync.WaitGroup
}

// A job is to sum the squares of each row of data into out.
type job struct {
	data  []float32
	width int
	out   []float64
	root  bool
}

func newNorms(workers int) *norms {
	n := &norms{work: make(chan job, inFlight), free: make(chan []float32, inFlight)}
	for range inFlight {
		n.free <- nil
	}
	for range max(workers, 1) {
		n.done.Go(func() {
			for j := range n.work {
				j.run()
				n.free <- j.data[:0]
				n.todo.Done()
			}
		})
	}
	return n
}

func (n *norms) close() {
	close(n.work)
	n.done.Wait()
}

// wait returns when all that was asked for is computed.
func (n *norms) wait() { n.todo.Wait() }

// squares copies the rows of a tensor and has the sum of squares of each put into out, or,
// with root, the Euclidean norm. out has one number for each row.
func (n *norms) squares(of llama.Node, out []float64, root bool) error {
	shape := of.Shape()
	if shape[1]*shape[2]*shape[3] != int64(len(out)) {
		return fmt.Errorf("%s: shape %v, want %d rows", of.Name(), shape, len(out))
	}
	width := int(shape[0])
	rows := max(sliceFloats/width, 1)
	for first := 0; first < len(out); first += rows {
		count := min(rows, len(out)-first)
		data := <-n.free
		if cap(data) < count*width {
			data = make([]float32, max(count*width, min(sliceFloats, len(out)*width)))
		}
		data = data[:count*width]
		if err := of.Rows(data, first); err != nil {
			n.free <- data
			return err
		}
		n.todo.Add(1)
		n.work <- job{data, width, out[first : first+count], root}
	}
	return nil
}

func (j job) run() {
	for i := range j.out {
		sum := squares(j.data[i*j.width : (i+1)*j.width])
		if j.root {
			sum = math.Sqrt(sum)
		}
		j.out[i] = sum
	}
}

// squares returns the sum of squares in float64: four sums of every fourth number, then
// theirs. The order is fixed and every product is rounded before it is added, so the result
// is the same on every machine.
func squares(row []float32) float64 {
	var a, b, c, d float64
	for ; len(row) >= 4; row = row[4:] {
		v, w, x, y := float64(row[0]), float64(row[1]), float64(row[2]), float64(row[3])
		a += float64(v * v)
		b += float64(w * w)
		c += float64(x * x)
		d += float64(y * y)
	}
	for _, x := range row {
		v := float64(x)
		a += float64(v * v)
	}
	return (a + b) + (c + d)
}
