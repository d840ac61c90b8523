package stage

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
)

// TestCheckRoomChangesNothing asks for more than any disk has, and for little, in folders
// that are there and in others.
func TestCheckRoomChangesNothing(t *testing.T) {
	dir := t.TempDir()
	large := testRelease(t, 3)
	large.Layout = testLayout(t, gguftest.Mixed(1), 3, nil)
	for _, shard := range large.Layout.Shards {
		shard.Size = 1 << 60
	}
	for _, path := range []string{dir, filepath.Join(dir, "new"), filepath.Join(dir, "new", "er")} {
		var space *SpaceError
		if err := CheckRoom(path, large); !errors.As(err, &space) || space.Folder != path || space.Need != 3<<60 {
			t.Errorf("%s: got %v", path, err)
		}
		if err := CheckRoom(path, testRelease(t, 3)); err != nil {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("left %v, %v", names, err)
	}
	if err := CheckRoom(dir, Release{Stem: "../x", Layout: &gguf.Layout{Shards: large.Layout.Shards}}); err == nil {
		t.Error("a name that leaves the folder was accepted")
	}
}
