package stage

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"ggufreap/manifest/stage/internal/disk"
)

var (
	errInjected = errors.New("injected fault")
	errDead     = errors.New("the process is dead")
)

// A memDisk is a disk with room for one folder, in memory. It can fail at any
// operation, end the process there, and knows what the loss of power would leave.
type memDisk struct {
	mu     sync.Mutex
	names  map[string]*memFile // nil when there is no folder
	synced map[string]*memFile // as of the last sync of the folder
	undone []nameChange        // since then
	size   int64               // of the disk; 0 is without bound
	full   error               // of writes beyond it
	lies   bool                // everybody gets every lock
	clones bool                // files can share blocks with those of the system's
	keeps  bool                // no name can be removed, from operation keepsFrom on
	fixed  bool                // as object stores: files have no name until they are closed, and cannot be renamed

	wrote     int64 // bytes into temporary files of shards
	count     int   // of operations
	failAt    int   // the operation that fails
	keepsFrom int
	lostAt    int    // the rename that is done, and whose answer is lost
	dieAt     int    // the operation at which the process dies
	dead      bool   // it did
	other     func() // what another process does before operation otherAt
	otherAt   int
	failed    string // the operation that failed
}

// A nameChange is what one operation did to the folder's names.
type nameChange struct {
	file     *memFile // that was made, or renamed
	from, to string   // "" for none
}

type memFile struct {
	data, synced []byte
	locked       bool
	link         string // the file of the system's that it is, or ""
}

// step counts an operation, which may be the one to fail. The disk is locked.
func (d *memDisk) step(op string) error {
	d.count++
	if d.count == d.otherAt {
		d.mu.Unlock()
		d.other()
		d.mu.Lock()
	}
	switch {
	case d.dead:
		return errDead
	case d.count == d.dieAt:
		d.dead = true
		d.failed = op
		return errDead
	case d.count == d.failAt:
		d.failed = op
		return fmt.Errorf("%s: %w", op, errInjected)
	}
	return nil
}

func (d *memDisk) change(c nameChange) {
	c.apply(d.names)
	d.undone = append(d.undone, c)
}

// apply does to names what the operation did; one that meets other names than it did
// then has no effect.
func (c nameChange) apply(names map[string]*memFile) {
	if c.from != "" {
		if names[c.from] != c.file {
			return
		}
		delete(names, c.from)
	}
	if c.to != "" {
		names[c.to] = c.file
	}
}

// restart is what the next process finds after this one was killed.
func (d *memDisk) restart() {
	for _, f := range d.names {
		f.locked = false
	}
	d.count, d.failAt, d.lostAt, d.dieAt, d.otherAt, d.dead, d.failed = 0, 0, 0, 0, 0, false, ""
}

// cutPower loses what was not synced, or some of it: any change of a name may be lost,
// and of a file's unsynced bytes any may be zeros or missing.
func (d *memDisk) cutPower(rng *rand.Rand) {
	if d.names == nil {
		return
	}
	names := maps.Clone(d.synced)
	for _, c := range d.undone {
		if rng.IntN(2) == 0 {
			c.apply(names)
		}
	}
	d.names = names
	d.synced = maps.Clone(names)
	d.undone = nil
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f := names[name]
		f.data = survivor(rng, f.data, f.synced)
		f.synced = slices.Clone(f.data)
	}
}

// survivor is what is left of a file that holds data, of which synced was synced: where
// both agree from the start, that, and of the rest what chance leaves. A beginning that
// was not synced is thus lost or kept as chance has it, and one that was is never lost.
func survivor(rng *rand.Rand, data, synced []byte) []byte {
	same := 0
	for same < min(len(data), len(synced)) && data[same] == synced[same] {
		same++
	}
	switch n := same + rng.IntN(len(data)-same+1); rng.IntN(4) {
	case 0:
		return slices.Clone(synced)
	case 1:
		return slices.Clone(data)
	case 2, 3:
		if len(data) == len(synced) { // written over: each byte is the old or the new one
			return slices.Concat(data[:n], synced[n:])
		}
	}
	switch n := same + rng.IntN(len(data)-same+1); rng.IntN(2) {
	case 0:
		return slices.Clone(data[:n])
	default:
		left := slices.Clone(data)
		clear(left[n:])
		return left
	}
}

