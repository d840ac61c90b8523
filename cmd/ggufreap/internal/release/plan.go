package release

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"ggufreap/cmd/ggufreap/internal/files"
	"ggufreap/cmd/ggufreap/internal/ui/text"
	"ggufreap/reap"
	"ggufreap/reap/planfile"
)

// Names of documents that a release has in its folder.
const (
	PlanName      = "plan.json"
	SourcePinName = "source.pin.json.zst" // the pin of its source
)

// ReadPlan reads the plan of the release in a folder, nil when it has none.
func ReadPlan(dir string) (*reap.Plan, error) {
	path := filepath.Join(dir, PlanName)
	data, err := files.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	plan, err := planfile.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text.Safe(path), err)
	}
	return plan, nil
}
