package reap

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"ggufreap/gguf"
)

// NearestKept is the rule that sends an id-table entry of a dropped expert to the kept
// expert whose scaled router row has the greatest cosine with the dropped one's, the
// lower id of equal ones, leaving out those that the token has already. There is no
// exact replacement: the table fixes how many experts a token has.
const NearestKept = "nearest-kept"

// tableView returns the id table of a layer with its old ids replaced by new ones.
// The table is read once here, to find every fault before anything is written, and
// again as the view is written; it is never held as a whole.
func tableView(ctx context.Context, m *gguf.Model, e *Experts, p *Plan, l *Layer) (gguf.View, error) {
	t := l.Tensor(IDTable)
	table := &idTable{order: t.File().Order, used: int(t.Dims()[0]), ids: newIDs(e.Count, p.Layers[l.Block])}
	count, err := table.count(ctx, t.Reader())
	if err != nil {
		return gguf.View{}, err
	}
	if count.entries > 0 {
		if p.Rules.DroppedIDs == "" {
			return gguf.View{}, fmt.Errorf("%d of %d tokens name a dropped expert (%d entries); name a rule such as %q, or keep those experts",
				count.tokens, t.Dims()[1], count.entries, NearestKept)
		}
		if table.nearest, err = nearestKept(m, e, l, table); err != nil {
			return gguf.View{}, err
		}
	}
	view := gguf.View{Name: t.Name, Type: t.Type, Shape: t.Shape}
	view.Append(gguf.Extent{Source: &remapped{t.Reader(), table}, Length: t.Size})
	return view, nil
}

// newIDs maps old expert ids to new ones, -1 for a dropped expert.
func newIDs(count int, keep []int) []int32 {
	ids := make([]int32, count)
	for i := range ids {
		ids[i] = -1
	}
	for i, id := range keep {
		ids[id] = int32(i)
	}
	return ids
}

// An idTable replaces the ids of a table row by row.
type idTable struct {
	order   binary.ByteOrder
	used    int       // ids in a row
	ids     []int32   // new id of each old one, -1 when dropped
	nearest [][]int32 // of each dropped old id: as many kept ones as a row has, nearest first
}

type droppedCount struct{ tokens, entries int }

// count reads a table and counts what points to dropped experts.
func (t *idTable) count(ctx context.Context, r io.Reader) (droppedCount, error) {
	var n droppedCount
	in := bufio.NewReaderSize(r, 1<<16)
	row := make([]byte, 4*t.used)
	for token := 0; ; token++ {
		switch _, err := io.ReadFull(in, row); {
		case err == io.EOF:
			return n, nil
		case err != nil:
			return n, fmt.Errorf("row %d: %w", token, err)
		}
		entries := 0
		for i := range t.used {
			old, err := t.old(row, i)
			if err != nil {
				return n, fmt.Errorf("row %d: %w", token, err)
			}
			if t.ids[old] < 0 {
				entries++
			}
		}
		n.entries += entries
		n.tokens += min(entries, 1)
		if token%4096 == 0 && ctx.Err() != nil {
			return n, ctx.Err()
		}
	}
}

func (t *idTable) old(row []byte, i int) (int, error) {
	id := int32(t.order.Uint32(row[4*i:]))
	if id < 0 || int(id) >= len(t.ids) {
		return 0, fmt.Errorf("entry %d is expert %d, want 0 to %d", i, id, len(t.ids)-1)
	}
	return int(id), nil
}

// remapRow replaces the ids of one row. Kept ids go first, so that a replacement never
// takes the place of an expert that the token has anyway: the engine wants the ids of
// a row to differ.
func (t *idTable) remapRow(row []byte) error {
	taken := make([]bool, len(t.ids)) // old ids
	var dropped []int                 // places in the row
	for i := range t.used {
		old, err := t.old(row, i)
		if err != nil {
			return err
		}
		if t.ids[old] < 0 {
			dropped = append(dropped, i)
			continue
		}
		taken[old] = true
		t.put(row, i, old)
	}
	for _, i := range dropped {
		old, err := t.old(row, i)
		if err != nil {
			return err
		}
		replacement, err := t.replacement(old, taken)
		if err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		taken[replacement] = true
		t.put(row, i, replacement)
	}
	return nil
}

func (t *idTable) replacement(dropped int, taken []bool) (int, error) {
	if t.nearest != nil {
		for _, id := range t.nearest[dropped] {
			if !taken[id] {
				return int(id), nil
			}
		}
	}
	return 0, fmt.Errorf("no kept expert is left for expert %d", dropped)
}

func (t *idTable) put(row []byte, i, old int) {
	t.order.PutUint32(row[4*i:], uint32(t.ids[old]))
}

// remapped reads a table with its ids replaced.
type remapped struct {
	source io.ReaderAt
	table  *idTable
}

// ReadAt replaces the ids of the rows that the range touches.
func (r *remapped) ReadAt(p []byte, off int64) (int, error) {
	size := int64(4 * r.table.used)
	n := 0
	for n < len(p) {
		at := off + int64(n)
		rows := p[n : n+(len(p)-n)/int(size)*int(size)]
		if at%size == 0 && len(rows) > 0 {
			if err := r.rows(rows, at); err != nil {
				return n, err
			}
			n += len(rows)
			continue
		}
		row := make([]byte, size) // the range begins or ends inside it
		if err := r.rows(row, at-at%size); err != nil {
			return n, err
		}
		n += copy(p[n:], row[at%size:])
	}
	return n, nil
}

