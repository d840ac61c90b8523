package llama

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
	yzma "github.com/hybridgroup/yzma/pkg/llama"
)

// A Device is something that llama.cpp can compute on.
type Device struct {
	Name        string
	Description string
	Type        string // "CPU", "GPU", "IGPU", "ACCEL"
	Free, Total uint64 // bytes of its memory
}

// Devices lists what the loaded libraries can compute on.
func (e *Engine) Devices() []Device {
	var list []Device
	for i := range yzma.GGMLBackendDeviceCount() {
		d := yzma.GGMLBackendDeviceGet(i)
		free, total := yzma.GGMLBackendDeviceMemory(d)
		list = append(list, Device{
			Name: yzma.GGMLBackendDeviceName(d), Description: yzma.GGMLBackendDeviceDescription(d),
			Type: yzma.GGMLBackendDevType(d).String(), Free: free, Total: total,
		})
	}
	return list
}

// deviceLists keeps the lists that were given to llama.cpp.
var deviceLists [][]uintptr

// deviceList returns a list of devices in llama.cpp's form, ending in 0.
func deviceList(names []string) (uintptr, error) {
	list := make([]uintptr, 0, len(names)+1)
	for _, name := range names {
		d := yzma.GGMLBackendDeviceByName(name)
		if d == 0 {
			return 0, fmt.Errorf("no device %q: \"ggufreap engine\" lists those that there are", name)
		}
		list = append(list, uintptr(d))
	}
	list = append(list, 0)
	deviceLists = append(deviceLists, list)
	return uintptr(unsafe.Pointer(&list[0])), nil
}

// AddRPC makes the devices of llama.cpp workers known, each named HOST:PORT. It was written
// from llama.cpp's headers and has not been tried.
func (e *Engine) AddRPC(servers []string) error {
	reg := yzma.GGMLBackendRegByName("RPC")
	if len(servers) > 0 && reg == 0 {
		return fmt.Errorf("the llama.cpp libraries in %q have no RPC backend", e.dir)
	}
	if len(servers) == 0 {
		return nil
	}
	if err := bindGGML(); err != nil {
		return err
	}
	proc := ggml.proc(uintptr(reg), "ggml_backend_rpc_add_server")
	if proc == 0 {
		return fmt.Errorf("the RPC backend in %q cannot add servers", e.dir)
	}
	var add func(endpoint string) uintptr
	purego.RegisterFunc(&add, proc)
	var register func(reg uintptr)
	lib, err := e.shared("libggml")
	if err != nil {
		return err
	}
	purego.RegisterLibFunc(&register, lib, "ggml_backend_register")
	for _, server := range servers {
		added := add(server)
		if added == 0 {
			return fmt.Errorf("RPC server %q does not answer", server)
		}
		register(added)
	}
	return nil
}

// RPC reports whether the libraries can use workers on other machines.
func (e *Engine) RPC() bool { return yzma.GGMLBackendRegByName("RPC") != 0 }

// loading progress goes through one callback: the library loads one model at a time.
var progressing struct {
	once     sync.Once
	callback uintptr
	report   func(share float32)
}

// loadProgress returns llama_progress_callback for a function. Callers hold the lock of
// loading.
func loadProgress(report func(share float32)) uintptr {
	progressing.once.Do(func() {
		progressing.callback = purego.NewCallback(func(share float32, _ uintptr) bool {
			progressing.report(share)
			return true
		})
	})
	progressing.report = report
	return progressing.callback
}
