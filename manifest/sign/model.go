package sign

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
)

// Predicate types of model signing. The second one is of version 0.2 of the reference tool.
const (
	modelType    = "https://model_signing/signature/v1.0"
	oldModelType = "https://model_signing/Digests/v0.1"
)

// A Model is a signed list of a model's files.
type Model struct {
	Name      string // the folder's when it was signed; says nothing of which model it is
	Resources []Resource
	Settings  Serialization

	root [32]byte
}

// A Resource is a file, or a range of bytes of one, and its hash.
type Resource struct {
	Name      string `json:"name"` // PATH, or PATH:START:END of the method "shards", END exclusive
	Digest    string `json:"digest"`
	Algorithm string `json:"algorithm"`
}

// Serialization says how files were found and hashed.
type Serialization struct {
	Method        string   `json:"method"`    // "files" or "shards": ranges of equal length
	HashType      string   `json:"hash_type"` // "sha256", "blake2b" (512 bits) or "blake3" (256 bits)
	ShardSize     int64    `json:"shard_size,omitzero"`
	AllowSymlinks bool     `json:"allow_symlinks"`
	IgnorePaths   []string `json:"ignore_paths,omitzero"`
}

type predicate struct {
	Resources     []Resource    `json:"resources"`
	Serialization Serialization `json:"serialization"`
}

// digestBytes is the length of the hashes that the specification knows.
var digestBytes = map[string]int{"sha256": 32, "blake2b": 64, "blake3": 32}

// neverSigned are left out at the top of a folder, as the specification says.
var neverSigned = []string{".git", ".gitattributes", ".github", ".gitignore"}

// newModel lists files that were hashed with SHA-256.
func newModel(name string, files []File) *Model {
	m := &Model{Name: name, Settings: Serialization{Method: "files", HashType: "sha256", IgnorePaths: neverSigned}}
	for _, f := range files {
		m.Resources = append(m.Resources, Resource{f.Name, hex.EncodeToString(f.SHA256[:]), "sha256"})
	}
	slices.SortFunc(m.Resources, func(a, b Resource) int { return cmp.Compare(a.Name, b.Name) })
	m.root, _ = rootDigest(m.Resources)
	return m
}

func (m *Model) payload() ([]byte, error) {
	about := []subject{{m.Name, map[string]string{"sha256": hex.EncodeToString(m.root[:])}}}
	return writeStatement(about, modelType, predicate{m.Resources, m.Settings})
}

// readModel reads the statement of a bundle; an error is passed through.
func readModel(payload []byte, err error) (*Model, error) {
	if err != nil {
		return nil, err
	}
	s, err := readStatement(payload, modelType)
	if err != nil {
		if strings.Contains(err.Error(), oldModelType) {
			return nil, fmt.Errorf("%w: this is the form of version 0.2 of the reference tool, which is not supported", err)
		}
		return nil, err
	}
	var p predicate
	if err := json.Unmarshal(s.Predicate, &p); err != nil {
		return nil, fmt.Errorf("the signed list: %w", err)
	}
	m := &Model{Resources: p.Resources, Settings: p.Serialization}
	if len(s.Subject) != 1 {
		return nil, fmt.Errorf("the signed statement has %d subjects, want one", len(s.Subject))
	}
	m.Name = s.Subject[0].Name
	if err := m.validate(); err != nil {
		return nil, fmt.Errorf("the signed list: %w", err)
	}
	if m.root, err = rootDigest(m.Resources); err != nil {
		return nil, err
	}
	if got, want := s.Subject[0].Digest["sha256"], hex.EncodeToString(m.root[:]); got != want {
		return nil, fmt.Errorf("the signed statement's digest is %q, that of its list is %q", got, want)
	}
	return m, nil
}

// rootDigest is the SHA-256 over the digests of all resources, in their order.
func rootDigest(resources []Resource) ([32]byte, error) {
	h := sha256.New()
	for _, r := range resources {
		b, err := hex.DecodeString(r.Digest)
		if err != nil {
			return [32]byte{}, fmt.Errorf("%q: digest: %w", r.Name, err)
		}
		h.Write(b)
	}
	return [32]byte(h.Sum(nil)), nil
}

// validate checks what the specification demands of a list. The order of names is not looked
// at: the reference tool sorts by the parts of paths.
func (m *Model) validate() error {
	s := m.Settings
	bytes, known := digestBytes[s.HashType]
	switch {
	case !known:
		return fmt.Errorf("hash_type is %q, want sha256, blake2b or blake3", s.HashType)
	case s.Method != "files" && s.Method != "shards":
		return fmt.Errorf("method is %q, want files or shards", s.Method)
	case s.Method == "shards" && s.ShardSize <= 0:
		return fmt.Errorf("shard_size is %d, want more than 0", s.ShardSize)
	case s.Method == "files" && s.ShardSize != 0:
		return fmt.Errorf("shard_size is %d, and the method is files", s.ShardSize)
	case len(m.Resources) == 0:
		return errors.New("it lists no files")
	}
	for _, name := range s.IgnorePaths {
		if err := checkPath(name); err != nil {
			return fmt.Errorf("ignore_paths: %w", err)
		}
		if strings.ContainsAny(name, "*?[") {
			return fmt.Errorf("ignore_paths: %q has a pattern, want a path", name)
		}
	}
	seen := make(map[string]bool, len(m.Resources))
	for _, r := range m.Resources {
		if seen[r.Name] {
			return fmt.Errorf("%q is listed twice", r.Name)
		}
		seen[r.Name] = true
		if err := m.checkResource(r, bytes); err != nil {
			return err
		}
	}
	return nil
}

func (m *Model) checkResource(r Resource, bytes int) error {
	name := r.Name
	if m.Settings.Method == "shards" {
		var err error
		if name, _, _, err = splitRange(r.Name); err != nil {
			return err
		}
	}
	if err := checkPath(name); err != nil {
		return err
	}
	if r.Algorithm != m.Settings.HashType {
		return fmt.Errorf("%q: algorithm is %q, hash_type is %q", r.Name, r.Algorithm, m.Settings.HashType)
	}
	if len(r.Digest) != 2*bytes || r.Digest != strings.ToLower(r.Digest) {
		return fmt.Errorf("%q: digest is %q, want %d lower-case hexadecimal digits", r.Name, r.Digest, 2*bytes)
	}
	return nil
}

// checkPath refuses what is not a clean path below the folder.
func checkPath(name string) error {
	if name == "" || name == "." || path.Clean(name) != name || path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../") || strings.ContainsRune(name, 0) {
		return fmt.Errorf("%q is not a clean path inside the folder", name)
	}
	return nil
}

// splitRange takes PATH:START:END apart; a path may have colons of its own.
func splitRange(name string) (file string, start, end int64, err error) {
	file, tail, ok := cutLast(name)
	if ok {
		end, err = strconv.ParseInt(tail, 10, 64)
		file, tail, ok = cutLast(file)
	}
	if ok && err == nil {
		start, err = strconv.ParseInt(tail, 10, 64)
	}
	if !ok || err != nil || start < 0 || end <= start {
		return "", 0, 0, fmt.Errorf("%q is not PATH:START:END", name)
	}
	return file, start, end, nil
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
