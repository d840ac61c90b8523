package card

import (
	"fmt"
	"path"
	"strings"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/ui/text"
)

// A Recipe is a launch script.
type Recipe struct {
	Name string
	Text string
}

// Recipes returns scripts that serve the release with llama.cpp: on one machine, or by layer
// split over the machines of the facts. Release is the way from their folder to that of the
// release, with forward slashes.
func (f *Facts) Recipes(release string) []Recipe {
	list := []Recipe{{"serve.sh", f.serveScript(release)}}
	if f.Nodes > 1 {
		list = append(list, Recipe{"rpc-worker.sh", workerScript})
	}
	return list
}

// The words that a script of each kind begins with.
const (
	serves = "# Serves "
	lends  = "# Lends this machine to the one that runs serve.sh."
)

const workerScript = "#!/bin/sh\n" + lends + ` The protocol has no password: only in a
# network that you trust.
#
#   -H   address to listen on: 0.0.0.0 is every one, better that of the inner network
#   -p   port
set -eu

exec "${RPC_SERVER:-rpc-server}" -H "${RPC_HOST:-0.0.0.0}" -p "${RPC_PORT:-50052}"
`

// serveScript runs llama-server.
func (f *Facts) serveScript(release string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\n"+serves+`%s with llama-server. %s
#
#   -m       the first shard; the others are found beside it
#   -ngl     layers that go to accelerators: all
#   -c       tokens of context that room is made for; a setting, not a tested length
#   --jinja  the chat template of the model
`, comment(f.Pin.Artifact.Name), comment(f.runNote()))
	extra := ""
	if f.Nodes > 1 {
		parts := f.splitComments(&b)
		extra = " \\\n\t--rpc \"$workers\" --split-mode layer --tensor-split " + strings.Join(parts, ",")
	}
	b.WriteString("set -eu\n\n")
	b.WriteString("here=$(CDPATH='' cd -- \"$(dirname -- \"$0\")\" && pwd)\n")
	if f.Nodes > 1 {
		fmt.Fprintf(&b, "workers=${WORKERS:?the %s that run rpc-worker.sh, in order: HOST:PORT,HOST:PORT}\n", text.Count(f.Nodes-1, "machine"))
	}
	fmt.Fprintf(&b, "model=${MODEL:-}\n[ -n \"$model\" ] || model=$here/%s\n\n", args.ShellQuote(path.Join(release, f.Pin.Files[0].Name)))
	fmt.Fprintf(&b, "exec \"${LLAMA_SERVER:-llama-server}\" -m \"$model\" -ngl 99 -c \"${CONTEXT:-4096}\" --jinja%s\n", extra)
	return b.String()
}

func (f *Facts) runNote() string {
	if row := f.ran(); row != "" {
		return "Evidence has a row of these files: " + row + "."
	}
	return "Not executed with these files, as far as evidence says."
}

// splitComments says how layers lie on the machines, and returns how many each has.
func (f *Facts) splitComments(b *strings.Builder) []string {
	b.WriteString("#   --rpc           the other machines, which get the first layers in this order\n" +
		"#   --split-mode    whole layers on each\n#   --tensor-split  how many layers each has, this machine last:\n")
	var parts []string
	for i, n := range Split(f.Pin, f.Nodes) {
		fmt.Fprintf(b, "#                   machine %d: layers %s, %s of tensor data\n", i+1, n.Layers(), text.Size(n.Bytes))
		parts = append(parts, fmt.Sprint(n.To-n.From))
	}
	return parts
}

// comment is a text on one line of a comment.
func comment(s string) string { return text.Safe(strings.Join(strings.Fields(s), " ")) }
