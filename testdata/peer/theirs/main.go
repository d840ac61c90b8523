// Theirs parses a model in full with gguf-parser-go, given its first shard.
package main

import (
	"fmt"
	"os"

	parser "github.com/gpustack/gguf-parser-go"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: theirs FILE")
		os.Exit(2)
	}
	f, err := parser.ParseGGUFFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(len(f.TensorInfos), "tensors")
}
