package verify

import (
	"fmt"

	"github.com/zeebo/blake3"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
)

// metadata compares the keys of the release with the source's.
func (p *prover) metadata() {
	changes := manifest.ComparePairs(p.source.Metadata, p.release.Metadata)
	var edited []string
	count := p.release.Artifact.Architecture + ".expert_count"
	counted := false
	for _, change := range changes {
		wrong := ""
		if change.Key == count {
			counted = true
			wrong = p.wrongCount(change)
		} else if p.stated(change.Key) {
			edited = append(edited, change.Key)
		} else {
			wrong = p.wrongKey(change)
		}
		if wrong != "" && !p.report.says(KindMetadata, wrong) { // the release's own pin may say it too
			p.find(KindMetadata, "", manifest.NoExpert, "%s", wrong)
		}
		p.proof.Metadata = append(p.proof.Metadata, MetadataProof{change.Key, change.Change, wrong == ""})
	}
	if len(edited) > 0 {
		p.report.note("", fmt.Sprintf("%s %s not the source's, as the release itself states: %s", words.Count(len(edited), "key"), words.Verb(len(edited), "is", "are"), nameList(edited)))
	}
	if kept := p.kept(); !counted && kept != p.proof.Experts {
		p.find(KindMetadata, "", manifest.NoExpert, "key %q is the source's, but %d of %d experts are there", count, kept, p.proof.Experts)
	}
}

// kept returns how many experts the blocks have, which the blocks agree on or findings
// say otherwise.
func (p *prover) kept() int {
	if len(p.groups) == 0 {
		return p.proof.Experts
	}
	return p.groups[0].release[0].Slabs.Count
}

// wrongCount says what is wrong with a changed expert count, or "".
func (p *prover) wrongCount(c manifest.PairChange) string {
	if c.Change != manifest.Changed {
		return c.String()
	}
	was, okA := integerDigest(c.A.Type, p.proof.Experts)
	is, okB := integerDigest(c.B.Type, p.kept())
	if !okA || !okB || c.A.BLAKE3 != was || c.B.BLAKE3 != is {
		return c.String() + ", and not the one that the experts' tensors have"
	}
	return ""
}

// stated reports whether the release states that it changed a key.
func (p *prover) stated(key string) bool { return p.options.Stated != nil && p.options.Stated(key) }

// wrongKey says what is wrong with a change of any other key, or "".
func (p *prover) wrongKey(c manifest.PairChange) string {
	if p.options.MayChange == nil || c.Change != manifest.Added && c.Change != manifest.Changed {
		return c.String()
	}
	want, ok := p.options.MayChange(*c.B)
	switch {
	case !ok:
		return c.String()
	case want == nil:
		return ""
	}
	raw, err := want.Raw()
	if pair := (manifest.Pair{Key: c.Key, Type: want.Type().String(), BLAKE3: manifest.Sum(blake3.Sum256(raw))}); err != nil || pair != *c.B {
		text, ok := want.Text()
		if !ok {
			text = want.Describe()
		}
		return c.String() + " and does not fit the source's pin: want " + text
	}
	return ""
}

// integerDigest returns the digest of n as a value of the named integer type.
func integerDigest(typ string, n int) (manifest.Sum, bool) {
	for _, zero := range []gguf.Value{
		gguf.Uint8Value(0), gguf.Int8Value(0), gguf.Uint16Value(0), gguf.Int16Value(0),
		gguf.Uint32Value(0), gguf.Int32Value(0), gguf.Uint64Value(0), gguf.Int64Value(0),
	} {
		if zero.Type().String() != typ {
			continue
		}
		v, err := zero.WithInt(int64(n))
		if err != nil {
			return manifest.Sum{}, false
		}
		raw, err := v.Raw()
		return manifest.Sum(blake3.Sum256(raw)), err == nil
	}
	return manifest.Sum{}, false
}
