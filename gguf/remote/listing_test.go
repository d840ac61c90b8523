package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ggufreap/gguf/remote/hubtest"
)

// TestListing reads a listing of several pages, whose next addresses have the official host.
func TestListing(t *testing.T) {
	h := hubtest.New(t)
	want := []string{}
	for i := range 25 {
		name := "m-" + strconv.Itoa(100+i) + ".gguf"
		want = append(want, name)
		h.Add("org/model", "sub/"+name, strings.NewReader("x"), 1)
	}
	h.Page = 4
	folder, name, err := client(t, h, nil).Open("hf://org/model")
	if err != nil || name != "" {
		t.Fatal(name, err)
	}
	if names, err := folder.Names(); err != nil || !slices.Equal(names, want) {
		t.Errorf("names are %v, %v", names, err)
	}
	if facts := folder.Facts(); facts.Commit != hubtest.Commit || facts.License != "apache-2.0" || facts.Repo != "org/model" {
		t.Errorf("facts are %+v", facts)
	}
	checkSecrets(t, h)
	h.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/tree/") {
			return false
		}
		w.Header().Set("Link", `<`+r.URL.Path+`?recursive=true>; rel="next"`)
		h.Answer(w, r)
		return true
	}
	if _, _, err := client(t, h, nil).Open("hf://org/model"); err == nil || !strings.Contains(err.Error(), "has no end") {
		t.Errorf("a listing in a circle gives %v", err)
	}
}

// TestRefusals puts what the hub refuses into words.
func TestRefusals(t *testing.T) {
	h := hubWith(t, randomBytes(100))
	for _, name := range []string{"m.gguf.part1of2", "m.gguf.part2of2", "README.md"} {
		h.Add("org/pieces", "sub/"+name, strings.NewReader("x"), 1)
	}
	gate := func(code int, reason, words string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			hubtest.Refuse(w, code, reason, words)
			return true
		}
	}
	for _, tc := range []struct {
		address string
		token   string
		fault   func(http.ResponseWriter, *http.Request) bool
		want    string
	}{
		{"hf://org/missing", token, nil, "hf://org/missing: is not there, or the account of this token may not see it"},
		{"hf://org/missing", "", nil, "hf://org/missing: is not there, or private: no token was sent"},
		{"hf://org/model@v9", token, nil, `hf://org/model: has no revision "v9"`},
		{"hf://org/model/no.gguf", token, nil, "hf://org/model/no.gguf: is not in the repository"},
		{"hf://org/model/folder", token, nil, "hf://org/model/folder: is not in the repository"},
		{"hf://org/model", "", gate(401, "GatedRepo", "Access to model org/model is restricted."), "is gated: it is given to accounts with access only, and no token was sent"},
		{"hf://org/model", token, gate(403, "GatedRepo", "Access to model org/model is restricted."), "is gated, and the account of this token has no access"},
		{"hf://org/model", token, gate(401, "", "Invalid credentials in Authorization header"), "does not know this token"},
		{"hf://org/model", token, gate(403, "", "no"), "the token has no right"},
		{"hf://org/model", token, func(w http.ResponseWriter, _ *http.Request) bool {
			io.WriteString(w, "<html>Sign in to the network of this hotel</html>")
			return true
		}, "does not answer as the hub does"},
		{"hf://org/model", token, func(w http.ResponseWriter, _ *http.Request) bool {
			io.WriteString(w, `{"sha":"../../x"}`)
			return true
		}, "names no commit"},
		{"hf://org", token, nil, "want hf://OWNER/REPO"},
		{"hf://org/model@main/../../x.gguf", token, nil, "is not a place in a repository"},
		{"hf://org/model@..%2F..%2Fapi/x.gguf", token, nil, "is not a revision"},
		{h.Endpoint() + "/org/model/settings", token, nil, "is no page of files"},
		{"hf://org/pieces", token, nil, "no .gguf file there, but what looks like pieces of one, sub/m.gguf.part1of2, sub/m.gguf.part2of2: "},
		{"hf://org/pieces/sub", token, nil, "pieces of one, sub/m.gguf.part1of2"},
		{"hf://org/pieces/sub/m.gguf.part1of2", token, nil, "is named like a piece of a model"},
		{h.File("m.gguf-split-b?sig=s3cr3t"), token, nil, "is named like a piece of a model"},
		{h.File(""), token, nil, "names no file"},
		{h.File("..%2Fx.gguf"), token, nil, "does not end in a file name"},
		{h.File("none.gguf?X-Amz-Signature=s3cr3t"), token, nil, "404"},
	} {
		h.Fault = tc.fault
		c := client(t, h, func(o *Options) { o.Token = tc.token })
		_, err := tryOpen(c, tc.address)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error is %v, want %q", tc.address, err, tc.want)
		} else if strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "hf_") {
			t.Errorf("%s: a secret in %v", tc.address, err)
		}
	}
}

