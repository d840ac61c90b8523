// Package signing joins package sign with the files of the command line: keys, lists of
// signers, and the release folder that is signed. What a signature is, and whether one fits,
// package sign knows.
package signing

import (
	"bytes"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/crypto/ssh"

	"ggufreap/cmd/ggufreap/internal/args"
	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/manifest"
	"ggufreap/manifest/sign"
)

// ReadKey reads an EC private key, and warns of one that others can read.
func ReadKey(con *ui.Console, path string) (*ecdsa.PrivateKey, error) {
	data, err := readPrivate(con, path)
	if err != nil {
		return nil, err
	}
	key, err := sign.ReadPrivateKey(data)
	if err == nil {
		return key, nil
	}
	err = fmt.Errorf("%s: %w", text.Safe(path), err)
	if errors.Is(err, sign.ErrEncrypted) {
		return nil, hint.With(err, "openssl asks for the passphrase: openssl pkey -in %s | ggufreap sign --key /dev/stdin RELEASE", args.ShellQuote(path))
	}
	if bytes.Contains(data, []byte("OPENSSH PRIVATE KEY-----")) {
		return nil, hint.With(err, "an SSH key goes to --ssh-key %s", args.ShellQuote(path))
	}
	return nil, hint.With(err, "openssl makes a key: openssl ecparam -name prime256v1 -genkey -noout -out key.pem")
}

// ReadSSHKey reads an SSH private key, and warns of one that others can read. Keys that it
// cannot use are left to ssh-keygen, which can sign the list of sums of the folder dir.
func ReadSSHKey(con *ui.Console, path, dir string) (ssh.Signer, error) {
	data, err := readPrivate(con, path)
	if err != nil {
		return nil, err
	}
	key, err := sign.ReadSSHKey(data)
	if err == nil {
		return key, nil
	}
	if _, _, _, _, notPublic := ssh.ParseAuthorizedKey(data); notPublic == nil {
		if private, cut := strings.CutSuffix(path, ".pub"); cut && exists(private) {
			return nil, hint.With(fmt.Errorf("%s: this is a public key, and signing takes the private one", text.Safe(path)), "--ssh-key %s", args.ShellQuote(private))
		}
		err = errors.New("this is a public key: the private one is in an agent or a security key" + agentNote())
	}
	return nil, hint.With(fmt.Errorf("%s: %w", text.Safe(path), err), "ssh-keygen signs with keys of any kind: %s",
		args.CommandLine([]string{"ssh-keygen", "-Y", "sign", "-n", sign.Namespace, "-f", path, filepath.Join(dir, manifest.SumsName)}))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// agentNote says where no agent can be asked for a key.
func agentNote() string {
	if os.Getenv("SSH_AUTH_SOCK") == "" && runtime.GOOS != "windows" {
		return `, and no agent runs here (SSH_AUTH_SOCK is not set): eval "$(ssh-agent)" and ssh-add begin one`
	}
	return ""
}

// readPrivate reads a file that nobody else should be able to read.
func readPrivate(con *ui.Console, path string) ([]byte, error) {
	data, err := files.ReadInput(con.In, path)
	if err != nil {
		return nil, err
	}
	secret := bytes.Contains(data, []byte("PRIVATE KEY-----"))
	if info, err := os.Stat(path); err == nil && secret && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		con.Warnf("%s can be read by others: chmod 600 %s", text.Safe(path), text.Safe(args.ShellQuote(path)))
	}
	return data, nil
}
