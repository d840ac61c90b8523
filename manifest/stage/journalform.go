package stage

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ggufreap/gguf/jsondoc"
	"ggufreap/manifest"
)

// journalSchema is that of a journal. Its lines are JSON. The first says what the release
// is and what it is made from. Then each run says that it has begun, and how much of a
// shard is written and synced: the last such line of a shard counts. A line counts once its
// line end is there. One that is not of this form ends what counts, as two runs that no
// lock kept apart can leave it: nothing that a journal says is believed of a file without
// looking.
const journalSchema = "ggufreap/journal/v1"

// maxJournal bounds what is read of a journal. That of a split into as many shards as
// can be, with long names, stays below it.
const maxJournal = 64 << 20

// journalHead is the first line of a journal.
type journalHead struct {
	Schema    string                     `json:"schema"`
	Sources   journalList[journalSource] `json:"sources"`
	Origin    journalList[Fact]          `json:"origin"`
	Shards    journalList[journalShard]  `json:"shards"`
	Documents journalList[string]        `json:"documents"`
}

// maxJournalList bounds what is read of one list: as many shards as a split can have.
const maxJournalList = 1<<16 - 1

// A journalList is decoded up to its first fault only: elements that are not as this program
// writes them take far more memory than text.
type journalList[T any] []T

// UnmarshalJSONFrom decodes a list of at most maxJournalList elements.
func (l *journalList[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if open, err := d.ReadToken(); err != nil || open.Kind() != jsontext.KindBeginArray {
		return cmp.Or(err, errForm)
	}
	*l = journalList[T]{}
	for d.PeekKind() != jsontext.KindEndArray {
		if len(*l) == maxJournalList {
			return fmt.Errorf("a list of more than %d", maxJournalList)
		}
		text, err := d.ReadValue()
		if err != nil {
			return err
		}
		var element T
		if err := parseLine(text, &element); err != nil {
			return err
		}
		*l = append(*l, element)
	}
	_, err := d.ReadToken()
	return err
}

// A journalSource is a source's file as it was when the run began.
type journalSource struct {
	Name     string `json:"name"` // base name
	Size     int64  `json:"size"`
	Modified string `json:"modified,omitempty"` // RFC 3339 in UTC, to the nanosecond
	Identity string `json:"identity,omitempty"` // of a file that is not of this machine
}

// A journalShard is one file that the release will have.
type journalShard struct {
	Name   string       `json:"name"`
	Size   int64        `json:"size"`
	Header manifest.Sum `json:"header"` // BLAKE3 of everything before the data section
	Ranges manifest.Sum `json:"ranges"` // BLAKE3 of a line for each source range: FILE TAB OFFSET TAB LENGTH LF
}

// A journalClaim says that a run has begun. The folder belongs to the last one.
type journalClaim struct {
	Run string `json:"run"` // chosen at random
}

// A journalEntry says that the beginning of a shard is durable.
type journalEntry struct {
	Shard  int          `json:"shard"` // from 1, as in file names
	Size   int64        `json:"size"`  // of the beginning
	SHA256 manifest.Sum `json:"sha256"`
}

// parseJournal reads the lines of a journal and returns where those end that count.
func parseJournal(data []byte) (head *journalHead, kept map[int]beginning, end int64, err error) {
	kept = map[int]beginning{}
	for {
		line, _, whole := bytes.Cut(data[end:], []byte("\n"))
		switch {
		case !whole:
			return head, kept, end, nil
		case head == nil:
			if head, err = parseHead(line); err != nil {
				return nil, nil, 0, fmt.Errorf("line 1: %w", err)
			}
		case !head.take(line, kept):
			return head, kept, end, nil
		}
		end += int64(len(line)) + 1
	}
}

func parseHead(line []byte) (*journalHead, error) {
	var known struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(line, &known); err != nil {
		return nil, jsondoc.ReadError(err)
	}
	if known.Schema != journalSchema {
		return nil, fmt.Errorf("schema is %q, want %q: another version of this program began the release", known.Schema, journalSchema)
	}
	head := &journalHead{}
	return head, parseLine(line, head)
}

// take takes in a line behind the head, and reports false for what is none.
func (h *journalHead) take(line []byte, kept map[int]beginning) bool {
	var claim journalClaim
	if parseLine(line, &claim) == nil {
		return true
	}
	var e journalEntry
	if parseLine(line, &e) != nil || e.Shard < 1 || e.Shard > len(h.Shards) || e.Size < 1 || e.Size > h.Shards[e.Shard-1].Size {
		return false
	}
	kept[e.Shard-1] = beginning{e.Size, e.SHA256}
	return true
}

var errForm = errors.New("is not in the form in which this program writes it")

// parseLine decodes a line into v, and refuses any that is not as v is written.
func parseLine(line []byte, v any) error {
	if err := json.Unmarshal(line, v); err != nil {
		return jsondoc.ReadError(err)
	}
	again, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(line, again) {
		return errForm
	}
	return nil
}
