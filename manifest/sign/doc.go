// Package sign makes and checks signatures over the files of a release, with the keys and
// tools that people have:
//
//   - an SSH signature over the list of sums, as ssh-keygen -Y makes them ([SSHSignature],
//     [Signers])
//   - an OpenSSF Model Signing bundle over every file ([Bundle], [Model]), version 1.0
//   - a statement of provenance in the form of SLSA v1, in an envelope of its own
//     ([Provenance], [Envelope])
//
// It invents no key format, keeps no keys, and reads none but those that callers hand it.
// Nothing of a signed document is believed before its signature was checked, except where a
// function's name says so. It knows nothing of tensors and experts, and opens files only to
// compare them with a list.
//
// # Which file covers which
//
//	MANIFEST.sha256        every file of the release but itself and the three below
//	MANIFEST.sha256.sig    MANIFEST.sha256, and by its sums all that it lists
//	provenance.dsse.json   what it states, the sums of all files of MANIFEST.sha256 among it
//	model.sig              every file of the folder but itself, the others above too
package sign

// The names of the files that signatures are written to, beside the release's own.
const (
	SSHName        = "MANIFEST.sha256.sig"
	ModelName      = "model.sig"
	ProvenanceName = "provenance.dsse.json"
)

// Names are those files: a list of sums cannot hold them.
var Names = []string{SSHName, ProvenanceName, ModelName}

// A File is a file of a release: its path in the folder, with forward slashes, and the
// SHA-256 of its bytes.
type File struct {
	Name   string
	SHA256 [32]byte
}
