package main

import (
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/engines"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/reap/engine"
)

const engineHelp = `Show the llama.cpp that calibrate and --engine use, and what it can do.

Usage:
  ggufreap engine [flags]

llama.cpp runs in a program of its own, ggufreap-engine, which is looked for
beside ggufreap, in PATH, or where GGUFREAP_ENGINE says; GGUFREAP_ENGINE=off
does without. That program looks for the llama.cpp libraries (libllama, libggml,
libggml-base and a backend) in the folder that --llama-lib, GGUFREAP_LLAMA_LIB
or YZMA_LIB names, then beside itself, in ../lib, and where the system keeps
libraries. They must be of a version that is known to work: 0.5.0.

Where to get them:
  npm       npm install @node-llama-cpp/linux-x64@3.22.1; the libraries are in
            node_modules/@node-llama-cpp/linux-x64/bins/linux-x64. Give the
            versioned files plain names such as libllama.so with links. Others:
            linux-x64-cuda, linux-x64-vulkan, linux-arm64, mac-arm64-metal
  source    check out the tag v0.5.0 of llama.cpp and build it with cmake and
            -DBUILD_SHARED_LIBS=ON
  here      "make engine" in the project's folder does the first, into .engine
            there: export GGUFREAP_LLAMA_LIB=FOLDER/.engine

Without an engine every other command works as it does with one.

Flags:

Exit codes:
  0  llama.cpp was found and can be used
  2  it was not

Examples:
  ggufreap engine
  ggufreap engine --llama-lib /opt/llama.cpp/lib
`

func libraryFlag() cli.Flag {
	return &cli.StringFlag{Name: "llama-lib", Usage: "`DIR`: folder of the llama.cpp libraries (see: ggufreap help engine)"}
}

func engineCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "engine",
		Usage:       "show the llama.cpp that can be used",
		Description: engineHelp,
		Flags:       []cli.Flag{libraryFlag(), &cli.BoolFlag{Name: "json", Usage: "print what was found as JSON"}},
		Action:      func(c *cli.Context) error { return engineAction(con, c) },
	}
}

func engineAction(con *ui.Console, c *cli.Context) error {
	if err := args.None(c); err != nil {
		return err
	}
	program, err := engines.Find()
	if err != nil {
		return err
	}
	e, err := engines.Start(c.Context, c.String("llama-lib"))
	if err != nil {
		return err
	}
	defer e.Close()
	h := e.Hello()
	if c.Bool("json") {
		err = con.JSON(*newEngineDocument(program, h))
	} else {
		describeEngine(con, program, h)
	}
	if err == nil && h.Problem != "" {
		return errors.New(h.Problem)
	}
	return err
}

func describeEngine(con *ui.Console, program string, h *engine.Hello) {
	con.Field("engine", "%s", text.Safe(program))
	if h.Problem != "" {
		con.Field("llama.cpp", "none that can be used")
		for i, dir := range h.Searched {
			con.Field(map[bool]string{true: "looked in"}[i == 0], "%s", text.Safe(dir))
		}
		con.Field("known to work", "%s", strings.Join(h.Known, ", "))
		return
	}
	con.Field("llama.cpp", "%s, ggml %s, commit %s", text.Safe(h.Version), text.Safe(h.GGML), text.Safe(h.Commit))
	con.Field("libraries", "%s", text.Safe(h.Library))
	con.Field("known to work", "%s", strings.Join(h.Known, ", "))
	for i, d := range h.Devices {
		con.Field(map[bool]string{true: "devices"}[i == 0], "%s (%s): %s, %s of memory", text.Safe(d.Name), text.Safe(d.Type), text.Safe(d.Description), text.RoundedSize(int64(d.Total)))
	}
	con.Field("workers", "%s", map[bool]string{true: "can be used over RPC", false: "no RPC backend in these libraries"}[h.RPC])
	con.Field("can do", "calibrate; verify, inspect, prune and reshard with --engine")
}

// An engineDocument is what --json prints.
type engineDocument struct {
	Schema    string           `json:"schema"`
	Program   string           `json:"program"`
	Problem   string           `json:"problem"`
	Libraries string           `json:"libraries"`
	Version   string           `json:"version"`
	GGML      string           `json:"ggml"`
	Commit    string           `json:"commit"`
	Known     []string         `json:"known_versions"`
	RPC       bool             `json:"rpc"`
	Devices   []deviceDocument `json:"devices"`
}

type deviceDocument struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
	Free        uint64 `json:"free_bytes"`
	Total       uint64 `json:"total_bytes"`
}

func newEngineDocument(program string, h *engine.Hello) *engineDocument {
	d := &engineDocument{
		Schema: "ggufreap/engine/v1", Program: program, Problem: h.Problem, Libraries: h.Library,
		Version: h.Version, GGML: h.GGML, Commit: h.Commit, Known: h.Known, RPC: h.RPC, Devices: []deviceDocument{},
	}
	for _, device := range h.Devices {
		d.Devices = append(d.Devices, deviceDocument{device.Name, device.Type, device.Description, device.Free, device.Total})
	}
	return d
}
