package main

import (
	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hub"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
)

// fetchFlags are the flags of every command that takes an address.
func fetchFlags() []cli.Flag {
	return args.In("From an address",
		&cli.IntFlag{Name: "connections", Usage: "fetch `N` ranges at once (16)"},
		&cli.StringFlag{Name: "limit-rate", Usage: "fetch at most `SIZE` a second: 20MB, 10MiB"},
	)
}

// describeFetched prints where a model is that is not on this machine, and what came of it.
func describeFetched(con *ui.Console, m *gguf.Model) {
	if far := hub.Of(m); far != nil {
		far.Describe(con, m)
	}
}

// readFetch reads them.
func readFetch(c *cli.Context) (hub.Options, error) {
	o := hub.Options{Connections: c.Int("connections"), Version: buildVersion().Version}
	if o.Connections < 0 || c.IsSet("connections") && o.Connections == 0 {
		return o, args.Usagef("--connections is %d, want at least 1", o.Connections)
	}
	if c.IsSet("limit-rate") {
		rate, err := text.ParseSize(c.String("limit-rate"))
		if err != nil {
			return o, args.Usagef("--limit-rate: %w", err)
		}
		if rate == 0 {
			return o, args.Usagef("--limit-rate is 0: nothing would come")
		}
		o.Rate = rate
	}
	return o, nil
}
