package lists

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ggufreap/manifest"
)

const (
	hexA = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" // of "a"
	hexB = "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d" // of "b"
)

func TestReadSumsForms(t *testing.T) {
	upper := strings.ToUpper(hexA)
	tests := map[string]struct {
		in    string
		names []string
	}{
		"two spaces":       {hexA + "  a b.gguf\n" + hexB + "  b\n", []string{"a b.gguf", "b"}},
		"space and star":   {hexA + " *a\n" + hexB + " *b\n", []string{"a", "b"}},
		"both":             {hexA + "  a\n" + hexB + " *b\n", []string{"a", "b"}},
		"one space":        {hexA + " a\n" + hexB + " b c\n", []string{"a", "b c"}},
		"BSD":              {"SHA256 (a) = " + hexA + "\n", []string{"a"}},
		"BSD bracket":      {"SHA256 (a) = (1).gguf) = " + hexA + "\n", []string{"a) = (1).gguf"}},
		"openssl 1":        {"SHA256(a)= " + hexA + "\n", []string{"a"}},
		"openssl 3":        {"SHA2-256(a)= " + hexA + "\n", []string{"a"}},
		"BSD escaped":      {`\SHA256 (a\nb) = ` + hexA + "\n", []string{"a\nb"}},
		"bracket in name":  {hexA + "  SHA256 (a) = x\n", []string{"SHA256 (a) = x"}},
		"CRLF":             {hexA + "  a\r\n" + hexB + "  b\r\n", []string{"a", "b"}},
		"BOM":              {"\xef\xbb\xbf" + hexA + "  a\n", []string{"a"}},
		"BOM and CRLF":     {"\xef\xbb\xbf" + hexA + " *a\r\n\r\n", []string{"a"}},
		"upper case":       {upper + "  a\n", []string{"a"}},
		"escapes":          {`\` + hexA + `  a\\b\nc\rd` + "\n", []string{"a\\b\nc\rd"}},
		"dot slash":        {hexA + "  ./a\n" + hexB + "  ././d/b\n", []string{"a", "d/b"}},
		"backslashes":      {hexA + ` *d\e\a` + "\n" + hexB + ` *.\b` + "\n", []string{"d/e/a", "b"}},
		"empty last line":  {hexA + "  a\n\n", []string{"a"}},
		"comments":         {"# made by hand\n\n" + hexA + "  a\n", []string{"a"}},
		"leading space":    {hexA + "   a\n", []string{" a"}},
		"leading star":     {hexA + " **a\n", []string{"*a"}},
		"trailing space":   {hexA + "  a \n", []string{"a "}},
		"not UTF-8":        {hexA + "  a\xff\n", []string{"a\xff"}},
		"name of two dots": {hexA + "  ..a\n", []string{"..a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sums, err := ReadSums(strings.NewReader(test.in))
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for i, s := range sums {
				names = append(names, s.Name)
				if want := []string{hexA, hexB}[i]; s.SHA256.String() != want {
					t.Errorf("%q has %s, want %s", s.Name, s.SHA256, want)
				}
			}
			if !slices.Equal(names, test.names) {
				t.Errorf("got names %q, want %q", names, test.names)
			}
		})
	}
}

func TestReadSumsRefuses(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"empty":               {"", "no entries"},
		"only comments":       {"# nothing\n\n", "no entries"},
		"no last line end":    {hexA + "  a\n" + hexB + "  b", "line 2: line has no line end"},
		"half a digest":       {hexA + "  a\n" + hexB[:30], "line 2: line has no line end"},
		"half a digest, LF":   {hexA + "  a\n" + hexB[:30] + "\n", "line 2: line is not a digest"},
		"digest only":         {hexA + "\n", "line 1: line is not a digest"},
		"no name":             {hexA + "  \n", "line 1: file name is empty"},
		"short digest":        {hexA[:63] + "  a\n", "63 characters"},
		"SHA-1":               {hexA[:40] + "  a\n", "git object"},
		"SHA-512":             {hexA + hexA + "  a\n", "SHA-512"},
		"not a digest":        {"z" + hexA[1:] + "  a\n", `"z" at character 1`},
		"tab":                 {hexA + "\ta\n", "line is not a digest"},
		"indented":            {"  " + hexA + "  a\n", "digest has 0 characters"},
		"absolute":            {hexA + "  /etc/passwd\n", "absolute"},
		"absolute, backslash": {hexA + `  \etc\passwd` + "\n", "absolute"},
		"drive":               {hexA + `  C:\m.gguf` + "\n", "absolute"},
		"drive, slash":        {hexA + "  c:/m.gguf\n", "absolute"},
		"parent":              {hexA + "  ../a\n", "leaves the folder"},
		"inner parent":        {hexA + "  d/../../a\n", "leaves the folder"},
		"parent, backslash":   {hexA + `  d\..\..\a` + "\n", "leaves the folder"},
		"only dots":           {hexA + "  ..\n", "leaves the folder"},
		"folder":              {hexA + "  d/\n", "empty part"},
		"folder itself":       {hexA + "  .\n", "empty part"},
		"double slash":        {hexA + "  d//a\n", "empty part"},
		"inner dot":           {hexA + "  d/./a\n", "empty part"},
		"zero byte":           {hexA + "  a\x00b\n", "zero byte"},
		"twice":               {hexA + "  a\n" + hexA + "  a\n", `line 2: name "a" is on line 1 already`},
		"twice, other forms":  {hexA + "  d/a\n" + hexA + " *./d\\a\n", "on line 1 already"},
		"half a tag":          {"SHA256 (a = " + hexA + "\n", "does not end so"},
		"no end of a tag":     {"SHA256 (a)" + hexA + "\n", "does not end so"},
		"bad escape":          {`\` + hexA + `  a\tb` + "\n", `escape "\\t"`},
		"cut escape":          {`\` + hexA + `  a\` + "\n", "ends inside an escape"},
		"mixed line ends":     {hexA + "  a\r\n" + hexB + "  b\n", `line 2: line ends in "\n"`},
		"mixed spaces":        {hexA + " a\n" + hexB + "  b\n", "line 2: lines with one space"},
		"other algorithm":     {"MD5 (a) = " + hexA[:32] + "\n", `algorithm is "MD5"`},
		"cut tag":             {"SHA256 (a) = \n", "0 characters"},
		"no tag end":          {"SHA256 (a = " + hexA + "\n", "does not end so"},
		"UTF-16":              {"\xff\xfec\x00a\x00", "UTF-16"},
		"HTML":                {"<!DOCTYPE html>\n<html>\n", "line 2: line is not a digest"},
		"long line":           {hexA + "  " + strings.Repeat("x", maxSumsLine) + "\n", "line 1: line is longer"},
		"long name":           {hexA + "  " + strings.Repeat("x", manifest.MaxFileName+1) + "\n", "4097 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sums, err := ReadSums(strings.NewReader(test.in))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
			if sums != nil {
				t.Errorf("got %d entries of a list with a fault", len(sums))
			}
		})
	}
}

func TestReadSumsReportsAllFaults(t *testing.T) {
	in := hexA + "  a\n" + "half\n" + hexB + "  ../b\n" + strings.Repeat("x", 3*maxSumsLine) + "\n" + hexA + "  a\n"
	_, err := ReadSums(strings.NewReader(in))
	var faults *SumsError
	if !errors.As(err, &faults) {
		t.Fatalf("got %v, want a *SumsError", err)
	}
	var lines []int
	for _, f := range faults.Faults {
		lines = append(lines, f.Line)
	}
	if want := []int{2, 3, 4, 5}; !slices.Equal(lines, want) {
		t.Errorf("faults on lines %v, want %v:\n%v", lines, want, err)
	}
}

func TestReadSumsBoundsFaults(t *testing.T) {
	var in strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&in, "%s  ../%d\n", hexA, i)
	}
	_, err := ReadSums(strings.NewReader(in.String()))
	var faults *SumsError
	if !errors.As(err, &faults) || len(faults.Faults) != maxSumsFaults {
		t.Errorf("got %d faults, want %d", len(faults.Faults), maxSumsFaults)
	}
}

// TestReadSumsTellsAFaultOnce tells lines with the same fault together.
func TestReadSumsTellsAFaultOnce(t *testing.T) {
	for in, want := range map[string]string{
		strings.Repeat("x\n", 1e5):                                               "lines 1 to 100000: line is not a digest, a space and a file name",
		"x\n" + hexA + "  a\n" + "x\n" + hexB + "  b\n" + "x\n":                  "line 1 and 2 more, the last of them line 5: line is not a digest, a space and a file name",
		"-----BEGIN PGP SIGNED MESSAGE-----\n" + hexA + "  a\n" + hexB + "  b\n": "line 1: digest has 10 characters, want 64 hexadecimal digits",
		"MD5 (a) = " + hexA[:32] + "\n" + "MD5 (b) = " + hexB[:32] + "\n" + "\n": `lines 1 to 2: algorithm is "MD5", want SHA256`,
	} {
		if _, err := ReadSums(strings.NewReader(in)); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// endlessComments gives comment lines of 4096 bytes for ever.
type endlessComments struct{ offset int }

func (r *endlessComments) Read(p []byte) (int, error) {
	line := []byte("#" + strings.Repeat("x", 4094) + "\n")
	n := copy(p, line[r.offset:])
	r.offset = (r.offset + n) % len(line)
	return n, nil
}

func TestReadSumsBoundsFile(t *testing.T) {
	_, err := ReadSums(&endlessComments{})
	if err == nil || !strings.Contains(err.Error(), "longer than 67108864 bytes") {
		t.Errorf("got %v", err)
	}
}

func TestReadSumsPassesOnReadErrors(t *testing.T) {
	broken := errors.New("disk on fire")
	_, err := ReadSums(&failingReader{hexA + "  a\n", broken})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

type failingReader struct {
	text string
	err  error
}

func (r *failingReader) Read(p []byte) (int, error) {
	if r.text == "" {
		return 0, r.err
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}

func TestWriteSumsRefuses(t *testing.T) {
	for _, name := range []string{"", "/a", "../a", "a/../b", "./a", "a//b", "a/", "a\x00", `C:\a`, strings.Repeat("x", 4097)} {
		if err := WriteSums(&bytes.Buffer{}, []FileSum{{Name: name}}); err == nil {
			t.Errorf("name %q was written", name)
		}
	}
	if err := WriteSums(&bytes.Buffer{}, []FileSum{{Name: "a"}, {Name: "b"}, {Name: "a"}}); err == nil {
		t.Error("a name was written twice")
	}
	if err := WriteSums(&bytes.Buffer{}, nil); err == nil {
		t.Error("an empty list was written")
	}
}

func TestWriteSumsBytes(t *testing.T) {
	a, b := mustSum(t, hexA), mustSum(t, hexB)
	var got bytes.Buffer
	if err := WriteSums(&got, []FileSum{{"b", a}, {"B", b}, {"a\\\n", a}, {"a b", b}}); err != nil {
		t.Fatal(err)
	}
	want := hexB + "  B\n" + hexB + "  a b\n\\" + hexA + `  a\\\n` + "\n" + hexA + "  b\n"
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &got, want)
	}
}

func mustSum(t *testing.T, s string) manifest.Sum {
	t.Helper()
	sum, err := manifest.ParseSum(s)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func FuzzReadSums(f *testing.F) {
	f.Add([]byte(hexA + "  a\n" + hexB + " *./b\n"))
	f.Add([]byte("\xef\xbb\xbfSHA256 (a) = " + hexA + "\r\n"))
	f.Add([]byte(`\` + hexA + `  a\\\n` + "\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		sums, err := ReadSums(bytes.NewReader(in))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := WriteSums(&out, sums); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := ReadSums(&out)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(sums, func(a, b FileSum) int { return strings.Compare(a.Name, b.Name) })
		if !slices.Equal(again, sums) {
			t.Errorf("got %v, want %v", again, sums)
		}
	})
}

func TestOddForms(t *testing.T) {
	upper := strings.ToUpper(hexA)
	for in, want := range map[string]string{
		hexA + "  a\n" + hexB + "  b\n":                          "",
		hexA + " *a\r\n" + hexB + " *b\r\n":                      "",
		upper + "  a\n" + strings.ToUpper(hexB) + "  b\n":        "",
		"# sums of 2024\n" + hexA + "  a\n":                      "",
		hexA + "  a\n" + hexB + " *b\n":                          "entries with two spaces and with a space and a star are mixed",
		hexA + "  a\n" + strings.ToUpper(hexB) + "  b\n":         "upper-case and lower-case digits are mixed",
		"SHA256 (a) = " + hexA + "\nSHA256 (b) = " + hexB + "\n": "",
		hexA + "  a\nSHA256 (b) = " + hexB + "\n":                "entries that name the algorithm are mixed with others",
		hexA + " *a\n\\SHA2-256(b\\n)= " + hexB + "\n":           "entries that name the algorithm are mixed with others",
		hexA + "  SHA256 (a)\n":                                  "",
		hexA + "  a\n#" + hexB[1:] + "  b\n":                     "line 2: a comment looks like an entry whose first digit was changed",
		hexA + "  a\n\\" + strings.ToUpper(hexB) + "  \\nb\n":    "upper-case and lower-case digits are mixed",
	} {
		got := ""
		faults, err := OddForms(strings.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range faults {
			got += fault.String()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
