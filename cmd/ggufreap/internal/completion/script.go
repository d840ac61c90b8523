package completion

import (
	_ "embed"
	"slices"
)

// Shells are those for which there are scripts.
var Shells = []string{"bash", "zsh", "fish", "powershell"}

// Command is the hidden command by which the scripts ask: behind "--" stand the words that
// were typed behind the program's name, the last one up to the cursor. That one may stand in
// --last instead.
const Command = "__complete"

//go:embed ggufreap.bash
var bash string

//go:embed ggufreap.zsh
var zsh string

//go:embed ggufreap.fish
var fish string

//go:embed ggufreap.ps1
var powershell string

// Script returns the script for one of the Shells.
func Script(shell string) string {
	return []string{bash, zsh, fish, powershell}[slices.Index(Shells, shell)]
}
