package evidence

import _ "embed"

//go:embed template.yaml
var template []byte

// Template returns a document to fill in, with comments.
func Template() []byte { return template }