// files returns what the folder holds.
func (d *memDisk) files() map[string]string {
	files := map[string]string{}
	for name, f := range d.names {
		files[name] = string(f.data)
	}
	return files
}

func (d *memDisk) used() int64 {
	var n int64
	for _, f := range d.names {
		n += int64(len(f.data))
	}
	return n
}

func (d *memDisk) Open(string) (disk.Folder, error) {
	if d.names == nil {
		return nil, fs.ErrNotExist
	}
	return memFolder{d}, nil
}

func (d *memDisk) Make(path string) (disk.Folder, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step("make folder"); err != nil {
		return nil, &fs.PathError{Op: "mkdir", Path: path, Err: err}
	}
	if d.names == nil {
		d.names, d.synced = map[string]*memFile{}, map[string]*memFile{}
	}
	return memFolder{d}, nil
}

func (d *memDisk) Remove(string) error {
	if d.dead {
		return errDead
	}
	if len(d.names) > 0 {
		return errors.New("folder is not empty")
	}
	d.names, d.synced, d.undone = nil, nil, nil
	return nil
}

type memFolder struct{ disk *memDisk }

func (f memFolder) List() ([]fs.DirEntry, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	var entries []fs.DirEntry
	for _, name := range slices.SortedFunc(maps.Keys(f.disk.names), cmp.Compare) {
		entries = append(entries, fs.FileInfoToDirEntry(memInfo{name, int64(len(f.disk.names[name].data))}))
	}
	return entries, nil
}

type memInfo struct {
	name string
	size int64
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) Mode() fs.FileMode  { return 0o666 }
func (i memInfo) ModTime() time.Time { return time.Time{} }
func (i memInfo) IsDir() bool        { return false }
func (i memInfo) Sys() any           { return nil }

func (f memFolder) Open(name string) (disk.InputFile, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if file := f.disk.names[name]; file != nil {
		return &memHandle{disk: f.disk, file: file, name: name}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func (f memFolder) Continue(name string, from int64) (disk.OutputFile, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.step("continue"); err != nil {
		return nil, err
	}
	file := f.disk.names[name]
	if file == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &memHandle{disk: f.disk, file: file, name: name, at: from}, nil
}

func (f memFolder) Create(name string) (disk.OutputFile, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.step("create"); err != nil {
		return nil, err
	}
	if f.disk.names[name] != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	file := &memFile{}
	if f.disk.fixed {
		return &memHandle{disk: f.disk, file: file, name: name, unnamed: true}, nil
	}
	f.disk.change(nameChange{file, "", name})
	return &memHandle{disk: f.disk, file: file, name: name}, nil
}

// Link copies a file of the system's, which stays what it is.
func (f memFolder) Link(path, name string) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.step("link"); err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if there := f.disk.names[name]; there != nil {
		if there.link == path {
			return nil
		}
		return &fs.PathError{Op: "link", Path: name, Err: fs.ErrExist}
	}
	f.disk.change(nameChange{&memFile{data: data, synced: data, link: path}, "", name})
	return nil
}

func (f memFolder) Lock(name string) (disk.LockedFile, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.step("lock"); err != nil {
		return nil, err
	}
	file := f.disk.names[name]
	if file == nil {
		file = &memFile{}
		f.disk.change(nameChange{file, "", name})
	}
	if file.locked && !f.disk.lies {
		return nil, disk.ErrLocked
	}
	file.locked = true
	return &memHandle{disk: f.disk, file: file, name: name}, nil
}

func (f memFolder) Rename(from, to string) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.step("rename"); err != nil {
		return err
	}
	if f.disk.fixed {
		return &fs.PathError{Op: "rename", Path: from, Err: errors.ErrUnsupported}
	}
	file := f.disk.names[from]
	if file == nil {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	f.disk.change(nameChange{file, from, to})
	if f.disk.count == f.disk.lostAt { // as NFS: the request is sent again, and then there is no such file
		f.disk.failed = "lost"
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	return nil
}

func (f memFolder) Remove(name string) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	file := f.disk.names[name]
	if file == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	if err := f.disk.step("remove"); err != nil {
		return err
	}
	if f.disk.keeps && f.disk.count >= f.disk.keepsFrom {
		return &fs.PathError{Op: "remove", Path: name, Err: errInjected}
	}
	f.disk.change(nameChange{file, name, ""})
	return nil
}

func (f memFolder) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.step("sync folder"); err != nil {
		return fmt.Errorf("%q: %w", memPath, err)
	}
	f.disk.synced, f.disk.undone = maps.Clone(f.disk.names), nil
	return nil
}