// TestAddresses reads the forms that people type and paste.
func TestAddresses(t *testing.T) {
	c, err := NewClient(context.Background(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"hf://org/m":                                                "hf://org/m",
		"hf://org/m/":                                               "hf://org/m",
		"hf://models/org/m":                                         "hf://org/m",
		"hf://datasets/org/m@v1/a/b.gguf":                           "hf://datasets/org/m@v1/a/b.gguf",
		"hf://org/m@refs/pr/3/a.gguf":                               "hf://org/m@refs%2Fpr%2F3/a.gguf",
		"hf://org/m@refs%2Fpr%2F3/a.gguf":                           "hf://org/m@refs%2Fpr%2F3/a.gguf",
		"HF://org/m/a b#c%d.gguf":                                   "hf://org/m/a b#c%d.gguf",
		"https://huggingface.co/org/m":                              "hf://org/m",
		"https://huggingface.co/org/m/blob/main/a/b%20c.gguf":       "hf://org/m@main/a/b c.gguf",
		"https://hf.co/org/m/resolve/x%2Fy/b.gguf?download=true":    "hf://org/m@x%2Fy/b.gguf",
		"https://huggingface.co/org/m/tree/refs%2Fpr%2F1/IQ1_S":     "hf://org/m@refs%2Fpr%2F1/IQ1_S",
		"https://huggingface.co/org/m/tree/refs/pr/1/IQ1_S":         "hf://org/m@refs%2Fpr%2F1/IQ1_S",
		"https://huggingface.co/datasets/org/m/resolve/main/b.gguf": "hf://datasets/org/m@main/b.gguf",
		"https://HuggingFace.co:443/org/m/tree/main/sub folder/":    "hf://org/m@main/sub folder",
		"http://www.huggingface.co/org/m/":                          "hf://org/m",
		"https://u:p@example.org/a/b.gguf?sig=x#y":                  "https://example.org/a/b.gguf",
		"http://[::1]:8080/b.gguf":                                  "http://[::1]:8080/b.gguf",
	} {
		a, err := c.parse(address)
		if err != nil || a.String() != want {
			t.Errorf("%s is %v, %v; want %s", address, a, err, want)
		}
	}
}

// TestOddNames opens files whose names need encoding.
func TestOddNames(t *testing.T) {
	for _, name := range []string{"a b.gguf", "50%.gguf", "50%25.gguf", "a#b?c.gguf", "ä+ö&=.gguf"} {
		h := hubtest.New(t)
		data := randomBytes(3000)
		h.Add("org/model", "in/"+name, bytes.NewReader(data), 3000)
		h.Add("plain/files", name, bytes.NewReader(data), 3000)
		c := client(t, h, nil)
		for _, address := range []string{"hf://org/model/in/" + name, h.Endpoint() + "/org/model/resolve/main/in/" + escapePath(name), h.File(escapePath(name))} {
			folder, got, err := c.Open(address)
			if err != nil || got != name {
				t.Fatalf("%s: %q, %v", address, got, err)
			}
			f, err := folder.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			p := make([]byte, 3000)
			if _, err := f.ReadAt(p, 0); err != nil || !bytes.Equal(p, data) {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
}

// TestHostileListing leaves out paths that lead out of a folder.
func TestHostileListing(t *testing.T) {
	h := hubtest.New(t)
	for _, path := range []string{"../../x.gguf", "/etc/y.gguf", "a/../../z.gguf", "./w.gguf", "ok.gguf", "sub\\v.gguf"} {
		h.Add("org/model", path, strings.NewReader("x"), 1)
	}
	folder, _, err := client(t, h, nil).Open("hf://org/model")
	if err != nil {
		t.Fatal(err)
	}
	if names, _ := folder.Names(); !slices.Equal(names, []string{"ok.gguf"}) {
		t.Errorf("names are %q", names)
	}
	if _, err := folder.Open("../ok.gguf"); err == nil {
		t.Error("a name that leads out was opened")
	}
}

func TestEmptyFile(t *testing.T) {
	h := hubWith(t, nil)
	c := client(t, h, nil)
	for _, address := range []string{"hf://org/model", h.File(fileName)} {
		f := open(t, c, address)
		if n, err := f.ReadAt(make([]byte, 5), 0); f.Size() != 0 || n != 0 || err != io.EOF {
			t.Errorf("%s: size %d, %d bytes, %v", address, f.Size(), n, err)
		}
	}
}

func TestOffline(t *testing.T) {
	h := hubWith(t, randomBytes(10))
	c := client(t, h, func(o *Options) { o.Offline = true })
	for _, address := range []string{"hf://org/model", h.File(fileName)} {
		if _, err := tryOpen(c, address); !errors.Is(err, ErrOffline) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if n := len(h.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
}
