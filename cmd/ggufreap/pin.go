package main

import (
	"bytes"
	"slices"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/inspect"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
	"ggufreap/reap"
)

const pinHelp = `Record hashes of a model's files, tensors and experts, or check a model against
such a record.

Usage:
  ggufreap pin [flags] -o FILE MODEL
  ggufreap pin [flags] --check FILE MODEL

One pass over the files takes the SHA-256 of each file and the BLAKE3 of each
tensor and of each routed expert in it. The pin digest rests on all that
makes the model: weights, experts and metadata. It is what to publish, and what
to hold a pin against that came another way. The weights digest leaves metadata
out: it stays when a model gets another chat template. Both stay when it is
renamed or cut another way. What somebody only says stands apart.

Flags:

Exit codes:
  0  success; with --check, nothing differs
  1  with --check, something differs
  2  the request could not be carried out
  75 not now: a disk, the network or memory failed; try again

Examples:
  ggufreap pin -o K3.pin.json.zst --repo org/K3 K3-00001-of-00009.gguf
  ggufreap pin --check K3.pin.json.zst K3-00001-of-00009.gguf
  ggufreap pin --check tree.json --repo org/K3 --revision 9f62e4e K3
`

func pinCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "pin",
		Usage:       "record a model's hashes, or check a model against them",
		Description: pinHelp,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the pin to `FILE`, compressed if it ends in .zst"},
			&cli.BoolFlag{Name: "force", Usage: "replace FILE if it exists"},
			args.OneOf(&cli.StringFlag{Name: "format", Value: formatPin,
				Usage: "`FORMAT`: pin, or gguf-hash: the list of sha256 that llama-gguf-hash reads (pin)"}, formatPin, formatGGUFHash),
			onlyFlag(),
			&cli.BoolFlag{Name: "recheck", Usage: "with --only, read the files again where their record is there"},
			readersFlag(),
			&cli.BoolFlag{Name: "json", Usage: "print the pin, or with --check a JSON report"},
			typeFlag(),
		}, progressFlags(con), fetchFlags(), declaredFlags(), args.In("Check",
			&cli.StringFlag{Name: "check", Usage: "`FILE`: compare the model with a pin, a list of SHA-256 sums, a manifest of llama-gguf-hash, " +
				"a saved listing of the Hugging Face hub (api/models/REPO/tree/REVISION), or the hub's at an address: hf://OWNER/REPO"},
			&cli.BoolFlag{Name: "quick", Usage: "compare sizes, headers and metadata only"},
			&cli.StringFlag{Name: "folder", Usage: "`DIR`: where in a list the model's files are, when it has files of these names in several folders"},
		)),
		Action: func(c *cli.Context) error { return pinAction(con, c) },
	}
}

// The values of --format.
const (
	formatPin      = "pin"
	formatGGUFHash = "gguf-hash"
)

func pinAction(con *ui.Console, c *cli.Context) error {
	if c.IsSet("check") && !c.IsSet("only") {
		return checkArtifact(con, c)
	}
	format := c.String("format")
	if c.IsSet("only") {
		if err := checkPinPart(c); err != nil {
			return err
		}
	}
	switch {
	case c.Bool("quick"):
		return hint.With(args.Usagef("--quick is for --check: a pin without the data would pin nothing"), "ggufreap pin --quick --check FILE MODEL")
	case format == formatGGUFHash && (c.Bool("json") || saysAnything(c)):
		return args.Usagef("a manifest of llama-gguf-hash is a list of digests: it is no JSON and has no place for what is said of the model")
	}
	m, err := openArtifact(con, c)
	if err != nil {
		return err
	}
	defer m.Close()
	if output := c.String("output"); output != "" && !c.IsSet("only") {
		if err := files.CheckOutput(output, c.Bool("force"), inputs(c, m)); err != nil {
			return err
		}
	}
	inspect.Warn(con, m)
	if format == formatGGUFHash {
		return writeGGUFHashes(con, c, m)
	}
	if err := manifest.CheckDocument(m, declaredOf(c, m)); err != nil {
		return err
	}
	if c.IsSet("only") {
		return pinPart(con, c, m)
	}
	pin, err := pin(con, c, m)
	if err != nil {
		return err
	}
	return reportPin(con, c, pin, m)
}

