package gguf

// An outlook is what is known of the rest of a header. From far away a header is read in a
// few ranges that hold little else: its length stands nowhere.
type outlook struct {
	pairs   int64 // that were not read to their end
	tensors int64 // of the table
	texts   int64 // left of the array that is being read
	text    int64 // bytes of one, on average
	table   int64 // where the table of tensors begins, 0 before it is reached
	listed  int64 // tensors that were read
}

// What is read of a header far away.
const (
	farFirst = 512     // bytes at first: headers of later shards can be hardly longer
	farMost  = 4 << 20 // bytes at once
	farSlack = 64      // bytes more than are expected

	// pairBytes and tensorBytes are what one takes before any was seen. Pairs with long
	// arrays take more, and are met by their own counts.
	pairBytes   = 64
	tensorBytes = 72
)

// bytes estimates how many bytes of the header follow from offset on. Where the estimate
// has been too low for long, it is at least a part of what was read.
func (o *outlook) bytes(offset int64) int64 {
	if offset == 0 {
		return farFirst
	}
	texts := o.texts * (o.text + 1)
	if offset < texts { // of a long array the first are the shortest: tokens come by frequency
		texts += texts / 2
	}
	rest := texts + o.pairs*pairBytes + o.tableBytes(offset)
	if o.table == 0 {
		rest = max(rest, offset/12) // there may be more arrays
	}
	return min(rest+farSlack, farMost)
}

// tableBytes estimates what is left of the table of tensors. It had rather be too low by
// what another range brings, as long as it rests on few.
func (o *outlook) tableBytes(offset int64) int64 {
	const few = 64
	left := o.tensors - o.listed
	switch {
	case o.listed == 0:
		return left * tensorBytes
	case o.listed < few:
		return left * (offset - o.table) / o.listed * 15 / 16
	}
	return left * ((offset-o.table)/o.listed + 1)
}