// rows reads and replaces whole rows.
func (r *remapped) rows(p []byte, off int64) error {
	if n, err := r.source.ReadAt(p, off); n < len(p) {
		return err
	}
	size := 4 * r.table.used
	for i := 0; i < len(p); i += size {
		if err := r.table.remapRow(p[i : i+size]); err != nil {
			return fmt.Errorf("id table row %d: %w", (off+int64(i))/int64(size), err)
		}
	}
	return nil
}

// nearestKept ranks for each dropped expert of a layer the kept ones by the cosine of
// their scaled router rows, in float64 and in a fixed order. A row needs no more of them
// than it has ids.
func nearestKept(m *gguf.Model, e *Experts, l *Layer, table *idTable) ([][]int32, error) {
	rows, err := scaledRows(m, e, l)
	if err != nil {
		return nil, err
	}
	nearest := make([][]int32, len(table.ids))
	for dropped, id := range table.ids {
		if id < 0 {
			nearest[dropped] = byCosine(rows, table.ids, dropped, table.used)
		}
	}
	return nearest, nil
}

// scaledRows returns the scaled router rows of a layer, each of length 1.
func scaledRows(m *gguf.Model, e *Experts, l *Layer) ([][]float64, error) {
	in, err := readRouterInput(m, e.Architecture, l)
	if err != nil {
		return nil, err
	}
	rows := make([][]float64, 0, e.Count)
	err = eachRows(l.Tensor(Router).Tensor, 1, func(_ int, row [][]float64) error {
		rows = append(rows, unit(row[0], in.scale))
		return nil
	})
	return rows, err
}

// Nearest returns for each expert of a layer all others, the nearest first by the rule of
// [NearestKept], as little-endian u16. With it and the source's table, [RemapIDs] makes
// what pruning makes. keep renumbers the experts and leaves the others out; nil keeps all.
func Nearest(m *gguf.Model, e *Experts, l *Layer, keep []int) ([]byte, error) {
	rows, err := scaledRows(m, e, l)
	if err != nil {
		return nil, err
	}
	if keep != nil {
		kept := make([][]float64, len(keep))
		for i, id := range keep {
			kept[i] = rows[id]
		}
		rows = kept
	}
	ids := make([]int32, len(rows)) // all are candidates but the expert itself
	var out []byte
	for i := range rows {
		ids[i] = -1
		for _, id := range byCosine(rows, ids, i, len(rows)-1) {
			out = binary.LittleEndian.AppendUint16(out, uint16(id))
		}
		ids[i] = 0
	}
	return out, nil
}

// RemapIDs replaces the ids of a table, used in each row, as pruning to keep does, in place.
// nearest ranks the other experts of each one, nil where nobody can tell; a row that needs
// it then is an error.
func RemapIDs(table []byte, order binary.ByteOrder, used, count int, keep []int, nearest func(expert int) []int) error {
	t := &idTable{order: order, used: used, ids: newIDs(count, keep), nearest: make([][]int32, count)}
	for dropped, id := range t.ids {
		for _, other := range nearest(dropped) {
			if id < 0 && t.ids[other] >= 0 && len(t.nearest[dropped]) < used {
				t.nearest[dropped] = append(t.nearest[dropped], int32(other))
			}
		}
	}
	if used < 1 || len(table)%(4*used) != 0 {
		return fmt.Errorf("%d bytes are not rows of %d ids", len(table), used)
	}
	for row := 0; row < len(table); row += 4 * used {
		if err := t.remapRow(table[row : row+4*used]); err != nil {
			return fmt.Errorf("row %d: %w", row/4/used, err)
		}
	}
	return nil
}

// unit returns row times gamma scaled to length 1, or zeros.
func unit(row, gamma []float64) []float64 {
	u := make([]float64, len(row))
	norm := scaledNorms([][]float64{row}, gamma)[0]
	if norm == 0 {
		return u
	}
	for j, w := range row {
		if gamma != nil {
			w = float64(w * gamma[j])
		}
		u[j] = w / norm
	}
	return u
}

// byCosine returns the kept experts nearest to a dropped one, at most so many.
func byCosine(rows [][]float64, ids []int32, dropped, most int) []int32 {
	type candidate struct {
		id     int32
		cosine float64
	}
	best := make([]candidate, 0, most+1)
	for id, row := range rows {
		if ids[id] < 0 {
			continue
		}
		c := candidate{int32(id), dot(rows[dropped], row)}
		i, _ := slices.BinarySearchFunc(best, c, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.cosine, a.cosine), cmp.Compare(a.id, b.id))
		})
		if i < most {
			best = slices.Insert(best, i, c)
			best = best[:min(len(best), most)]
		}
	}
	nearest := make([]int32, len(best))
	for i, c := range best {
		nearest[i] = c.id
	}
	return nearest
}

func dot(a, b []float64) float64 {
	var sum float64
	for j := range a {
		sum = float64(sum + float64(a[j]*b[j]))
	}
	if math.IsNaN(sum) {
		return math.Inf(-1)
	}
	return sum
}
