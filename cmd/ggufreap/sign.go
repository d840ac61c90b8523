package main

import (
	"crypto/ecdsa"
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"
	"golang.org/x/crypto/ssh"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/card"
	"ggufreap/cmd/ggufreap/internal/document"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/signing"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/manifest/sign"
)

const signHelp = `Sign a release, so that people can check who made it.

Usage:
  ggufreap sign --ssh-key FILE RELEASE
  ggufreap sign --key FILE RELEASE

RELEASE is a finished folder, with a MANIFEST.sha256. The model is not read
again: what is signed are the sums that the list states. Check them first with
"ggufreap verify RELEASE" if others could write to the folder.

With an SSH key, MANIFEST.sha256.sig is written, as ssh-keygen -Y sign does.
Keys in agents and security keys stay with ssh-keygen:
  ssh-keygen -Y sign -n ggufreap-release@v1 -f KEY RELEASE/MANIFEST.sha256

With an EC key (P-256, P-384 or P-521), model.sig is written, in the form of
OpenSSF Model Signing 1.0. It covers every file of the folder, so it is made
last, and made anew when a file is added or edited.

--provenance adds provenance.dsse.json, signed by the same key: what the release
was made from and how, in the form of SLSA provenance. "ggufreap prune" takes
the same flags, and signs what it has written.

Flags:

Exit codes:
  0  the release is signed
  2  it could not be signed
  75 not now: a disk, the network or memory failed; try again

Examples:
  ggufreap sign --ssh-key ~/.ssh/id_ed25519 K3-REAP568
  ggufreap sign --key release-key.pem --provenance K3-REAP568
  ggufreap verify --signer allowed_signers K3-REAP568
`

func signCommand(con *ui.Console) *cli.Command {
	return &cli.Command{
		Name:        "sign",
		Usage:       "sign a release, and state what it was made from",
		Description: signHelp,
		Flags: append(signFlags(),
			&cli.StringFlag{Name: "source", Usage: "`TEXT`: address of the source, for --provenance (what its pin or the plan say)"},
			&cli.BoolFlag{Name: "force", Usage: "replace signatures that are there"},
			jsonFlag(),
		),
		Action: func(c *cli.Context) error { return signAction(con, c) },
	}
}

// signFlags say with which keys a release is signed.
func signFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "ssh-key", Usage: "`FILE`: the SSH private key that signs MANIFEST.sha256"},
		&cli.StringFlag{Name: "key", Usage: "`FILE`: the EC private key, in PEM, that signs all files"},
		&cli.BoolFlag{Name: "provenance", Usage: "state what the release was made from, signed too"},
		&cli.StringFlag{Name: "builder", Usage: "`URI`: who is trusted to have made the release, for --provenance (a machine that nobody vouches for)"},
	}
}

// signers are the keys of one run, of which either may be nil, and what they sign.
type signers struct {
	ssh    ssh.Signer
	ec     *ecdsa.PrivateKey
	source string // as the provenance states it; "" for what the release tells
	force  bool   // replace signatures that are there
}

// any reports whether anything is to be signed.
func (k signers) any() bool { return k.ssh != nil || k.ec != nil }

// names are those of the keys, for a card.
func (k signers) names() []card.Key {
	var list []card.Key
	if k.ssh != nil {
		list = append(list, card.Key{Kind: "SSH", Name: ssh.FingerprintSHA256(k.ssh.PublicKey())})
	}
	if k.ec != nil {
		if name, err := sign.KeyHint(&k.ec.PublicKey); err == nil {
			list = append(list, card.Key{Kind: "EC", Name: name})
		}
	}
	return list
}

// signedDocument is what "sign --json" prints.
type signedDocument struct {
	Schema     string        `json:"schema"`
	Folder     document.Text `json:"folder"`
	Signatures []signature   `json:"signatures"`
}

type signature struct {
	File string `json:"file"`
	Key  string `json:"key"` // fingerprint of an SSH key, hint of an EC key
	Over string `json:"over"`
}

func signAction(con *ui.Console, c *cli.Context) error {
	if c.NArg() != 1 {
		return hint.With(args.Usagef("sign takes one release folder, got %d", c.NArg()), "ggufreap sign --ssh-key FILE DIR")
	}
	dir := c.Args().First()
	if err := checkNamed("a release", dir); err != nil {
		return err
	}
	if !c.IsSet("ssh-key") && !c.IsSet("key") {
		return hint.With(args.Usagef("no key given"), "--ssh-key FILE for an SSH key, --key FILE for an EC key")
	}
	keys, err := readSigners(con, c, dir)
	if err != nil {
		return err
	}
	keys.source, keys.force = c.String("source"), c.Bool("force")
	made, err := signRelease(c, dir, keys)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return con.JSON(signedDocument{Schema: "ggufreap/signed/v1", Folder: document.Text(dir), Signatures: made})
	}
	describeSignatures(con, dir, made)
	return nil
}

