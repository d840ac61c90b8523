package llama

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/ebitengine/purego"
	yzma "github.com/hybridgroup/yzma/pkg/llama"
)

// NoToken stands for a token that a vocabulary does not have.
const NoToken = -1

// A Vocabulary is what a model makes tokens of.
type Vocabulary struct {
	Size int
	BOS  int // NoToken where there is none
	// AddBOS says whether a text begins with BOS.
	AddBOS bool
	// None marks a model without a tokenizer, which takes ids only.
	None bool
}

// Vocabulary describes the model's vocabulary.
func (m *Model) Vocabulary() Vocabulary {
	v := yzma.ModelGetVocab(m.handle)
	return Vocabulary{
		Size: m.vocab, BOS: int(yzma.VocabBOS(v)), AddBOS: yzma.VocabGetAddBOS(v),
		None: yzma.GetVocabType(v) == yzma.VocabTypeNone,
	}
}

// EndsGeneration reports whether a token ends what a model writes.
func (m *Model) EndsGeneration(token int) bool {
	return yzma.VocabIsEOG(yzma.ModelGetVocab(m.handle), yzma.Token(token))
}

// ContextLength is the number of tokens that the model was trained on.
func (m *Model) ContextLength() int { return int(yzma.ModelNCtxTrain(m.handle)) }

// ChatTemplate returns the template that the model's file holds, "" for none.
func (m *Model) ChatTemplate() string { return yzma.ModelChatTemplate(m.handle, "") }

// tokenize is llama_tokenize, which yzma calls with text up to the first NUL only.
var tokenize func(vocab uintptr, text unsafe.Pointer, length int32, tokens unsafe.Pointer, most int32, addSpecial, parseSpecial bool) int32

// Tokenize returns the tokens of a text, without BOS and EOS. With special, text that spells
// a special token becomes that token.
func (m *Model) Tokenize(text string, special bool) ([]int, error) {
	switch {
	case text == "":
		return nil, nil
	case !utf8.ValidString(text):
		return nil, fmt.Errorf("byte %d of the text is not UTF-8", firstInvalid(text))
	case len(text) > math.MaxInt32/2:
		return nil, fmt.Errorf("text of %d bytes, llama.cpp takes %d at a time", len(text), math.MaxInt32/2)
	case m.Vocabulary().None:
		return nil, errors.New("the model has no tokenizer: it takes token ids only")
	}
	if err := bindTokenize(); err != nil {
		return nil, err
	}
	vocab, data := uintptr(yzma.ModelGetVocab(m.handle)), unsafe.Pointer(unsafe.StringData(text))
	tokens := make([]int32, len(text)/2+16)
	for {
		n := tokenize(vocab, data, int32(len(text)), unsafe.Pointer(&tokens[0]), int32(len(tokens)), false, special)
		switch {
		case n >= 0:
			ids := make([]int, n)
			for i := range ids {
				ids[i] = int(tokens[i])
			}
			return ids, nil
		case n == math.MinInt32 || int(-n) <= len(tokens):
			return nil, fmt.Errorf("llama.cpp makes no tokens of the text (%d)", n)
		}
		tokens = make([]int32, -n)
	}
}

func bindTokenize() error {
	if tokenize != nil {
		return nil
	}
	lib, err := engine.shared("libllama")
	if err == nil {
		purego.RegisterLibFunc(&tokenize, lib, "llama_tokenize")
	}
	return err
}

// firstInvalid returns the place of the first byte that is not UTF-8.
func firstInvalid(text string) int {
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
			return i
		}
	}
	return len(text)
}

// Text returns what tokens stand for, as far as they are text.
func (m *Model) Text(tokens []int) string {
	ids := make([]yzma.Token, len(tokens))
	for i, id := range tokens {
		ids[i] = yzma.Token(id)
	}
	return yzma.Detokenize(yzma.ModelGetVocab(m.handle), ids, false, true)
}

// A Message is one turn of a conversation.
type Message struct{ Role, Content string }

// ApplyTemplate writes a conversation as a chat template of llama.cpp's own list does: it
// knows templates by their text or name and does not run them.
func (m *Model) ApplyTemplate(template string, messages []Message) (string, error) {
	chat := make([]yzma.ChatMessage, len(messages))
	size := 1024
	for i, message := range messages {
		chat[i] = yzma.NewChatMessage(message.Role, message.Content)
		size += len(message.Role) + 2*len(message.Content) + 64
	}
	for {
		buf := make([]byte, size)
		n := int(yzma.ChatApplyTemplate(template, chat, false, buf))
		switch {
		case n <= 0:
			return "", errors.New("llama.cpp does not know the model's chat template: write the text with the template applied, as plain text")
		case n <= len(buf):
			return string(buf[:n]), nil
		}
		size = n
	}
}
