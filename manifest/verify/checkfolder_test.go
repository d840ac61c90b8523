package verify

import (
	"context"
	"errors"
	"slices"
	"testing"

	"ggufreap/gguf"
	"ggufreap/manifest"
	"ggufreap/manifest/internal/modeltest"
	"ggufreap/manifest/lists"
)

// TestEqualNamesInTwoFolders has a listing with a file of the model's name in two folders:
// nothing can be compared until a folder is named.
func TestEqualNamesInTwoFolders(t *testing.T) {
	m := modeltest.Open(t, modeltest.Write(t, t.TempDir(), "x", modeltest.ABC(), gguf.Split{})[0])
	pin := mustPin(t, m, manifest.BuildOptions{})
	right, wrong := pin.Files[0].SHA256, manifest.Sum{1}
	size := pin.Files[0].Size
	tree := lists.Tree{{Path: "Q4/x.gguf", Size: size, SHA256: &right}, {Path: "Q8/x.gguf", Size: size, SHA256: &wrong}}
	var several *FolderError
	if _, err := Check(context.Background(), m, tree, CheckOptions{}); !errors.As(err, &several) || !slices.Equal(several.Folders, []string{"Q4", "Q8"}) {
		t.Errorf("no folder named: %v", err)
	}
	for folder, ok := range map[string]bool{"Q4": true, "Q4/": true, "Q8": false, "Q2": false} {
		r, err := Check(context.Background(), m, tree, CheckOptions{Folder: folder})
		if err != nil || r.OK() != ok {
			t.Errorf("folder %s: %+v, %v", folder, r, err)
		}
	}
}
