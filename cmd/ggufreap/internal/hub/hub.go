// Package hub opens models by their addresses, on the Hugging Face hub and on other servers,
// for any command: it reads the environment, words what a server refuses, and says what is
// known of files that are not here. How ranges travel package gguf/remote knows.
package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"ggufreap/cmd/ggufreap/internal/hint"
	"ggufreap/cmd/ggufreap/internal/ui"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/gguf"
	"ggufreap/gguf/remote"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/stage"
	"ggufreap/manifest/verify"
	"ggufreap/reap"
)

// Options are how the flags say that ranges are fetched.
type Options struct {
	Connections int    // 0 for as many as are usual
	Rate        int64  // bytes a second; 0 for no limit
	Cache       string // a folder that keeps what was fetched, or ""
	Version     string
}

// A Folder holds the files that addresses name. It is a [gguf.Folder].
type Folder struct {
	client  *remote.Client
	folders []*remote.Folder
	names   []string // of files that were named, one for each folder; "" for a folder
}

// Open finds the files that addresses name: one address, or those of all shards where each
// has a signature of its own. It returns the name of the file that one address names, ""
// where there are several, or it names a folder.
func Open(ctx context.Context, con *ui.Console, o Options, addresses ...string) (*Folder, string, error) {
	settings, err := Environment()
	if err != nil {
		return nil, "", err
	}
	client, err := remote.NewClient(ctx, remote.Options{
		Endpoint: settings.Endpoint, Token: settings.Token, Offline: settings.Offline,
		Connections: o.Connections, Rate: o.Rate, Cache: o.Cache, UserAgent: "ggufreap/" + o.Version,
		Transport: func(t *http.Transport) { t.Proxy = http.ProxyFromEnvironment },
		Notify:    notifier(con),
	})
	if err != nil {
		return nil, "", fmt.Errorf("HF_ENDPOINT: %w", err)
	}
	f := &Folder{client: client}
	for _, address := range addresses {
		folder, name, err := client.Open(address)
		if err != nil {
			client.Close()
			return nil, "", Explain(err)
		}
		f.folders, f.names = append(f.folders, folder), append(f.names, name)
	}
	if len(addresses) == 1 {
		return f, f.names[0], nil
	}
	return f, "", nil
}

// notifier says why a run waits, not for every request and not for short waits.
func notifier(con *ui.Console) func(error, time.Duration) {
	const long = 5 * time.Second
	return func(err error, wait time.Duration) {
		if wait >= long {
			con.Notef("waiting %s: %v", wait.Round(time.Second), err)
		}
	}
}

// Name is the address of the folder, as it is shown.
func (f *Folder) Name() string {
	if len(f.folders) > 1 {
		return ""
	}
	return f.folders[0].Name()
}

// Names lists the files: those that were named, or those of the only folder.
func (f *Folder) Names() ([]string, error) {
	if len(f.folders) > 1 {
		return slices.Clone(f.names), nil
	}
	return f.folders[0].Names()
}

