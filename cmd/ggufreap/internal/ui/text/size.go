package text

import (
	"fmt"
	"math/big"
	"strings"

	"ggufreap/gguf/pattern"
)

// A unit is a power of ten or of two that sizes are given in.
type unit struct {
	name  string
	bytes int64
}

// The units, largest first. SI units are powers of 1000, IEC units of 1024.
var (
	siUnits  = []unit{{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}}
	iecUnits = []unit{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}
)

var sizePattern = pattern.Lazy(`^([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)$`)

// ParseSize reads a size: "30GB", "28GiB", "1.5GB", or bytes. It must come to a whole
// number of bytes. A bare "30G" is refused, since tools disagree on what it means.
func ParseSize(s string) (int64, error) {
	const help = "write bytes, or kB, MB, GB, TB (powers of 1000), or KiB, MiB, GiB, TiB (powers of 1024)"
	m := sizePattern().FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("%q is not a size: %s", s, help)
	}
	factor, err := unitBytes(m[2])
	if err != nil {
		return 0, fmt.Errorf("size %q: %w", s, err)
	}
	if factor == 0 {
		return 0, fmt.Errorf("size %q: unit %q is not known: %s", s, m[2], help)
	}
	n, _ := new(big.Rat).SetString(m[1])
	n.Mul(n, new(big.Rat).SetInt64(factor))
	switch {
	case !n.IsInt():
		return 0, fmt.Errorf("size %q is not a whole number of bytes", s)
	case !n.Num().IsInt64():
		return 0, fmt.Errorf("size %q is more than a file can have", s)
	}
	return n.Num().Int64(), nil
}

// unitBytes returns the size of a unit, 0 for one that is not known.
func unitBytes(name string) (int64, error) {
	if name == "" || strings.EqualFold(name, "b") || name == "bytes" {
		return 1, nil
	}
	for i, si := range siUnits {
		iec := iecUnits[i]
		switch {
		case strings.EqualFold(name, si.name):
			return si.bytes, nil
		case strings.EqualFold(name, iec.name):
			return iec.bytes, nil
		case strings.EqualFold(name, si.name[:1]):
			return 0, fmt.Errorf("unit %q means two things: write %s (%d bytes) or %s (%d bytes)", name, si.name, si.bytes, iec.name, iec.bytes)
		}
	}
	return 0, nil
}

// Size writes a size exactly, and rounded in both kinds of unit.
func Size(n int64) string {
	if n < 1000 {
		return Count(n, "byte")
	}
	return fmt.Sprintf("%s (%s)", Count(n, "byte"), RoundedSize(n))
}

// RoundedSize writes a size in both kinds of unit: "330.16 GB, 307.49 GiB".
func RoundedSize(n int64) string {
	i := unitIndex(n)
	return inUnit(n, siUnits[i]) + ", " + inUnit(n, iecUnits[i])
}

// SISize writes a size in SI units: "330.16 GB".
func SISize(n int64) string {
	if n < 1000 {
		return Count(n, "byte")
	}
	return inUnit(n, siUnits[unitIndex(n)])
}

func unitIndex(n int64) int {
	for i, u := range siUnits {
		if n >= u.bytes {
			return i
		}
	}
	return len(siUnits) - 1
}

func inUnit(n int64, u unit) string {
	return fmt.Sprintf("%.2f %s", float64(n)/float64(u.bytes), u.name)
}
