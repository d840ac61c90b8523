package engine_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap/calibrate"
	"ggufreap/reap/engine"
	"ggufreap/reap/engine/enginetest"
	"ggufreap/reap/llama"
	"ggufreap/reap/llama/llamatest"
	"ggufreap/reap/tally"
)

func TestMain(m *testing.M) {
	code := m.Run()
	enginetest.Remove()
	os.Exit(code)
}

var k3 = gguftest.K3Options{Experts: 64, Used: 4}

// used are the experts used in the layers of the fixture that route.
var used = map[int]int{1: 4, 2: 4, 3: 4, 4: 4}

func write(t *testing.T, spec gguftest.Spec) string {
	t.Helper()
	paths, err := spec.Write(t.TempDir(), gguf.Split{})
	if err != nil {
		t.Fatal(err)
	}
	return paths[0]
}

func tokens(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = (i*i + 3*i) % 200
	}
	return list
}

func TestHello(t *testing.T) {
	h := enginetest.Start(t, engine.Options{}).Hello()
	if !slices.Contains(h.Known, strings.TrimSuffix(h.Version, "-dev")) || len(h.Devices) == 0 || h.Commit == "" || h.Library == "" {
		t.Errorf("the engine says %+v", h)
	}
}

// What comes over the pipes is what llama.cpp gives in one process.
func TestMeasureOverPipes(t *testing.T) {
	path := write(t, gguftest.K3(k3))
	sequences := [][]int{tokens(120), tokens(121)[1:]}
	e := enginetest.Start(t, engine.Options{})
	opened, err := e.Open(t.Context(), path, engine.OpenOptions{Threads: 1, Repack: true})
	if err != nil {
		t.Fatal(err)
	}
	if opened.Vocabulary != 384 || opened.Context != 4096 {
		t.Errorf("opened %+v", opened)
	}
	got, err := e.Measure(t.Context(), engine.Measure{Experts: 64, Used: used, Context: 120, Ubatch: 50, Streams: 2}, sequences)
	if err != nil {
		t.Fatal(err)
	}
	model, err := llamatest.Engine(t).Open(path, llama.Options{Repack: true})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	c := calibrate.New(64, used, 1)
	defer c.Close()
	session, err := model.NewSession(llama.SessionOptions{Context: 120, Sequences: 2}, c.Observer())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	want := tally.New([]int{1, 2, 3, 4}, 64)
	if err := c.Measure(session, sequences, want); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Append(nil), want.Append(nil)) {
		t.Error("other sums than in one process")
	}
}

func TestTokenize(t *testing.T) {
	e := enginetest.Start(t, engine.Options{})
	trained := filepath.Join("..", "..", "testdata", "trained", "dots1-trained-Q8_0.gguf")
	if _, err := e.Tokenize(t.Context(), []byte("x"), false); err == nil {
		t.Error("tokens without a model")
	}
	if _, err := e.Open(t.Context(), trained, engine.OpenOptions{Threads: 1}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"": 0, "a": 1, "hello\x00there": 11, "grün": 5} {
		got, err := e.Tokenize(t.Context(), []byte(text), false)
		if err != nil || len(got) != want {
			t.Errorf("%q: tokens %v (%v), want %d", text, got, err, want)
		}
		back, err := e.Text(t.Context(), got)
		if err != nil || string(back) != strings.ReplaceAll(text, "\x00", string(back[min(5, len(back)):min(6, len(back))])) {
			t.Errorf("%q: tokens say %q (%v)", text, back, err)
		}
	}
	var failure *engine.Failure
	if _, err := e.Tokenize(t.Context(), []byte("ab\xffc"), false); !errors.As(err, &failure) || !strings.Contains(failure.Reason, "byte 2 of the text is not UTF-8") {
		t.Errorf("text that is not UTF-8: %v", err)
	}
	if _, err := e.Tokenize(t.Context(), []byte("still there"), false); err != nil {
		t.Error(err)
	}
}