// Open returns a file.
func (f *Folder) Open(name string) (gguf.Source, error) {
	i := 0
	if len(f.folders) > 1 {
		i = slices.Index(f.names, name)
	}
	file, err := f.folders[max(i, 0)].Open(name)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// Close ends all requests.
func (f *Folder) Close() error { return f.client.Close() }

// Of returns the folder of a model that is not on this machine, or nil.
func Of(m *gguf.Model) *Folder {
	f, _ := m.Folder().(*Folder)
	return f
}

// Traffic returns how many requests were made so far and how many bytes they brought.
func (f *Folder) Traffic() (requests, bytes int64) { return f.client.Traffic() }

// Saved returns how many bytes were fetched so far, and how many of a model were not.
func (f *Folder) Saved(m *gguf.Model) (fetched, saved int64) {
	_, fetched = f.Traffic()
	return fetched, max(m.FileBytes()-fetched, 0)
}

// identity returns what the server states of a file of the model.
func (f *Folder) identity(file *gguf.File) (remote.Identity, error) {
	name := file.Name[strings.LastIndexByte(file.Name, '/')+1:]
	src, err := f.Open(name)
	if err != nil {
		return remote.Identity{}, err
	}
	return src.(*remote.File).Identity(), nil
}

// Sources are the identities of a model's files, which a run that is gone on with must find
// again.
func (f *Folder) Sources(m *gguf.Model) ([]stage.Source, error) {
	var sources []stage.Source
	for _, file := range m.Files {
		id, err := f.identity(file)
		if err != nil {
			return nil, err
		}
		sources = append(sources, stage.Source{Name: id.Name, Size: id.Size, Identity: identityText(id)})
	}
	return sources, nil
}

// identityText spells an identity: what the server states, not computed.
func identityText(id remote.Identity) string {
	switch {
	case id.Repo != "" && id.SHA256 != "":
		return fmt.Sprintf("stated as hf://%s@%s/%s with sha256 %s", id.Repo, id.Commit, id.Path, id.SHA256)
	case id.Repo != "" && id.ETag == "":
		return fmt.Sprintf("stated as hf://%s@%s/%s", id.Repo, id.Commit, id.Path)
	case id.Repo != "":
		return fmt.Sprintf("stated as hf://%s@%s/%s with etag %s", id.Repo, id.Commit, id.Path, id.ETag)
	case id.ETag != "":
		return "stated with etag " + id.ETag
	case id.Modified != "":
		return "stated as modified " + id.Modified
	}
	return "stated by its size only"
}

// Identity tells the files from any others: the commit, or the address without its query.
func (f *Folder) Identity() string { return f.folders[0].Name() }

// Facts are what the hub states of the repository; nothing for other servers.
func (f *Folder) Facts() remote.Facts {
	if len(f.folders) > 1 {
		return remote.Facts{}
	}
	return f.folders[0].Facts()
}

// Declare fills in what nobody has declared with what the hub states.
func (f *Folder) Declare(said *manifest.Declared) {
	facts := f.Facts()
	said.StateByHub("repo", facts.Repo)
	said.StateByHub("revision", facts.Commit)
	said.StateByHub("license", facts.License)
}

// DeclareBase names the repository and commit as what the model was made from.
func (f *Folder) DeclareBase(said *manifest.Declared) {
	if facts := f.Facts(); facts.Repo != "" {
		said.StateByHub("base_model", facts.Repo+"@"+facts.Commit)
	}
}

// Stated returns what the hub states of a model's files; nil for other servers.
func (f *Folder) Stated(m *gguf.Model) (*reap.Stated, error) {
	facts := f.Facts()
	if facts.Repo == "" {
		return nil, nil
	}
	stated := &reap.Stated{Repo: facts.Repo, Commit: facts.Commit}
	for _, file := range m.Files {
		id, err := f.identity(file)
		if err != nil {
			return nil, err
		}
		stated.Files = append(stated.Files, reap.StatedFile{Path: id.Path, Size: id.Size, SHA256: id.SHA256, ETag: id.ETag})
	}
	return stated, nil
}

// Listing returns what the hub lists in the folder.
func (f *Folder) Listing() (*verify.Listing, error) {
	identities, err := f.folders[0].Identities()
	if err != nil {
		return nil, err
	}
	l := &verify.Listing{Name: f.folders[0].Name()}
	for _, id := range identities {
		file := lists.TreeFile{Path: id.Path, Size: id.Size}
		if id.SHA256 != "" {
			file.SHA256 = new(manifest.Sum)
			if err := file.SHA256.UnmarshalText([]byte(id.SHA256)); err != nil {
				return nil, fmt.Errorf("%s%s: the hub's sha256: %w", l.Name, id.Name, err)
			}
		}
		l.Files = append(l.Files, file)
	}
	return l, nil
}

// SHA256 returns what the hub lists as the sums of a model's files, in their order; zero
// where it lists none.
func (f *Folder) SHA256(m *gguf.Model) ([]manifest.Sum, error) {
	sums := make([]manifest.Sum, len(m.Files))
	for i, file := range m.Files {
		id, err := f.identity(file)
		if err != nil {
			return nil, err
		}
		if id.SHA256 != "" {
			if err := sums[i].UnmarshalText([]byte(id.SHA256)); err != nil {
				return nil, fmt.Errorf("%s: the hub's sha256: %w", file.Name, err)
			}
		}
	}
	return sums, nil
}

// Describe prints what is known of where a model is, and what has travelled.
func (f *Folder) Describe(con *ui.Console, m *gguf.Model) {
	if facts := f.Facts(); facts.Repo != "" {
		con.Field("hub states", "%s; not computed here", text.Safe("repository "+facts.Repo+", commit "+facts.Commit+licenseText(facts)))
	}
	requests, _ := f.Traffic()
	bytes, saved := f.Saved(m)
	con.Field("fetched", "%s in %s", text.Size(bytes), text.Count(requests, "request"))
	if saved == 0 {
		return
	}
	con.Field("saved", "%s, %.1f %% of the source, did not have to travel", text.Size(saved), 100*float64(saved)/float64(max(m.FileBytes(), 1)))
}

func licenseText(facts remote.Facts) string {
	if facts.License == "" {
		return ""
	}
	return ", license " + facts.License
}

// Explain adds what can be done about an error of a server.
func Explain(err error) error {
	if err == nil || hint.Of(err) != "" {
		return err
	}
	access, refused := errors.AsType[*remote.AccessError](err)
	switch {
	case refused && access.Gated && access.Token:
		return hint.With(err, "ask for access on the repository's page in a browser, with the account of this token")
	case refused && access.Gated:
		return hint.With(err, "ask for access on the repository's page in a browser, then set HF_TOKEN or log in with: hf auth login")
	case refused && !access.Token:
		return hint.With(err, "check the name; for a private repository set HF_TOKEN or log in with: hf auth login")
	case errors.Is(err, remote.ErrOffline):
		return hint.With(err, "HF_HUB_OFFLINE is set: unset it, or give files of this machine")
	case errors.Is(err, remote.ErrNoRanges):
		return hint.With(err, "download the files, or serve them by a program that serves ranges, such as nginx or: rclone serve http")
	}
	return err
}

// Redacted returns the words of a command line without what is secret in addresses.
func Redacted(words []string) []string {
	words = slices.Clone(words)
	for i, word := range words {
		if remote.IsAddress(word) {
			words[i] = remote.Redacted(word)
		}
	}
	return words
}
