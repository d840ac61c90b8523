package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"ggufreap/cmd/ggufreap/internal/engines"
	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/gguf"
	"ggufreap/reap/engine/enginetest"
)

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"ggufreap": scriptedProgram})
}

// tests are all tests, with what they need before and behind them.
type tests struct{ *testing.M }

func (m tests) Run() int {
	os.Setenv(engines.Variable, "off") // what tests print must not depend on what the machine has
	debug.SetGCPercent(400)            // models for tests are small, and the collector would run all the time
	code := m.M.Run()
	programtest.Remove()
	enginetest.Remove()
	return code
}

// scriptedProgram is the program in a script. Its documents keep to their schemas.
func scriptedProgram() {
	var out bytes.Buffer
	code := run(context.Background(), ui.New(os.Stdin, &out, os.Stderr), nil, os.Args)
	os.Stdout.Write(out.Bytes())
	if err := programtest.CheckDocuments(programtest.Result{Stdout: out.String(), Code: code}, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = exitInterrupted
	}
	os.Exit(code)
}

// TestScripts runs the scripts of testdata/script: commands with what they print, their exit
// codes and the files that they leave. With -update what a cmp compares with is written anew.
// Beside the commands of testscript there are
//
//	exits CODE COMMAND...     run a command that ends with this code
//	model NAME [SHARDS]       write a model that scriptModels has
//	cut FILE SIZE             leave so many bytes of a file; below zero, all but so many
//	flip FILE PLACE           flip a bit of the byte at a place; below zero, from the end
//	sums LIST FILE...         list files as sha256sum --binary does
//	tree LIST FILE...         list files as the hub does
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": scriptExits, "model": scriptModel, "cut": scriptCut, "flip": scriptFlip, "sums": scriptSums, "tree": scriptTree,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv(engines.Variable, "off")
			env.Setenv("PROGRAM", programtest.Path(t))
			return nil
		},
	})
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	program, line := args[1], args[2:]
	if program == "ggufreap" { // what is built starts in half the time of what is built for tests
		program = ts.Getenv("PROGRAM")
	}
	err = ts.Exec(program, line...)
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		code = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
	for i := range line { // where the check finds them
		if i > 0 && line[i-1] == "-o" {
			line[i] = ts.MkAbs(line[i])
		}
	}
	ts.Check(programtest.CheckDocuments(programtest.Result{Stdout: ts.ReadFile("stdout"), Code: code}, line))
}

func scriptModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 || scriptModels[args[0]] == nil {
		ts.Fatalf("usage: model NAME [SHARDS]")
	}
	split := gguf.Split{}
	if len(args) == 2 {
		var err error
		split.Shards, err = strconv.Atoi(args[1])
		ts.Check(err)
	}
	paths, err := scriptModels[args[0]]().Write(ts.MkAbs("."), split)
	ts.Check(err)
	if change := scriptChanges[args[0]]; change != nil {
		ts.Check(os.WriteFile(paths[0], change([]byte(ts.ReadFile(paths[0]))), 0o666))
	}
}

// scriptCut leaves so many bytes of a file, or all but so many.
func scriptCut(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: cut FILE SIZE")
	}
	size, err := strconv.Atoi(args[1])
	ts.Check(err)
	if size < 0 {
		size += len(ts.ReadFile(args[0]))
	}
	ts.Check(os.Truncate(ts.MkAbs(args[0]), int64(size)))
}

func scriptFlip(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: flip FILE PLACE")
	}
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(flip(ts.MkAbs(args[0]), at))
}

func scriptSums(ts *testscript.TestScript, _ bool, args []string) {
	var b strings.Builder
	for _, path := range args[1:] {
		fmt.Fprintf(&b, "%x *%s\n", sha256.Sum256([]byte(ts.ReadFile(path))), path)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o666))
}

func scriptTree(ts *testscript.TestScript, _ bool, args []string) {
	var entries []string
	for _, path := range args[1:] {
		data := ts.ReadFile(path)
		entries = append(entries, fmt.Sprintf(`{"type":"file","oid":"%040x","size":%d,"path":"Q8_0/%s","lfs":{"oid":"%x","size":%d,"pointerSize":134},"xetHash":"%064x"}`,
			1, len(data), path, sha256.Sum256([]byte(data)), len(data), 2))
	}
	list := "[" + strings.Join(entries, ",") + `,{"type":"file","oid":"x","size":1,"path":"README.md"}]`
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(list), 0o666))
}
