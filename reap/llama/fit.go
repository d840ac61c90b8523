package llama

import (
	"os"
	"regexp"
	"slices"
	"strconv"

	yzma "github.com/hybridgroup/yzma/pkg/llama"
)

// A Fit is what llama.cpp reckons that a model takes.
type Fit struct {
	Weights uint64   // bytes
	Devices []string // that would hold them
	Memory  []Memory // of a context, when one was asked for
}

// Memory is what a part of a context takes on a device.
type Memory struct {
	Part   string // "cache", "recurrent state", "compute"
	Device string
	Bytes  uint64 // to the hundredth of a MiB, as llama.cpp prints it
}

// Fit asks as [Engine.Accepts] does, and what the model takes on the processor. With context
// above 0 that of a context of so many tokens is reckoned too, with llama.cpp's own settings. To
// tell, llama.cpp then takes memory for the recurrent state that a model may have; for the cache
// and for computing it takes none.
func (e *Engine) Fit(path string, context int) (*Fit, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	loading.Lock()
	defer loading.Unlock()
	handle, err := e.loadHeaders(path)
	if err != nil {
		return nil, err
	}
	defer yzma.ModelFree(handle)
	fit := &Fit{Weights: yzma.ModelSize(handle), Devices: weightLines(lastLog.information())}
	if context <= 0 {
		return fit, nil
	}
	params := yzma.ContextDefaultParams()
	params.NCtx = uint32(context)
	ctx, err := yzma.InitFromModel(handle, params)
	if err != nil {
		return nil, newRefusal(path)
	}
	defer yzma.Free(ctx)
	fit.Memory = memoryLines(lastLog.information())
	return fit, nil
}

// The lines in which llama.cpp tells what a context takes. Buffers of a model without data
// have no size, so that of a cache is read from the line that sums it up.
var (
	weightLine = regexp.MustCompile(`load_tensors:\s+(\S+) model buffer size =`)
	bufferLine = regexp.MustCompile(`:\s+(\S+)\s+(KV|RS|compute) buffer size =\s+([0-9.]+) MiB`)
	sizeLine   = regexp.MustCompile(`(llama_kv_cache|llama_memory_recurrent)\S*: size =\s+([0-9.]+) MiB`)
)

func weightLines(lines []string) []string {
	var devices []string
	for _, line := range lines {
		if m := weightLine.FindStringSubmatch(line); m != nil && !slices.Contains(devices, m[1]) {
			devices = append(devices, m[1])
		}
	}
	return devices
}

func memoryLines(lines []string) []Memory {
	var list []Memory
	device := "CPU"
	for _, line := range lines {
		if m := bufferLine.FindStringSubmatch(line); m != nil {
			device = m[1]
			if m[2] == "compute" {
				list = append(list, Memory{"compute", device, mebibytes(m[3])})
			}
			continue
		}
		if m := sizeLine.FindStringSubmatch(line); m != nil {
			part := "cache"
			if m[1] == "llama_memory_recurrent" {
				part = "recurrent state"
			}
			list = append(list, Memory{part, device, mebibytes(m[2])})
		}
	}
	return list
}

func mebibytes(text string) uint64 {
	x, _ := strconv.ParseFloat(text, 64)
	return uint64(x * (1 << 20))
}
