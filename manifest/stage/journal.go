package stage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"ggufreap/manifest"
	"ggufreap/manifest/stage/internal/disk"
)

// journalSchema is that of a journal. Its lines are JSON: the first says what the release
// is and what it is made from, each other that one shard is written and synced. A line
// counts once its line end is there; for a shard with several lines the last one counts.
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

// UnmarshalJSON decodes a list of at most maxJournalList elements.
func (l *journalList[T]) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		*l = nil // null; whether anything else is as it is written is for parseLine to see
		return err
	}
	*l = journalList[T]{}
	for d.More() {
		if len(*l) == maxJournalList {
			return fmt.Errorf("a list of more than %d", maxJournalList)
		}
		var text json.RawMessage
		if err := d.Decode(&text); err != nil {
			return err
		}
		var element T
		if err := parseLine(text, &element); err != nil {
			return err
		}
		*l = append(*l, element)
	}
	return nil
}

// A journalSource is a source's file as it was when the run began.
type journalSource struct {
	Name     string `json:"name"` // base name
	Size     int64  `json:"size"`
	Modified string `json:"modified"` // RFC 3339 in UTC, to the nanosecond
}

// A journalShard is one file that the release will have.
type journalShard struct {
	Name   string       `json:"name"`
	Size   int64        `json:"size"`
	Header manifest.Sum `json:"header"` // BLAKE3 of everything before the data section
	Ranges manifest.Sum `json:"ranges"` // BLAKE3 of a line for each source range: FILE TAB OFFSET TAB LENGTH LF
}

// journalEntry is any other line.
type journalEntry struct {
	Shard  int          `json:"shard"` // from 1, as in file names
	SHA256 manifest.Sum `json:"sha256"`
}

// A journal is the file [manifest.JournalName], locked and being added to.
type journal struct {
	file disk.LockedFile

	mu       sync.Mutex
	end      int64                // where the next line goes
	finished map[int]manifest.Sum // by shard, from 0
	err      error                // the first of adding; it sticks
}

// lockJournal opens the journal of a folder, or makes an empty one, and returns its
// head, nil when it has none.
func lockJournal(f disk.Folder) (*journal, *journalHead, error) {
	file, err := f.Lock(manifest.JournalName)
	if err != nil {
		return nil, nil, err
	}
	j := &journal{file: file, finished: map[int]manifest.Sum{}}
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
	head, j.finished, j.end, err = parseJournal(data)
	return head, err
}

// parseJournal reads the lines of a journal and returns where the last whole one ends.
// What follows it was being written when the run ended, and is left out.
func parseJournal(data []byte) (head *journalHead, finished map[int]manifest.Sum, end int64, err error) {
	finished = map[int]manifest.Sum{}
	for number := 1; ; number++ {
		line, _, whole := bytes.Cut(data[end:], []byte("\n"))
		if !whole {
			return head, finished, end, nil
		}
		if head == nil {
			head, err = parseHead(line)
		} else {
			err = parseEntry(line, len(head.Shards), finished)
		}
		if err != nil {
			return nil, nil, 0, fmt.Errorf("line %d: %w", number, err)
		}
		end += int64(len(line)) + 1
	}
}

func parseHead(line []byte) (*journalHead, error) {
	var known struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(line, &known); err != nil {
		return nil, err
	}
	if known.Schema != journalSchema {
		return nil, fmt.Errorf("schema is %q, want %q: another version of this program began the release", known.Schema, journalSchema)
	}
	head := &journalHead{}
	return head, parseLine(line, head)
}

func parseEntry(line []byte, shards int, finished map[int]manifest.Sum) error {
	var e journalEntry
	if err := parseLine(line, &e); err != nil {
		return err
	}
	if e.Shard < 1 || e.Shard > shards {
		return fmt.Errorf("shard is %d, want 1 to %d", e.Shard, shards)
	}
	finished[e.Shard-1] = e.SHA256
	return nil
}

// parseLine decodes a line into v, and refuses any that is not as v is written.
func parseLine(line []byte, v any) error {
	if err := json.Unmarshal(line, v); err != nil {
		return err
	}
	again, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(line, again) {
		return errors.New("is not in the form in which this program writes it")
	}
	return nil
}

// begin writes the head, in place of whatever the file holds.
func (j *journal) begin(head *journalHead) error {
	line, err := json.Marshal(head)
	if err != nil {
		return err
	}
	j.end, j.finished = 0, map[int]manifest.Sum{}
	return j.add(line)
}

// finish notes that a shard, which has this sum, is written and synced.
func (j *journal) finish(shard int, sum manifest.Sum) error {
	line, err := json.Marshal(journalEntry{shard + 1, sum})
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.add(line); err != nil {
		return err
	}
	j.finished[shard] = sum
	return nil
}

// add writes a line over whatever follows the last whole one, and syncs it.
func (j *journal) add(line []byte) error {
	if j.err != nil {
		return j.err
	}
	if j.err = j.file.Truncate(j.end); j.err != nil {
		return j.err
	}
	line = append(line, '\n')
	if _, j.err = j.file.WriteAt(line, j.end); j.err != nil {
		return j.err
	}
	if j.err = j.file.Sync(); j.err == nil {
		j.end += int64(len(line))
	}
	return j.err
}

// sum returns the sum of a finished shard.
func (j *journal) sum(shard int) (manifest.Sum, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	sum, ok := j.finished[shard]
	return sum, ok
}

// forget takes back that a shard is finished. Its line stays; the file that it speaks of
// is gone or will fail its check again.
func (j *journal) forget(shard int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.finished, shard)
}

// count returns how many shards are finished.
func (j *journal) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.finished)
}
