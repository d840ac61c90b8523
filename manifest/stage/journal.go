package stage

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ggufreap/gguf/jsondoc"
	"ggufreap/manifest"
	"ggufreap/manifest/stage/internal/disk"
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

// A beginning is how much of a shard is durable: all of it once size is the shard's.
type beginning struct {
	size int64
	sum  manifest.Sum
}

// A journal is the file [manifest.JournalName], locked and being added to.
type journal struct {
	file disk.LockedFile

	mu    sync.Mutex
	end   int64             // where the next line goes
	claim journalLine       // of this run
	kept  map[int]beginning // by shard, from 0
	err   error             // the first of adding; it sticks
}

// A journalLine is where a line stands.
type journalLine struct {
	offset int64
	text   []byte
}

// lockJournal opens the journal of a folder, or makes an empty one, and returns its
// head, nil when it has none.
func lockJournal(f disk.Folder) (*journal, *journalHead, error) {
	file, err := f.Lock(manifest.JournalName)
	if err != nil {
		return nil, nil, err
	}
	j := &journal{file: file, kept: map[int]beginning{}}
	head, err := j.read()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", manifest.JournalName, err), file.Close())
	}
	return j, head, nil
}

// read takes in what the file holds.
func (j *journal) read() (*journalHead, error) {
	size, err := j.file.Size()
	if err != nil {
		return nil, err
	}
	if size > maxJournal {
		return nil, fmt.Errorf("has %d bytes, want at most %d", size, maxJournal)
	}
	data := make([]byte, size)
	if _, err := j.file.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var head *journalHead
	head, j.kept, j.end, err = parseJournal(data)
	return head, err
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

// begin claims the folder for this run, for the release with this head. It goes on behind
// the lines that count, and writes the head where there is none.
func (j *journal) begin(head *journalHead) error {
	var lines []byte
	if j.end == 0 {
		text, err := json.Marshal(head)
		if err != nil {
			return err
		}
		lines = append(text, '\n')
	}
	text, err := json.Marshal(journalClaim{rand.Text()})
	if err != nil {
		return err
	}
	j.claim = journalLine{j.end + int64(len(lines)), append(text, '\n')}
	j.err = j.write(append(lines, j.claim.text...))
	return j.err
}

// keep notes that the beginning of a shard is durable.
func (j *journal) keep(shard int, b beginning) error {
	line, err := json.Marshal(journalEntry{shard + 1, b.size, b.sum})
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = j.mine()
	}
	if j.err == nil {
		j.err = j.write(append(line, '\n'))
	}
	if j.err == nil {
		j.kept[shard] = b
	}
	return j.err
}

// write writes lines over whatever follows those that count, and syncs them.
func (j *journal) write(lines []byte) error {
	if err := j.file.Truncate(j.end); err != nil {
		return err
	}
	if _, err := j.file.WriteAt(lines, j.end); err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	j.end += int64(len(lines))
	return nil
}

// giveBack leaves the journal as it was: what holds nothing is removed.
func (j *journal) giveBack() error {
	if size, err := j.file.Size(); err == nil && size == 0 {
		return j.file.Discard()
	}
	return j.file.Close()
}

// errTaken says that the journal is no longer as this run left it.
var errTaken = errors.New("another run has written to it: this file system's locks keep nobody out")

// mine returns an error when another run has claimed the folder since this one did. Where
// locks do what they say, none can; some network file systems grant them to everybody.
func (j *journal) mine() error {
	if err := j.file.Named(); err != nil {
		return fmt.Errorf("%w (%w)", errTaken, err)
	}
	size, err := j.file.Size()
	if err != nil {
		return err
	}
	claim := make([]byte, len(j.claim.text))
	if _, err := j.file.ReadAt(claim, j.claim.offset); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if size != j.end || !bytes.Equal(claim, j.claim.text) {
		return errTaken
	}
	return nil
}

// check is mine for other goroutines.
func (j *journal) check() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = j.mine()
	}
	return j.err
}

// taken reports whether another run was found to have written to the journal.
func (j *journal) taken() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return errors.Is(j.err, errTaken)
}

// crowded reports that the journal has taken half the room that it may have: only what
// bounds the bytes that are written again is noted from then on.
func (j *journal) crowded() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.end > maxJournal/2
}

// beginning returns how much of a shard is durable.
func (j *journal) beginning(shard int) beginning {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.kept[shard]
}

// forget takes back that anything of a shard is durable. Its lines stay; the file that
// they speak of is gone or will fail its check again.
func (j *journal) forget(shard int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.kept, shard)
}

// bytes returns how much of all shards is durable.
func (j *journal) bytes() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	var n int64
	for _, b := range j.kept {
		n += b.size
	}
	return n
}
