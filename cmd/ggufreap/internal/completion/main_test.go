package completion_test

import (
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m) }
