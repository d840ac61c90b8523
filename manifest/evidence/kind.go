package evidence

// Kind says how a value came to be known.
type Kind string

// The kinds.
const (
	Measured    Kind = "measured"    // here, by whoever wrote the document
	Reported    Kind = "reported"    // by a source
	Configured  Kind = "configured"  // a setting, which says nothing of what happened
	Approximate Kind = "approximate" // nobody counted
)

var kinds = []Kind{Measured, Reported, Configured, Approximate}

// words describes the kind in a table, with the source of what was reported.
func (k Kind) words(source string) string {
	switch {
	case k == Measured:
		return "measured here"
	case k == Approximate && source != "":
		return "approximate, reported by " + source
	case source != "":
		return string(k) + " by " + source
	}
	return string(k)
}
