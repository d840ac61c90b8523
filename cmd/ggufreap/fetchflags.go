package main

import (
	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/hub"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/remote"
	"ggufreap/manifest/verify"
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

// askListing asks the hub what it lists at an address, and what it states of that.
func askListing(con *ui.Console, c *cli.Context, address string) (*verify.Listing, remote.Facts, error) {
	fetch, err := readFetch(c)
	if err != nil {
		return nil, remote.Facts{}, err
	}
	if !remote.IsAddress(address) {
		return nil, remote.Facts{}, args.Usagef("%q is no address of the hub, want hf://OWNER/REPO[@REVISION][/PATH]", address)
	}
	folder, _, err := hub.Open(c.Context, con, fetch, address)
	if err != nil {
		return nil, remote.Facts{}, err
	}
	defer folder.Close()
	listing, err := folder.Listing()
	return listing, folder.Facts(), err
}

// readFetch reads them.
func readFetch(c *cli.Context) (hub.Options, error) {
	o := hub.Options{Connections: c.Int("connections"), Cache: c.String("cache"), Version: buildVersion().Version}
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
