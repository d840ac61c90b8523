//go:build windows

// Command ggufreap-engine holds llama.cpp for ggufreap. It is not there for Windows yet.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "ggufreap-engine: not built for Windows: calibrate in WSL or on another system")
	os.Exit(2)
}
