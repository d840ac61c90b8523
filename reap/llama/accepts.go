package llama

import (
	"os"
	"strings"

	yzma "github.com/hybridgroup/yzma/pkg/llama"
)

// A Refusal says that llama.cpp does not load a model, and why.
type Refusal struct {
	Path   string
	Reason string   // the one line that gives the cause, in llama.cpp's words
	Log    []string // its latest warnings and errors, the cause among them
}

// Error returns the path and the reason.
func (r *Refusal) Error() string { return r.Path + ": llama.cpp does not load the model: " + r.Reason }

// Accepts asks llama.cpp whether it would load the model at path, of a split model its first
// shard: all of its checks of keys, tensors, shapes and tokenizer, without memory for data
// and without reading any. Files with holes in place of data therefore do. The error is nil
// or a [Refusal], or says that there is no such file.
//
// Some checks of llama.cpp are assertions, which end the process: whoever cannot trust the
// model asks in a child process.
func (e *Engine) Accepts(path string) error {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	loading.Lock()
	defer loading.Unlock()
	handle, err := e.loadHeaders(path)
	if err != nil {
		return err
	}
	return yzma.ModelFree(handle)
}

// loadHeaders loads a model without its data.
func (e *Engine) loadHeaders(path string) (yzma.Model, error) {
	lastLog.reset()
	params := yzma.ModelDefaultParams()
	params.NGpuLayers = 0
	params.NoAlloc = 1
	params.LoadMode = yzma.LoadModeNone
	handle, err := yzma.ModelLoadFromFile(path, params)
	if err != nil {
		return 0, newRefusal(path)
	}
	return handle, nil
}

// newRefusal takes the cause from the log: the line before the ones that only say that
// loading failed.
func newRefusal(path string) *Refusal {
	r := &Refusal{Path: path, Reason: "no reason given", Log: lastLog.latest()}
	for _, line := range r.Log {
		switch _, cause, found := strings.Cut(line, "error loading model: "); {
		case found:
			r.Reason = cause
			return r
		case strings.Contains(line, "failed to load model"):
		default:
			r.Reason = line
		}
	}
	return r
}
