package main

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/ui"
)

const versionHelp = `Show the version of this program.

Usage:
  ggufreap version [flags]

Flags:
`

// version is set by the linker for releases: -X main.version=v1.2.3.
var version = ""

func versionCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "version",
		Usage:       "show the version of this program",
		Description: versionHelp,
		Flags:       []cli.Flag{jsonFlag()},
		Action:      func(c *cli.Context) error { return versionAction(con, c) },
	}
}

func versionAction(con *ui.Console, c *cli.Context) error {
	if err := args.None(c); err != nil {
		return err
	}
	return printVersion(con, c.Bool("json"))
}

// versionInfo is the document of version --json.
type versionInfo struct {
	Schema   string `json:"schema"`
	Version  string `json:"version"`
	Revision string `json:"revision"` // of the source; empty when it is not known
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Libraries are the modules that were compiled in, sorted by path.
	Libraries []library `json:"libraries"`
}

type library struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

func buildVersion() versionInfo {
	v := versionInfo{Schema: "ggufreap/version/v1", Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if v.Version == "" {
			v.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Revision = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
		for _, m := range info.Deps {
			v.Libraries = append(v.Libraries, library{m.Path, m.Version})
		}
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	return v
}

func printVersion(con *ui.Console, asJSON bool) error {
	v := buildVersion()
	if asJSON {
		return con.JSON(v)
	}
	con.Printf("ggufreap %s", v.Version)
	if v.Revision != "" {
		con.Printf(" (%s)", v.Revision[:min(12, len(v.Revision))])
	}
	con.Printf(" %s %s\n", v.Go, v.Platform)
	return nil
}

// programVersion tells apart programs that might write other bytes.
func programVersion() string {
	v := buildVersion()
	return strings.TrimSpace(v.Version + " " + v.Revision[:min(12, len(v.Revision))])
}