func describeSignatures(con *ui.Console, dir string, made []signature) {
	for _, s := range made {
		con.Field("written", "%s", text.Safe(filepath.Join(dir, s.File)))
		con.Field("", "over %s", s.Over)
		con.Field("", "key %s", s.Key)
	}
}

// signRelease writes what is to be signed of a finished release. The bundle comes last: it
// covers the others.
func signRelease(c *cli.Context, dir string, keys signers) ([]signature, error) {
	r, err := signing.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := checkCovered(c, r, keys); err != nil {
		return nil, err
	}
	var made []signature
	for _, step := range []func(*cli.Context, *signing.Release, signers) (*signature, error){signProvenance, signList, signModel} {
		s, err := step(c, r, keys)
		if err != nil {
			return nil, err
		}
		if s != nil {
			made = append(made, *s)
		}
	}
	return made, nil
}

// checkCovered refuses, before anything is written, a file more beside a bundle that stays: it
// would cover all files but that one.
func checkCovered(c *cli.Context, r *signing.Release, keys signers) error {
	if keys.ec == nil || keys.force {
		return nil
	}
	if _, err := os.Lstat(r.Path(sign.ModelName)); err != nil {
		return nil
	}
	for name, wanted := range map[string]bool{sign.ProvenanceName: c.Bool("provenance"), sign.SSHName: keys.ssh != nil} {
		if _, err := os.Lstat(r.Path(name)); wanted && err != nil {
			return hint.With(fmt.Errorf("output %s exists, and does not cover the new %s", text.Safe(r.Path(sign.ModelName)), name), "--force makes it anew")
		}
	}
	return nil
}

func readSigners(con *ui.Console, c *cli.Context, dir string) (keys signers, err error) {
	if !c.Bool("provenance") && (c.IsSet("source") || c.IsSet("builder")) {
		return keys, args.Usagef("--source and --builder are stated by --provenance, so that is needed too")
	}
	if path := c.String("ssh-key"); path != "" {
		if keys.ssh, err = signing.ReadSSHKey(con, path, dir); err != nil {
			return keys, err
		}
	}
	if path := c.String("key"); path != "" {
		keys.ec, err = signing.ReadKey(con, path)
	}
	return keys, err
}

// signProvenance writes the signed statement, by the EC key where there are both.
func signProvenance(c *cli.Context, r *signing.Release, keys signers) (*signature, error) {
	if !c.Bool("provenance") {
		return nil, nil
	}
	p, err := r.Provenance(keys.source, c.String("builder"), buildVersion().Version)
	if err != nil {
		return nil, err
	}
	statement, err := p.Statement()
	if err != nil {
		return nil, err
	}
	s := &signature{File: sign.ProvenanceName, Over: "what it states of " + text.Count(len(p.Files), "file")}
	var envelope []byte
	if keys.ec != nil {
		envelope, err = sign.SignStatement(statement, keys.ec)
		s.Key, _ = sign.KeyHint(&keys.ec.PublicKey)
	} else {
		envelope, err = sign.SignStatementSSH(statement, keys.ssh)
		s.Key = ssh.FingerprintSHA256(keys.ssh.PublicKey())
	}
	if err != nil {
		return nil, err
	}
	return s, writeSignature(r, s.File, envelope, keys.force)
}

// signList writes the SSH signature over the list of sums.
func signList(c *cli.Context, r *signing.Release, keys signers) (*signature, error) {
	if keys.ssh == nil {
		return nil, nil
	}
	signed, err := sign.SignSSH(r.List, keys.ssh)
	if err != nil {
		return nil, err
	}
	over := manifest.SumsName + ", and by its sums " + text.Count(len(r.Files), "file")
	unlisted, err := r.Unlisted()
	if err != nil {
		return nil, err
	}
	if len(unlisted) > 0 {
		over += ", but not " + text.Names(unlisted, 8)
	}
	s := &signature{sign.SSHName, ssh.FingerprintSHA256(keys.ssh.PublicKey()), over}
	return s, writeSignature(r, s.File, signed, keys.force)
}

// signModel writes the bundle over all files, the other signatures too.
func signModel(c *cli.Context, r *signing.Release, keys signers) (*signature, error) {
	if keys.ec == nil {
		return nil, nil
	}
	all, err := r.All(c.Context)
	if err != nil {
		return nil, err
	}
	absolute, err := filepath.Abs(r.Dir)
	if err != nil {
		return nil, err
	}
	bundle, err := sign.SignModel(filepath.Base(absolute), all, keys.ec)
	if err != nil {
		return nil, err
	}
	key, err := sign.KeyHint(&keys.ec.PublicKey)
	if err != nil {
		return nil, err
	}
	s := &signature{sign.ModelName, key, "all " + text.Count(len(all), "file") + " of the folder"}
	return s, writeSignature(r, s.File, bundle, keys.force)
}

func writeSignature(r *signing.Release, name string, data []byte, force bool) error {
	_, err := files.Write(r.Path(name), force, nil, files.Bytes(data))
	return err
}
