package text

import (
	"strings"
	"testing"
)

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "1234": 1234, "12 bytes": 12, "7B": 7,
		"1kB": 1000, "1KB": 1000, "1KiB": 1024, "30GB": 30_000_000_000, "28GiB": 30_064_771_072, "28 gib": 30_064_771_072,
		"1.5GB": 1_500_000_000, "0.5KiB": 512, "2TB": 2_000_000_000_000, "1TiB": 1 << 40, "8MiB": 8 << 20,
		"9223372036854775807": 1<<63 - 1,
	} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
	for s, want := range map[string]string{
		"":                    "is not a size",
		"GB":                  "is not a size",
		"-1":                  "is not a size",
		"1e9":                 "is not a size",
		"1,000":               "is not a size",
		"1/2GB":               "is not a size",
		"30G":                 `unit "G" means two things: write GB (1000000000 bytes) or GiB (1073741824 bytes)`,
		"30m":                 `unit "m" means two things: write MB`,
		"30PB":                `unit "PB" is not known`,
		"0.3":                 "not a whole number of bytes",
		"1.0001kB":            "not a whole number of bytes",
		"9223372036854775808": "more than a file can have",
		"99999999TB":          "more than a file can have",
	} {
		if got, err := ParseSize(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseSize(%q) = %d, %v, want an error with %q", s, got, err, want)
		}
	}
}

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 999: "999 bytes",
		1000:              "1,000 bytes (1.00 kB, 0.98 KiB)",
		24_702_784:        "24,702,784 bytes (24.70 MB, 23.56 MiB)",
		330_160_710_016:   "330,160,710,016 bytes (330.16 GB, 307.49 GiB)",
		1_446_000_000_000: "1,446,000,000,000 bytes (1.45 TB, 1.32 TiB)",
	} {
		if got := Size(n); got != want {
			t.Errorf("sizeText(%d) = %q, want %q", n, got, want)
		}
	}
}