// What a model writes does not depend on how many documents are side by side, nor on how often
// it is interrupted and gone on with, in another process too.
func TestWrite(t *testing.T) {
	trained := filepath.Join("..", "..", "testdata", "trained", "dots1-trained-Q8_0.gguf")
	for name, path := range map[string]string{"K3": write(t, gguftest.K3(k3)), "trained": trained} {
		t.Run(name, func(t *testing.T) {
			start := func(threads int) *engine.Engine {
				e := enginetest.Start(t, engine.Options{})
				if _, err := e.Open(t.Context(), path, engine.OpenOptions{Threads: threads, Repack: true}); err != nil {
					t.Fatal(err)
				}
				return e
			}
			e := start(1)
			text := func(streams, interrupted int) [][]int {
				t.Helper()
				w := engine.Write{Begin: true, Seed: 5, Tokens: 93, Documents: 4, Streams: streams}
				var draft engine.Draft
				for calls, done := 1, false; !done; calls++ {
					var err error
					if done, err = e.Write(t.Context(), w, &draft); err != nil {
						t.Fatal(err)
					}
					w.Begin = interrupted > 0 && calls%interrupted == 0
				}
				return draft.Documents
			}
			want := text(3, 0)
			for i, document := range want {
				if len(document) != engine.DocumentLength(93, 4, i) {
					t.Errorf("document %d has %d tokens", i, len(document))
				}
			}
			for _, c := range [][2]int{{1, 13}, {2, 0}, {3, 7}, {4, 11}} {
				if got := text(c[0], c[1]); !slices.EqualFunc(got, want, slices.Equal) {
					t.Errorf("%d side by side, interrupted every %d calls: another text", c[0], c[1])
				}
			}
			e = start(0) // as many threads as are fastest
			if got := text(3, 0); !slices.EqualFunc(got, want, slices.Equal) {
				t.Error("another process writes another text")
			}
			if _, err := e.Write(t.Context(), engine.Write{Begin: true, Tokens: 3, Documents: 4, Streams: 1}, new(engine.Draft)); err == nil {
				t.Error("documents without tokens are written")
			}
		})
	}
}

func TestAcceptOverPipes(t *testing.T) {
	e := enginetest.Start(t, engine.Options{})
	spec := gguftest.K3(k3)
	paths, err := spec.WriteSparse(t.TempDir(), gguf.Split{Shards: 3})
	if err != nil {
		t.Fatal(err)
	}
	verdict, err := e.Accept(t.Context(), paths[0], 1024)
	if err != nil {
		t.Fatal(err)
	}
	if parts := len(verdict.Memory); verdict.Weights == 0 || parts != 3 {
		t.Errorf("verdict %+v, want weights, cache, recurrent state and compute", verdict)
	}
	spec = spec.Clone()
	spec.Metadata.Set(spec.Metadata.ArchKey("expert_count"), gguf.Uint32Value(63))
	var failure *engine.Failure
	if _, err := e.Accept(t.Context(), write(t, spec), 0); !errors.As(err, &failure) || !failure.Refused || !strings.Contains(failure.Reason, "wrong shape") {
		t.Errorf("a count that does not fit: %v", err)
	}
	if _, err := e.Accept(t.Context(), paths[0], 0); err != nil {
		t.Errorf("after a refusal: %v", err)
	}
}

// The engine's end is an error with llama.cpp's reason, or with what happened.
func TestEnds(t *testing.T) {
	spec := gguftest.K3(k3)
	gating := spec.Clone()
	gating.Metadata.Set(gating.Metadata.ArchKey("expert_gating_func"), gguf.Uint32Value(99))
	many := spec.Clone()
	many.Metadata.Set(many.Metadata.ArchKey("expert_used_count"), gguf.Uint32Value(65))
	measure := func(e *engine.Engine, path string) error {
		if _, err := e.Open(t.Context(), path, engine.OpenOptions{Threads: 1}); err != nil {
			return err
		}
		_, err := e.Measure(t.Context(), engine.Measure{Experts: 64, Used: used, Context: 64, Streams: 1}, [][]int{tokens(64)})
		return err
	}
	for name, c := range map[string]struct {
		do   func(e *engine.Engine) error
		want string
	}{
		"an assertion": {func(e *engine.Engine) error {
			_, err := e.Accept(t.Context(), write(t, many), 0)
			return err
		}, "GGML_ASSERT(n_expert_used_max <= hparams.n_expert)"},
		"a gating that no engine knows": {func(e *engine.Engine) error { return measure(e, write(t, gating)) }, "fatal error"},
	} {
		t.Run(name, func(t *testing.T) {
			e := enginetest.Start(t, engine.Options{})
			err := c.do(e)
			var gone *engine.Gone
			if !errors.As(err, &gone) || !strings.Contains(gone.Reason, c.want) {
				t.Errorf("error %v, want a reason with %q", err, c.want)
			}
			if again := c.do(e); again == nil {
				t.Error("an engine that has ended answers")
			}
			if words := strings.Join(gone.Words, "\n"); strings.Contains(words, "goroutine") {
				t.Errorf("the last words hold Go's dump:\n%s", words)
			}
		})
	}
}

