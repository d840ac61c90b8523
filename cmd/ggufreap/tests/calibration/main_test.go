package calibration

import (
	"fmt"
	"os"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
)

func TestMain(m *testing.M) {
	if program := os.Getenv(engineVariable); program != "" {
		if err := standIn(program); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	programtest.Main(m)
}
