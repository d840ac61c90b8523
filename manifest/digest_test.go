package manifest

import (
	"encoding/json"
	"strings"
	"testing"
)

// Published vectors: the digests of the empty input.
const (
	emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	emptyBLAKE3 = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
)

func mustSum(t *testing.T, s string) Sum {
	t.Helper()
	sum, err := ParseSum(s)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestBlake3OfEmptyInput(t *testing.T) {
	if got, want := DigestBytes(nil).String(), "blake3:"+emptyBLAKE3; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestParseDigest(t *testing.T) {
	for _, good := range []string{"blake3:" + emptyBLAKE3, "sha256:" + emptySHA256} {
		d, err := ParseDigest(good)
		if err != nil {
			t.Errorf("%s: %v", good, err)
		} else if d.String() != good {
			t.Errorf("%s prints as %s", good, d)
		}
	}
}

func TestParseDigestRefuses(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"empty":            {"", "names no algorithm"},
		"bare":             {emptyBLAKE3, "names no algorithm"},
		"unknown":          {"md5:" + emptyBLAKE3, `algorithm is "md5"`},
		"upper algorithm":  {"BLAKE3:" + emptyBLAKE3, `algorithm is "BLAKE3"`},
		"upper digits":     {"blake3:" + strings.ToUpper(emptyBLAKE3), `"A" at character 1`},
		"short":            {"blake3:" + emptyBLAKE3[:63], "63 characters"},
		"long":             {"blake3:" + emptyBLAKE3 + "0", "65 characters"},
		"git object name":  {"sha256:" + emptyBLAKE3[:40], "git object"},
		"not hex":          {"blake3:" + "g" + emptyBLAKE3[1:], `"g" at character 1`},
		"line end":         {"blake3:" + emptyBLAKE3[:63] + "\n", `"\n" at character 64`},
		"space":            {"blake3: " + emptyBLAKE3[1:], `" " at character 1`},
		"nested algorithm": {"blake3:blake3:" + emptyBLAKE3, "71 characters"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseDigest(test.in)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestDigestJSON(t *testing.T) {
	type document struct {
		Weights *Digest `json:"weights_digest"`
		File    Sum     `json:"sha256"`
	}
	full := `{"weights_digest":"blake3:` + emptyBLAKE3 + `","sha256":"` + emptySHA256 + `"}`
	for _, text := range []string{full, `{"weights_digest":null,"sha256":"` + emptySHA256 + `"}`} {
		var d document
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != text {
			t.Errorf("got %s, want %s", got, text)
		}
	}
	if _, err := json.Marshal(Digest{}); err == nil {
		t.Error("a digest that is not there was written")
	}
}