// fake is a program in the engine's place, told what to do by a shell script.
func fake(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fake-engine")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOtherPrograms(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"prints text":        {"echo 'llama.cpp build 7'; cat >/dev/null", `garbled message: it begins with "llama.cpp build "`},
		"says nothing":       {"exit 0", "ended by itself without an answer"},
		"fails":              {"exit 3", "ended (exit status 3)"},
		"is killed":          {"kill -9 $$", "was killed (signal 9)"},
		"lacks libffi":       {"echo 'panic: libffi.so.8: cannot open shared object file: No such file or directory' >&2; exit 2", "libffi.so.8: cannot open"},
		"is not for Windows": {"echo 'ggufreap-engine: not built for Windows: calibrate in WSL' >&2; exit 2", "the engine ended: ggufreap-engine: not built for Windows"},
		"is cut off":         {"printf 'GRE2\\005\\000\\000\\000'", "garbled message: it ends in its head"},
		"is another version": {"printf 'GRE7\\005\\000\\000\\000aaaaaaaa'; cat >/dev/null", `protocol version "7", want "2"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := engine.Start(t.Context(), fake(t, c.script), engine.Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if _, err := engine.Start(t.Context(), filepath.Join(t.TempDir(), "nothing"), engine.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no program: %v", err)
	}
}

// An engine that is stopped in the middle is one that hangs: it is alive, and does nothing.
func TestKilledAndHanging(t *testing.T) {
	path := write(t, gguftest.K3(k3))
	for name, c := range map[string]struct {
		signal syscall.Signal
		want   string
	}{
		"killed":  {syscall.SIGKILL, "was killed (signal 9)"},
		"stopped": {syscall.SIGSTOP, "llama.cpp did nothing for"},
	} {
		t.Run(name, func(t *testing.T) {
			e := enginetest.Start(t, engine.Options{Patience: 2500 * time.Millisecond})
			if _, err := e.Open(t.Context(), path, engine.OpenOptions{Threads: 1}); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(20*time.Millisecond, func() { syscall.Kill(e.PID(), c.signal) })
			var err error
			for range 1000 {
				if _, err = e.Measure(t.Context(), engine.Measure{Experts: 64, Used: used, Context: 512, Streams: 1}, [][]int{tokens(512)}); err != nil {
					break
				}
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if !gguf.MachineFault(err) {
				t.Errorf("%v: is taken for a fault of the model", err)
			}
		})
	}
}

func TestStopped(t *testing.T) {
	e := enginetest.Start(t, engine.Options{})
	if _, err := e.Open(t.Context(), write(t, gguftest.K3(k3)), engine.OpenOptions{Threads: 1}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	var err error
	for err == nil {
		_, err = e.Measure(ctx, engine.Measure{Experts: 64, Used: used, Context: 512, Streams: 1}, [][]int{tokens(512)})
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Libraries of another version are refused before any of their structures is touched.
func TestOtherVersion(t *testing.T) {
	dir := t.TempDir()
	libraries, err := filepath.Glob(filepath.Join(llamatest.Folder(t), "*.so"))
	if err != nil || len(libraries) == 0 {
		t.Fatalf("no libraries (%v)", err)
	}
	for _, lib := range libraries {
		data, err := os.ReadFile(lib)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(lib)
		if strings.Contains(name, "ggml-cpu") || strings.Contains(name, "common") {
			continue
		}
		if name == "libllama.so" {
			data = bytes.ReplaceAll(data, []byte("\x000.5.0-dev\x00"), []byte("\x000.4.9-dev\x00"))
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"libggml.so": "libggml.v0.5.0.so"} {
		if err := os.Symlink(from, filepath.Join(dir, to)); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	e, err := engine.Start(t.Context(), enginetest.Program(t), engine.Options{Library: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if problem := e.Hello().Problem; !strings.Contains(problem, "0.4.9-dev") || !strings.Contains(problem, "known to work: 0.5.0") {
		t.Errorf("the engine's problem is %q", problem)
	}
	var failure *engine.Failure
	if _, err := e.Accept(t.Context(), "x.gguf", 0); !errors.As(err, &failure) {
		t.Errorf("it is used all the same: %v", err)
	}
}

func TestNoLibrary(t *testing.T) {
	e, err := engine.Start(t.Context(), enginetest.Program(t), engine.Options{Library: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if h := e.Hello(); !strings.Contains(h.Problem, "llama.cpp libraries not found") || len(h.Searched) != 1 {
		t.Errorf("the engine says %+v", h)
	}
}
