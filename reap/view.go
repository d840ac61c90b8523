package reap

import (
	"context"

	"ggufreap/gguf"
)

// Views returns the tensors of the pruned model in the order of the source: routed
// tensors as the slabs that the plan keeps, in its order, everything else whole. A
// plan that does not fit the model is refused with all its [Faults].
//
// Nothing is read but id tables (deepseek4), which are looked through for entries that
// point to dropped experts; see [NearestKept].
func Views(ctx context.Context, m *gguf.Model, e *Experts, p *Plan) ([]gguf.View, error) {
	if err := p.Check(e).Err(); err != nil {
		return nil, err
	}
	routed := map[*gguf.Tensor]routedTensor{}
	for l, t := range e.Tensors() {
		routed[t.Tensor] = routedTensor{t, l}
	}
	views := make([]gguf.View, 0, len(m.Tensors()))
	var faults Faults
	for _, t := range m.Tensors() {
		r, ok := routed[t]
		switch {
		case !ok:
			views = append(views, t.View())
		case r.Role == IDTable:
			view, err := tableView(ctx, m, e, p, r.layer)
			if err != nil {
				faults.Add(tensorPlace(t), "%v", err)
			}
			views = append(views, view)
		default:
			views = append(views, keepSlabs(r.RoutedTensor, p.Layers[r.layer.Block]))
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return views, nil
}

// Outline returns views with the names, types, shapes and sizes that every plan has that
// keeps so many experts: good for a layout, not for writing.
func Outline(m *gguf.Model, e *Experts, keep int) []gguf.View {
	routed := map[*gguf.Tensor]*RoutedTensor{}
	for _, t := range e.Tensors() {
		routed[t.Tensor] = t
	}
	views := make([]gguf.View, 0, len(m.Tensors()))
	for _, t := range m.Tensors() {
		view := t.View()
		if r := routed[t]; r != nil && r.SlabBytes > 0 {
			view.Shape = r.withExperts(keep)
			view.Extents[0].Length = r.SlabBytes * int64(keep)
		}
		views = append(views, view)
	}
	return views
}

type routedTensor struct {
	*RoutedTensor
	layer *Layer
}

// keepSlabs views the slabs of a tensor with the given old ids as a new tensor.
// Neighbouring slabs become one extent.
func keepSlabs(t *RoutedTensor, keep []int) gguf.View {
	whole := t.View()
	view := gguf.View{Name: t.Name, Type: t.Type, Shape: t.withExperts(len(keep))}
	for _, id := range keep {
		for _, extent := range whole.Extents { // one, or none for an empty tensor
			view.Append(gguf.Extent{
				Source: extent.Source,
				Offset: extent.Offset + int64(id)*t.SlabBytes,
				Length: t.SlabBytes,
			})
		}
	}
	return view
}
