package llama

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"

	yzma "github.com/hybridgroup/yzma/pkg/llama"
)

// Options say how a model is loaded and run. The zero value runs it on the processor, with
// one thread and weights as they are stored.
type Options struct {
	Threads int // threads for a computation, 1 when zero
	// Tune lets a [Session] use fewer threads where that is faster: llama.cpp's threads wait for
	// each other without sleep, so one that has no processor of its own holds all others up.
	Tune bool
	// Repack lets llama.cpp lay weights out anew where that is faster on the processor.
	Repack bool
	// NoMmap reads the files into memory in place of mapping them.
	NoMmap bool
	// GPULayers are the layers to put on devices other than the processor.
	GPULayers int
	// Devices names the devices to use, all when empty. TensorSplit are their shares.
	Devices     []string
	TensorSplit []float32
	// Progress is told the share of the model that is loaded, 0 to 1; it may be nil.
	Progress func(share float32)
}

// Model is a model in memory. Close it.
type Model struct {
	path    string
	threads int32
	tune    bool
	vocab   int

	mu      sync.Mutex // one computation at a time
	handle  yzma.Model // 0 after Close
	fastest int        // number of threads, as far as it is known
}

// loading keeps the library's log lines of one load apart from another's.
var loading sync.Mutex

// Open loads a GGUF file; of a split model, its first shard. The error holds llama.cpp's
// own words when it refuses the file.
func (e *Engine) Open(path string, o Options) (*Model, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	loading.Lock()
	defer loading.Unlock()
	lastLog.reset()

	params, err := o.params()
	if err != nil {
		return nil, err
	}
	handle, err := yzma.ModelLoadFromFile(path, params)
	runtime.KeepAlive(params)
	if err != nil {
		return nil, lastLog.annotate("%s: llama.cpp cannot load the model", path)
	}
	return &Model{
		path:    path,
		threads: int32(max(o.Threads, 1)),
		tune:    o.Tune,
		vocab:   int(yzma.VocabNTokens(yzma.ModelGetVocab(handle))),
		handle:  handle,
	}, nil
}

// params returns the options in llama.cpp's form.
func (o Options) params() (yzma.ModelParams, error) {
	params := yzma.ModelDefaultParams()
	params.NGpuLayers = int32(o.GPULayers)
	params.UseExtraBufts = 0 // repacked weights may take other kernels
	if o.Repack {
		params.UseExtraBufts = 1
	}
	params.LoadMode = yzma.LoadModeMmap
	if o.NoMmap {
		params.LoadMode = yzma.LoadModeNone
	}
	params.LazyMode = yzma.LazyModeOff
	if o.Progress != nil {
		params.ProgressCallback = loadProgress(o.Progress)
	}
	if len(o.Devices) > 0 {
		devices, err := deviceList(o.Devices)
		if err != nil {
			return params, err
		}
		params.Devices = devices
	}
	if len(o.TensorSplit) > 0 {
		shares := make([]float32, yzma.MaxDevices())
		if len(o.TensorSplit) > len(shares) {
			return params, fmt.Errorf("tensor split of %d shares, llama.cpp takes %d", len(o.TensorSplit), len(shares))
		}
		copy(shares, o.TensorSplit)
		params.TensorSplit = &shares[0]
	}
	return params, nil
}

// Close frees the model. A second call does nothing.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handle == 0 {
		return nil
	}
	err := yzma.ModelFree(m.handle)
	m.handle = 0
	return err
}

// Vocab returns the number of tokens in the vocabulary: token ids are 0 to Vocab()-1.
func (m *Model) Vocab() int { return m.vocab }

// Logits computes a fresh sequence of token ids and returns the logits of every position:
// len(tokens) rows of Vocab() numbers.
func (m *Model) Logits(tokens []int) ([][]float32, error) { return m.logits(tokens, 0) }

// logits computes; observer is a callback of the library's form, or 0.
func (m *Model) logits(tokens []int, observer uintptr) ([][]float32, error) {
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s: no tokens to compute", m.path)
	}
	for i, id := range tokens {
		if id < 0 || id >= m.vocab {
			return nil, fmt.Errorf("%s: token %d of the input is %d, the vocabulary has %d", m.path, i, id, m.vocab)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handle == 0 {
		return nil, errors.New(m.path + ": model is closed")
	}
	ctx, err := m.context(len(tokens), observer)
	if err != nil {
		return nil, err
	}
	defer yzma.Free(ctx)
	return m.decode(ctx, tokens)
}

// context makes a fresh state that takes n tokens in one batch.
func (m *Model) context(n int, observer uintptr) (yzma.Context, error) {
	params := m.params(n, n, 1)
	params.TypeK = yzma.GGMLTypeF32
	params.TypeV = yzma.GGMLTypeF32
	params.CbEval = observer
	ctx, err := yzma.InitFromModel(m.handle, params)
	if err != nil {
		return 0, lastLog.annotate("%s: llama.cpp cannot run the model", m.path)
	}
	return ctx, nil
}

// params are those of a state for so many sequences of n tokens together, computed in
// batches of so many.
func (m *Model) params(n, batch, sequences int) yzma.ContextParams {
	params := yzma.ContextDefaultParams()
	params.NCtx = uint32(n)
	params.NBatch = uint32(batch)
	params.NUbatch = uint32(batch)
	params.NSeqMax = uint32(sequences)
	params.NThreads = m.threads
	params.NThreadsBatch = m.threads
	params.FlashAttentionType = yzma.FlashAttentionTypeDisabled
	params.Embeddings = 0
	params.NoPerf = 1
	return params
}

func (m *Model) decode(ctx yzma.Context, tokens []int) ([][]float32, error) {
	batch := yzma.BatchInit(int32(len(tokens)), 0, 1)
	defer yzma.BatchFree(batch)
	for i, id := range tokens {
		if err := batch.Add(yzma.Token(id), yzma.Pos(i), []yzma.SeqId{0}, true); err != nil {
			return nil, fmt.Errorf("%s: %w", m.path, err)
		}
	}
	if status, err := yzma.Decode(ctx, batch); err != nil || status != 0 {
		return nil, lastLog.annotate("%s: llama.cpp cannot compute %d tokens (status %d)", m.path, len(tokens), status)
	}
	logits := make([][]float32, len(tokens))
	for i := range logits {
		row, err := yzma.GetLogitsIth(ctx, int32(i), m.vocab)
		if err != nil || len(row) != m.vocab {
			return nil, fmt.Errorf("%s: no logits at position %d", m.path, i)
		}
		logits[i] = slices.Clone(row) // the library's memory goes with the context
	}
	return logits, nil
}