func (f memFolder) Room() (disk.Room, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	r := disk.Room{Free: -1, Block: 512, File: math.MaxInt64}
	if f.disk.size > 0 {
		r.Free = f.disk.size - f.disk.used()
	}
	return r, nil
}

func (f memFolder) Here() error  { return nil }
func (f memFolder) Close() error { return nil }

// A memHandle is an open file.
type memHandle struct {
	disk *memDisk
	file *memFile
	name string
	at   int64 // where the next Write goes

	unnamed bool // until it is closed
}

func (h *memHandle) ReadAt(p []byte, off int64) (int, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return bytes.NewReader(h.file.data).ReadAt(p, off)
}

func (h *memHandle) Size() (int64, error) { return int64(len(h.file.data)), nil }

func (h *memHandle) Write(p []byte) (int, error) {
	n, err := h.WriteAt(p, h.at)
	h.at += int64(n)
	return n, err
}

func (h *memHandle) Named() error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.disk.names[h.name] != h.file && !h.unnamed {
		return &fs.PathError{Op: "stat", Path: h.name, Err: fs.ErrNotExist}
	}
	return nil
}

// WriteAt writes half of p when it fails.
func (h *memHandle) WriteAt(p []byte, off int64) (int, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	err := h.disk.step("write")
	if errors.Is(err, errDead) && h.disk.count != h.disk.dieAt {
		return 0, err
	}
	if err != nil {
		p = p[:len(p)/2]
	}
	more := max(off+int64(len(p))-int64(len(h.file.data)), 0)
	if d := h.disk; d.size > 0 && d.used()+more > d.size {
		return 0, &fs.PathError{Op: "write", Path: h.name, Err: d.full}
	}
	if strings.HasSuffix(h.name, ".gguf"+partSuffix) {
		h.disk.wrote += int64(len(p))
	}
	data := append(slices.Clone(h.file.data), make([]byte, more)...) // a reader may have the old one
	copy(data[off:], p)
	h.file.data = data
	return len(p), err
}

func (h *memHandle) Truncate(size int64) error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if err := h.disk.step("truncate"); err != nil {
		return err
	}
	h.file.data = slices.Clone(h.file.data[:size])
	return nil
}

// Shares tells whether Clone would.
func (f memFolder) Shares(string) bool { return f.disk.clones }

// Clone copies a file of the system's where the disk can clone.
func (h *memHandle) Clone(path string) error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if !h.disk.clones {
		return errors.ErrUnsupported
	}
	if err := h.disk.step("clone"); err != nil {
		return err
	}
	var err error
	h.file.data, err = os.ReadFile(path)
	return err
}

func (h *memHandle) Reserve(int64) error             { return h.op("reserve") }
func (h *memHandle) Drain(int64, int64, int64) error { return h.op("drain") }

func (h *memHandle) Sync() error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if err := h.disk.step("sync"); err != nil {
		return err
	}
	h.file.synced = slices.Clone(h.file.data)
	return nil
}

// Close gives up the lock even when it fails.
func (h *memHandle) Close() error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	h.file.locked = false
	err := h.disk.step("close")
	if h.unnamed && err == nil {
		h.disk.change(nameChange{h.file, "", h.name})
	}
	return err
}

func (h *memHandle) Discard() error {
	err := memFolder{h.disk}.Remove(h.name)
	return errors.Join(err, h.Close())
}

func (h *memHandle) op(op string) error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return h.disk.step(op)
}
