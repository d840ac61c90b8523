package hostile

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"

	"ggufreap/gguf"
	"ggufreap/manifest"
)

// inFolder makes a folder that holds one thing.
func inFolder(name string, make func(string) error) func(string) error {
	return func(path string) error {
		if err := os.Mkdir(path, 0o777); err != nil {
			return err
		}
		return make(filepath.Join(path, name))
	}
}

func content(s string) func(string) error {
	return func(path string) error { return os.WriteFile(path, []byte(s), 0o666) }
}

// sparse is a file of 4 TiB that takes no room.
func sparse(head string) func(string) error {
	return func(path string) error { return errors.Join(content(head)(path), os.Truncate(path, 1<<42)) }
}

// repeated is a head, a part n times, and a tail. Nothing large is held in memory: what
// this process takes would count for the program that it starts.
func repeatedText(head, part string, n int64, tail string) func(string) error {
	return func(path string) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(f, io.MultiReader(strings.NewReader(head), repeat(part, n*int64(len(part))), strings.NewReader(tail)))
		return err
	}
}

// repeat reads as a part over and over, n bytes in all.
func repeat(part string, n int64) io.Reader {
	return io.LimitReader(&repeater{[]byte(strings.Repeat(part, 1<<12)), 0}, n)
}

type repeater struct {
	part []byte
	at   int
}

func (r *repeater) Read(p []byte) (int, error) {
	n := copy(p, r.part[r.at:])
	r.at = (r.at + n) % len(r.part)
	return n, nil
}

// header is the beginning of a GGUF file that states how much is to come.
func header(tensors, keys uint64) func(string) error {
	b := binary.LittleEndian.AppendUint32([]byte("GGUF"), 3)
	b = binary.LittleEndian.AppendUint64(b, tensors)
	b = binary.LittleEndian.AppendUint64(b, keys)
	return content(string(b) + strings.Repeat("\x01\x00\x00\x00\x00\x00\x00\x00", 1000))
}

// list is a folder with a list of sums of such names.
func list(names ...string) func(string) error {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%064d  %s\n", 0, name)
	}
	return inFolder(manifest.SumsName, content(b.String()))
}

// packed is a head and a part n times behind it, in zstd.
func packed(head, part string, n int64) func(string) error {
	return func(path string) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		z, err := zstd.NewWriter(f, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			return err
		}
		if _, err := io.Copy(z, io.MultiReader(strings.NewReader(head), repeat(part, n*int64(len(part))))); err != nil {
			return err
		}
		return z.Close()
	}
}

// array is an npy file of float64 that states a shape and holds so many bytes.
func array(shape string, bytes int64) io.Reader {
	dict := fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': %s, }\n", shape)
	head := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(dict)))
	return io.MultiReader(strings.NewReader(string(head)+dict), repeat("\x00", bytes))
}

func archive(members map[string]io.Reader) func(string) error {
	return func(path string) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		z := zip.NewWriter(f)
		z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
		for _, name := range slices.Sorted(maps.Keys(members)) {
			w, err := z.Create(name)
			if err != nil {
				return err
			}
			if _, err := io.Copy(w, members[name]); err != nil {
				return err
			}
		}
		return z.Close()
	}
}

// emptyExperts is a model with 65536 experts in each of so many layers, none of which has
// a byte.
func emptyExperts(layers int) func(string) error {
	c := gguf.Contents{Version: 3, Metadata: gguf.NewMetadata()}
	c.Metadata.Set("general.architecture", gguf.TextValue("x"))
	c.Metadata.Set("x.expert_count", gguf.Uint32Value(1<<16))
	c.Metadata.Set("x.expert_used_count", gguf.Uint32Value(2))
	for i := range layers {
		c.Views = append(c.Views,
			gguf.View{Name: fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i), Type: gguf.F32, Shape: []uint64{0, 1 << 16}},
			gguf.View{Name: fmt.Sprintf("blk.%d.ffn_up_exps.weight", i), Type: gguf.F32, Shape: []uint64{0, 0, 1 << 16}},
			gguf.View{Name: fmt.Sprintf("blk.%d.ffn_down_exps.weight", i), Type: gguf.F32, Shape: []uint64{0, 0, 1 << 16}})
	}
	return model(c)
}

// manyKeys is a file of nothing but keys.
func manyKeys(size int) func(string) error {
	keys := gguf.NewMetadata()
	for i := range (size - 100) / 19 {
		keys.Set(fmt.Sprintf("%06x", i), gguf.Uint8Value(1))
	}
	return model(gguf.Contents{Version: 3, Metadata: keys})
}

// model is a model of one file.
func model(c gguf.Contents) func(string) error {
	return func(path string) error {
		layout, err := gguf.NewLayout(c, gguf.Split{})
		if err != nil {
			return err
		}
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		return errors.Join(layout.Shards[0].Write(context.Background(), f, make([]byte, 4096), nil), f.Close())
	}
}
