package stage

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json"

	"ggufreap/manifest"
	"ggufreap/manifest/stage/internal/disk"
)

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
