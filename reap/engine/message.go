package engine

import (
	"encoding/binary"
	"fmt"
)

// A Request asks the engine for one thing. The fields that are set belong to Op.
type Request struct {
	Op       string
	Path     string       // OpAccept, OpOpen
	Context  int          // OpAccept: cache for so many tokens is reckoned, when above 0
	Open     *OpenOptions // OpOpen
	Special  bool         // OpTokenize
	Template string       // OpTemplate: "" for the model's own
	Messages []Message    // OpTemplate
	Measure  *Measure     // OpMeasure
	Write    *Write       // OpWrite
	Lengths  []int        // OpMeasure, OpText, OpWrite: of the lists of tokens in the data
}

// What can be asked for.
const (
	OpHello    = "hello"    // who are you? Answered by Hello
	OpAccept   = "accept"   // would llama.cpp load the model? Answered by Verdict
	OpOpen     = "open"     // load it. Answered by Opened
	OpTokenize = "tokenize" // the data is text. Answered by tokens
	OpTemplate = "template" // write a conversation as a text. Answered by text
	OpMeasure  = "measure"  // the data is tokens. Answered by sums
	OpWrite    = "write"    // let the model write on. Answered by tokens, Lengths and Done
	OpText     = "text"     // the data is tokens. Answered by text
	OpClose    = "close"    // free the model
)

// OpenOptions say how a model is loaded; see package llama.
type OpenOptions struct {
	Threads     int
	GPULayers   int
	Devices     []string
	TensorSplit []float32
	RPC         []string
	NoMmap      bool
	// Repack lets llama.cpp lay weights out anew, which takes memory for them beside the
	// mapped files.
	Repack bool
}

// A Message is one turn of a conversation.
type Message struct{ Role, Content string }

// Measure says how sequences of tokens are measured.
type Measure struct {
	Experts int
	Used    map[int]int // experts used for a token, by block that is measured
	Context int         // tokens of a sequence, at most
	Ubatch  int         // tokens computed at a time
	Streams int         // sequences side by side, at most
}

// Write says how a model writes text of its own: documents that begin with BOS, or with a
// random token where there is none. Where it ends a text the next one begins in the same
// document, so that all have their length. Every token is drawn from what the model gives each
// one, at temperature 1. The choice depends on Seed and on the document's number.
type Write struct {
	// Begin begins, with the documents in the data; without it the engine goes on with what it is
	// writing.
	Begin     bool
	Seed      uint64
	Tokens    int     // of the text
	Documents int     // that it consists of
	Streams   int     // documents that are written side by side, at most
	Seconds   float64 // the engine answers after about so many
}

// A Reply is a sign of life, when Alive is set, or the answer to a request. Error is llama.cpp's
// or the engine's reason why there is none.
type Reply struct {
	Alive   *Alive
	Error   string
	Refused bool // the error is llama.cpp's verdict about the model
	Log     []string
	Hello   *Hello
	Verdict *Verdict
	Opened  *Opened
	First   int   // OpWrite: the document that the first list of tokens in the data belongs to
	Lengths []int // OpWrite: of the lists: what this document and those after it got
	Done    bool  // OpWrite: the text is complete
}

// Alive says what has been done of a request. Steps moves as long as llama.cpp works.
type Alive struct {
	Steps uint64
	Share float64 // of the model that is loaded
}

// Hello says who the engine is and what it can do.
type Hello struct {
	Program  string // version of the engine program
	Library  string // folder
	Version  string // of llama.cpp
	GGML     string
	Commit   string
	Devices  []Device
	RPC      bool
	Problem  string   // why llama.cpp cannot be used, "" when it can
	Absent   bool     // the problem is that there is none, and that none was named
	Known    []string // versions of llama.cpp that are known to work
	Searched []string // folders that were looked in, when none was found
}

// Build returns what names the build of llama.cpp.
func (h *Hello) Build() string {
	return fmt.Sprintf("llama.cpp %s (ggml %s, commit %s)", h.Version, h.GGML, h.Commit)
}

// A Device is something that llama.cpp can compute on.
type Device struct {
	Name, Description, Type string
	Free, Total             uint64
}

// A Verdict is llama.cpp's answer about a model whose headers it has seen.
type Verdict struct {
	Weights uint64   // bytes, by its own reckoning
	Devices []string // that would hold them
	Memory  []Memory // what a context takes, when one was asked for
}

// Memory is what a part of a context takes on a device, by llama.cpp's own reckoning.
type Memory struct {
	Part   string // "cache", "recurrent state", "compute"
	Device string
	Bytes  uint64 // to the precision that llama.cpp prints
}

// Opened describes a model that was loaded.
type Opened struct {
	Vocabulary int
	BOS        int // -1 for none
	AddBOS     bool
	NoText     bool // the model has no tokenizer
	Context    int  // tokens that it was trained on
	Template   bool // the model's file has a chat template
}

// appendTokens writes tokens as data: 32 bits each, little-endian.
func appendTokens(b []byte, tokens []int) []byte {
	for _, id := range tokens {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return b
}

// DecodeTokens reads token ids of 32 bits each, little-endian, -1 for none. Bytes that are no whole
// ids are an error.
func DecodeTokens(b []byte) ([]int, error) {
	if len(b)%4 != 0 {
		return nil, fmt.Errorf("%w: %d bytes of tokens", errGarbled, len(b))
	}
	tokens := make([]int, len(b)/4)
	for i := range tokens {
		tokens[i] = int(int32(binary.LittleEndian.Uint32(b[4*i:])))
	}
	return tokens, nil
}

// EncodeTokens writes lists of tokens one after another, 32 bits each, little-endian, and returns
// how many tokens each has.
func EncodeTokens(lists [][]int) (data []byte, lengths []int) {
	for _, list := range lists {
		data = appendTokens(data, list)
		lengths = append(lengths, len(list))
	}
	return data, lengths
}

// SplitTokens reads what [EncodeTokens] wrote. Lengths that do not add up to the data are an error.
func SplitTokens(data []byte, lengths []int) ([][]int, error) {
	tokens, err := DecodeTokens(data)
	if err != nil {
		return nil, err
	}
	lists := make([][]int, len(lengths))
	for i, n := range lengths {
		if n < 0 || n > len(tokens) {
			return nil, fmt.Errorf("%w: a list of %d tokens where %d are left", errGarbled, n, len(tokens))
		}
		lists[i], tokens = tokens[:n:n], tokens[n:]
	}
	if len(tokens) > 0 {
		return nil, fmt.Errorf("%w: %d tokens too many", errGarbled, len(tokens))
	}
	return lists, nil
}
