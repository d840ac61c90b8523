// Mkmodel writes a generated model of the kimi-k3 architecture: for benchmarks one of
// several gigabytes whose expert rows are as wide as the real model's, or with -real one
// of the real model's dimensions, whose data is a hole in each file.
package main

import (
	"flag"
	"fmt"
	"os"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

const usage = `Write a generated kimi-k3 model into DIR and print the files' names.

Usage:
  mkmodel [flags] DIR

The same flags make the same bytes everywhere. The default is 4.9 GB in ten shards.

Flags:
`

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mkmodel:", err)
		os.Exit(2)
	}
}

// realWidth is the inner width of an expert of the real model.
const realWidth = 3072

// given reports whether a flag was on the command line.
func given(name string) bool {
	found := false
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

func run() error {
	o := gguftest.K3Options{}
	flag.StringVar(&o.Name, "name", "K3", "stem of the file names")
	flag.Uint64Var(&o.Seed, "seed", 1, "seed of the data")
	flag.IntVar(&o.Layers, "layers", 6, "layers, the first of which is dense")
	flag.IntVar(&o.Experts, "experts", 896, "routed experts in a layer")
	flag.IntVar(&o.Hidden, "hidden", 7168, "hidden width")
	flag.IntVar(&o.Latent, "latent", 3584, "width of an expert's input and output")
	flag.IntVar(&o.Width, "width", 512, "inner width of an expert; with -real 3072 unless given, as published (1536 is too)")
	shards := flag.Int("shards", 10, "number of files")
	typeName := flag.String("type", "IQ1_S", "type of the experts")
	sparse := flag.Bool("sparse", false, "write real headers, and holes for data")
	real := flag.Bool("real", false, "the real model's dimensions, sparse; of the flags for sizes only -width counts")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		return fmt.Errorf("got %d folders, want one", flag.NArg())
	}
	var err error
	if o.GateUp, err = gguf.ParseType(*typeName); err != nil {
		return err
	}
	spec := gguftest.K3(o)
	write := spec.Write
	switch {
	case *real:
		if !given("width") {
			o.Width = realWidth
		}
		write = gguftest.K3Real(o.Width, o.GateUp).WriteSparse
	case *sparse:
		write = spec.WriteSparse
	}
	paths, err := write(flag.Arg(0), gguf.Split{Shards: *shards})
	for _, path := range paths {
		fmt.Println(path)
	}
	return err
}
