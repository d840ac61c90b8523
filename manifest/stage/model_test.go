package stage

import (
	"slices"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// testLayout cuts a model into so many shards; edit, unless nil, changes what it consists
// of.
func testLayout(t testing.TB, model gguftest.Spec, shards int, edit func(c *gguf.Contents)) *gguf.Layout {
	t.Helper()
	c, err := model.Contents()
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(&c)
	}
	layout, err := gguf.NewLayout(c, gguf.Split{Shards: shards})
	if err != nil {
		t.Fatal(err)
	}
	return layout
}

// viewNamed returns the view of that name to change it.
func viewNamed(c *gguf.Contents, name string) *gguf.View {
	i := slices.IndexFunc(c.Views, func(v gguf.View) bool { return v.Name == name })
	return &c.Views[i]
}
