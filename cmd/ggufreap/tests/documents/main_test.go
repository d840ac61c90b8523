package documents

import (
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m) }
