package main

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/signing"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest/sign"
	"ggufreap/manifest/verify"
)

// trustFlags say whose signatures count.
func trustFlags() []cli.Flag {
	return args.In("Who signed it",
		&cli.StringFlag{Name: "signer", Usage: "`FILE`: keys that may sign, as an allowed_signers file of OpenSSH; MANIFEST.sha256.sig must be by one of them"},
		&cli.StringFlag{Name: "identity", Usage: "`NAME`: which of them must have signed (any)"},
		&cli.StringFlag{Name: "oms-key", Usage: "`FILE`: the EC public key, in PEM, that must have signed model.sig (OpenSSF Model Signing)"},
		&cli.StringFlag{Name: "oms-ca", Usage: "`FILE`: certificates, in PEM, of authorities; model.sig must be signed by somebody whom one of them certified"},
	)
}

// readTrust reads the files that those flags name.
func readTrust(c *cli.Context) (verify.Trust, error) {
	t := verify.Trust{Identity: c.String("identity"), Now: time.Now(), Facts: signing.Facts}
	if c.IsSet("identity") && !c.IsSet("signer") {
		return t, args.Usagef("--identity is looked for in the file of --signer, so that is needed too")
	}
	if c.IsSet("oms-key") && c.IsSet("oms-ca") {
		return t, args.Usagef("--oms-key and --oms-ca are two ways to know a signer: leave one of them out")
	}
	err := readFlagged(c, "signer", `a line is: NAME KEYTYPE KEY, such as: echo "me@example.com $(cat id_ed25519.pub)" > allowed_signers`, func(data []byte) (err error) {
		t.Signers, err = sign.ReadSigners(data, time.Local)
		return err
	})
	if err != nil {
		return t, err
	}
	err = readFlagged(c, "oms-key", "the public half of a key: openssl pkey -in key.pem -pubout -out pub.pem", func(data []byte) (err error) {
		t.Key, err = sign.ReadPublicKey(data)
		return err
	})
	if err != nil {
		return t, err
	}
	err = readFlagged(c, "oms-ca", "a file of PEM blocks that begin with -----BEGIN CERTIFICATE-----", func(data []byte) (err error) {
		t.Roots, err = sign.ReadCertificates(data)
		return err
	})
	return t, err
}

// readFlagged reads the file that a flag names, if it names one; help says what such a file is.
func readFlagged(c *cli.Context, flag, help string, parse func(data []byte) error) error {
	path := c.String(flag)
	if path == "" {
		return nil
	}
	data, err := files.ReadInput(c.App.Reader, path)
	if err != nil {
		return err
	}
	if err := parse(data); err != nil {
		return hint.With(fmt.Errorf("%s: %w", text.Safe(path), err), "%s", help)
	}
	return nil
}
