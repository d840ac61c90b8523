package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"ggufreap/manifest/repair"
	"ggufreap/manifest/stage"
	"ggufreap/reap/engine"

	"ggufreap/cmd/ggufreap/internal/programtest"
)

// TestExitCodes holds kinds of errors to whether another try may mend them.
func TestExitCodes(t *testing.T) {
	for _, tc := range []struct {
		err  error
		code int
	}{
		{nil, exitOK},
		{errDiffers, exitDiffers},
		{errors.New("a wrong word"), exitFailed},
		{&fs.PathError{Op: "read", Path: "m.gguf", Err: syscall.EIO}, exitTryAgain},
		{&fs.PathError{Op: "open", Path: "m.gguf", Err: syscall.EMFILE}, exitTryAgain},
		{&os.LinkError{Op: "rename", Old: "a", New: "b", Err: syscall.EIO}, exitTryAgain},
		{os.NewSyscallError("mmap", syscall.ENOMEM), exitTryAgain},
		{context.DeadlineExceeded, exitTryAgain},
		{stage.ErrInUse, exitTryAgain},
		{repair.ErrInUse, exitTryAgain},
		{&engine.Gone{Why: "ended", Words: []string{"terminate called after throwing an instance of 'std::bad_alloc'"}}, exitTryAgain},
		{&engine.Failure{Reason: "failed to load", Log: []string{"alloc_tensor_range: failed to allocate CPU buffer of size 7"}}, exitTryAgain},
		{&engine.Gone{Why: "ended", Words: []string{"GGML_ASSERT(x) failed"}}, exitFailed},
		{&engine.Failure{Reason: "refused", Refused: true}, exitFailed},
		{&fs.PathError{Op: "write", Path: "m.gguf", Err: syscall.ENOSPC}, exitFailed}, // it waits for a person
		{&fs.PathError{Op: "open", Path: "m.gguf", Err: syscall.EACCES}, exitFailed},
		{&fs.PathError{Op: "open", Path: "m.gguf", Err: syscall.ENOENT}, exitFailed},
		{os.NewSyscallError("write", syscall.EPIPE), exitFailed},
	} {
		for _, err := range []error{tc.err, fmt.Errorf("shard 3: %w", tc.err), errors.Join(errors.New("first"), tc.err)} {
			if tc.err == nil {
				err = nil
			}
			if got := exitCode(err); got != tc.code {
				t.Errorf("%v: exit %d, want %d", err, got, tc.code)
			}
		}
	}
}

// TestExitCodesOfServers has servers fail for now and for good, under every command that reads
// models at addresses.
func TestExitCodesOfServers(t *testing.T) {
	h, files := programtest.OnHub(t, smallK3(), 2)
	t.Chdir(t.TempDir())
	lines := func(model string) [][]string {
		return [][]string{
			{"inspect", model}, {"pin", model}, {"plan", "--keep", "16", model}, {"diff", model, files[0]},
			{"prune", "--keep", "16", "-o", "out", model}, {"reshard", "--shards", "2", "-o", "out", model},
			{"prune", "--keep", "16", "--only", "1/2", "-o", "parts", model},
		}
	}
	wantAll := func(what, model string, code int) {
		t.Helper()
		for _, line := range lines(model) {
			if r := ggufreap(t, line...); r.code != code {
				t.Errorf("%s: %s: exit %d, want %d\n%s%s", what, line, r.code, code, r.stdout, r.stderr)
			}
			os.RemoveAll("out")
			os.RemoveAll("parts")
		}
	}
	answer := func(code int, header ...string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			if len(header) > 0 {
				w.Header().Set(header[0], header[1])
			}
			w.WriteHeader(code)
			return true
		}
	}
	for _, model := range []string{"hf://org/K3", h.File(filepath.Base(files[0]))} {
		h.Fault = answer(http.StatusTooManyRequests, "Retry-After", "86400")
		wantAll("429 for a day", model, exitTryAgain)
		h.Fault = answer(http.StatusServiceUnavailable, "Retry-After", "86400")
		wantAll("503 for a day", model, exitTryAgain)
		h.Fault = answer(http.StatusNotFound)
		wantAll("404", model, exitFailed)
		h.Fault = answer(http.StatusForbidden)
		wantAll("403", model, exitFailed)
	}
	address := h.File(filepath.Base(files[0]))
	h.Server.Close()
	wantAll("a server that is down", address, exitTryAgain)
}