// pin reads a model whole.
func pin(con *ui.Console, c *cli.Context, m *gguf.Model) (*manifest.Pin, error) {
	p := con.StartProgress("pin", m.FileBytes())
	o := pinOptions(c, m)
	o.Progress = p.Set
	pin, err := manifest.BuildPin(c.Context, m, o)
	p.Finish()
	return pin, err
}

// pinOptions say what a pin of the model has beside digests.
func pinOptions(c *cli.Context, m *gguf.Model) manifest.BuildOptions {
	experts, _ := reap.FindExperts(m)
	slabs, sizes := routedSlabs(experts), map[string]int64{}
	if experts != nil {
		for _, t := range experts.Tensors() {
			sizes[t.Name] = t.SlabBytes * int64(experts.Count)
		}
	}
	return manifest.BuildOptions{
		Slabs: slabs,
		IDs:   idTables(m, experts, nil),
		DataSize: func(t *gguf.Tensor) int64 {
			if size := sizes[t.Name]; size > 0 {
				return size
			}
			return t.Size
		},
		Declared: declaredOf(c, m),
		Workers:  c.Int("workers"),
	}
}

// writeGGUFHashes writes the manifest to the output, or prints it.
func writeGGUFHashes(con *ui.Console, c *cli.Context, m *gguf.Model) error {
	var list bytes.Buffer
	p := con.StartProgress("pin", m.TensorBytes())
	err := lists.WriteGGUFHashes(c.Context, &list, m, c.Int("workers"), p.Set)
	p.Finish()
	if err != nil {
		return err
	}
	output := c.String("output")
	if output == "" || output == files.Stdin {
		con.Printf("%s", list.Bytes())
		return nil
	}
	size, err := files.Write(output, c.Bool("force"), m.OnDisk(), files.Bytes(list.Bytes()))
	if err != nil {
		return err
	}
	con.Field("written", "%s, %s", text.Safe(output), text.Size(size))
	return nil
}

// reportPin writes the pin and prints it or what it says.
func reportPin(con *ui.Console, c *cli.Context, pin *manifest.Pin, m *gguf.Model) error {
	written, err := files.WritePin(c.String("output"), pin, c.Bool("force"), m.OnDisk())
	if err != nil {
		return err
	}
	if c.Bool("json") || c.String("output") == files.Stdin {
		return manifest.EncodePin(con.Out, "pin.json", pin)
	}
	describePin(con, pin)
	describeFetched(con, m)
	if c.String("output") == "" {
		con.Field("written", "nothing; -o FILE writes the pin")
	} else {
		con.Field("written", "%s, %s", text.Safe(c.String("output")), text.Size(written))
	}
	return nil
}

// describePin prints a summary.
func describePin(con *ui.Console, pin *manifest.Pin) {
	con.Field("pin digest", "%s", pin.PinDigest)
	con.Field("model", "%s, %s, %s", text.Safe(pin.Artifact.Name), text.Architecture(pin.Artifact.Architecture), text.Files(pin.Artifact.Shards))
	con.Field("files", "%s", text.Size(pin.Artifact.FileBytes))
	con.Field("tensors", "%s, %s", text.Grouped(len(pin.Tensors)), text.Size(pin.Artifact.TensorBytes))
	tensors, slabs := 0, 0
	for _, t := range pin.Tensors {
		if t.Slabs != nil {
			tensors++
			slabs += t.Slabs.Count
		}
	}
	if tensors > 0 {
		con.Field("experts", "%s, one for each expert in each of %s", text.Count(slabs, "digest"), text.Count(tensors, "tensor"))
	}
	for _, said := range pin.Declared.Statements() {
		con.Field("declared", "%s", declaredText(said))
	}
	con.Field("weights digest", "%s", pin.WeightsDigest)
	con.Field("metadata", "%s", pin.MetadataDigest)
	if structure, err := pin.StructureDigest(); err == nil {
		con.Field("structure", "%s", structure)
	}
}
