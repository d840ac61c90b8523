// Package peer sets ggufreap beside gguf-parser-go, another GGUF reader in Go: its tests
// compare what both read from the same files, and the command compare how long that
// takes. It is a module of its own, so that the library is no requirement of ggufreap.
package peer
