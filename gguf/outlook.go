package gguf

// An outlook is what is known of the rest of a header. From far away a header is read in a
// few ranges that hold little else: its length stands nowhere.
type outlook struct {
	first   int64 // bytes at first
	pairs   int64 // that were not read to their end
	tensors int64 // of the table
	table   int64 // where the table of tensors begins, 0 before it is reached
	listed  int64 // tensors that were read

	texts      int64 // of the array of strings that is being read, 0 for none
	seen       int64 // of them
	bytes      int64 // of those
	tokens     bool  // it is the vocabulary
	vocabulary vocabulary
}

// A vocabulary is what is known of a tokenizer's tokens, which are most of a header with some.
type vocabulary struct {
	model string // keyTokenizer
	count int64  // of tokens
	token int64  // bytes of a token, on average; 0 before all were read
}

// expected estimates what left tokens take, and what goes with all of them: a type, and a
// merge, which is a token and a space, or a score.
func (v *vocabulary) expected(left, average int64) int64 {
	token := int64(tokenBytes)
	if left < v.count*3/4 { // the first ones are of a kind
		token = max(average, token)
	}
	switch v.model {
	case "gpt2":
		return left*token + v.count*(4+token)
	case "llama", "t5":
		return left*token + v.count*(4+4)
	}
	return left*token + v.count*4
}

// Keys of a vocabulary, as llama.cpp names them.
const (
	keyTokenizer = "tokenizer.ggml.model"
	keyTokens    = "tokenizer.ggml.tokens"
)

// What is read of a header far away.
const (
	farFirst = 512      // bytes at first: headers of later shards can be hardly longer
	farMost  = 16 << 20 // bytes at once
	farSlack = 64       // bytes more than are expected

	// A first shard has the metadata of its model, with a vocabulary of megabytes where the
	// model is large: its first read may be larger, to reach that.
	farFirstOfSet = 16 << 10
	farFirstShare = 1 << 14 // of the file, one byte of so many
	farTextsSlack = 32      // of the strings that are expected, a part of so many more
	// Behind a vocabulary stands a chat template, a byte for so many tokens: at most 16 KB.
	farTemplateShare = 10

	// pairBytes and tensorBytes are what one takes before any was seen. Pairs with long
	// arrays take more, and are met by their own counts. tokenBytes is the least that a token
	// of a large vocabulary takes on average, with its length in 8 bytes: those of GPT-2 have
	// 14.3, and they come by frequency, the short ones first.
	pairBytes   = 64
	tensorBytes = 72
	tokenBytes  = 14
)

// newOutlook returns that on the header of a file.
func newOutlook(file string, size int64) outlook {
	if name, named := parseShardName(file); named && name.no > 1 {
		return outlook{first: farFirst}
	}
	return outlook{first: min(max(size/farFirstShare, farFirst), farFirstOfSet)}
}

// rest estimates how many bytes of the header follow from offset on. Where the estimate
// has been too low for long, it is at least a part of what was read.
func (o *outlook) rest(offset int64) int64 {
	if offset == 0 {
		return o.first
	}
	rest := o.textBytes() + o.pairs*pairBytes + o.tableBytes(offset)
	switch {
	case o.table > 0:
	case o.vocabulary.count > 0:
		rest += o.vocabulary.count / farTemplateShare
	default:
		rest = max(rest, offset/12) // there may be more arrays
	}
	return min(rest+farSlack, farMost)
}

// textBytes estimates what is left of an array of strings, and of what goes with a vocabulary.
func (o *outlook) textBytes() int64 {
	if o.texts == 0 {
		return 0
	}
	left, average := o.texts-o.seen, o.bytes/max(o.seen, 1)+1
	if o.tokens {
		return o.vocabulary.expected(left, average)
	}
	expected := left * average
	if token := o.vocabulary.token; token > 0 { // merges, of which the first are the shortest
		expected = max(expected, o.texts*(token+1)-o.bytes)
	}
	return expected + expected/farTextsSlack
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

// begin says which value is read next.
func (o *outlook) begin(key string, md *Metadata) {
	o.tokens = key == keyTokens
	if o.tokens {
		o.vocabulary.model = md.Text(keyTokenizer)
	}
}

// within says how many bytes the first strings of an array have, of so many.
func (o *outlook) within(texts, seen, bytes int64) {
	o.texts, o.seen, o.bytes = texts, seen, bytes
	if o.tokens {
		o.vocabulary.count = texts
	}
}

// end says how many bytes of how many strings an array had.
func (o *outlook) end(bytes, count int64) {
	if o.tokens && count > 0 {
		o.vocabulary.token = (bytes + count - 1) / count
	}
	o.texts, o.tokens = 0, false
}
