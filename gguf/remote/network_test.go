package remote

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"ggufreap/gguf/remote/hubtest"
)

// TestProxies reads through a proxy. Over https it sees which hosts are asked and nothing else;
// over http the token is not sent, so that it sees none.
func TestProxies(t *testing.T) {
	data := randomBytes(100_000)
	for _, scheme := range []string{"https", "http"} {
		h := hubtest.New(t)
		if scheme == "http" {
			h = hubtest.NewPlain(t)
		}
		h.Add("org/model", fileName, bytes.NewReader(data), int64(len(data)))
		h.Add("plain/files", fileName, bytes.NewReader(data), int64(len(data)))
		proxy := h.NewProxy(t)
		through, err := url.Parse(strings.Replace(proxy.URL, "http://", "http://user:secret@", 1))
		if err != nil {
			t.Fatal(err)
		}
		c := client(t, h, func(o *Options) {
			o.Transport = func(transport *http.Transport) {
				h.Transport(transport)
				transport.Proxy = http.ProxyURL(through)
			}
		})
		for _, address := range []string{"hf://org/model", h.File(fileName)} {
			p := make([]byte, len(data))
			if _, err := open(t, c, address).ReadAt(p, 0); err != nil || !bytes.Equal(p, data) {
				t.Errorf("%s: %v", address, err)
			}
		}
		seen := proxy.Requests()
		if len(seen) == 0 {
			t.Errorf("%s: the proxy was asked nothing", scheme)
		}
		for _, r := range seen {
			if r.Authorization != "" || r.ProxyAuthorization == "" || (r.Method == http.MethodConnect) != (scheme == "https") {
				t.Errorf("%s: the proxy got %+v", scheme, r)
			}
		}
		for _, r := range h.Requests() {
			if scheme == "http" && r.Authorization != "" {
				t.Errorf("the token went over http: %+v", r)
			}
		}
		if scheme == "https" {
			checkSecrets(t, h)
		}
	}
}

// TestIPv6 reads from a server that has an address of IPv6 only.
func TestIPv6(t *testing.T) {
	data := randomBytes(100_000)
	h := hubtest.NewIPv6(t)
	h.Add("org/model", fileName, bytes.NewReader(data), int64(len(data)))
	h.Add("plain/files", fileName, bytes.NewReader(data), int64(len(data)))
	c := client(t, h, nil)
	for _, address := range []string{"hf://org/model", h.Endpoint() + "/org/model/blob/main/" + fileName, h.File(fileName)} {
		p := make([]byte, len(data))
		if _, err := open(t, c, address).ReadAt(p, 0); err != nil || !bytes.Equal(p, data) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if name := open(t, c, h.File(fileName)).Name(); !strings.HasPrefix(name, "http://[0:0:0:0:0:0:0:1]:") {
		t.Errorf("the file is called %q", name)
	}
}

// TestFolderOfModel finds the folder with the model beside files that go beside one.
func TestFolderOfModel(t *testing.T) {
	for _, tc := range []struct {
		paths []string
		want  string // folder, or of the error
	}{
		{[]string{"mmproj-F16.gguf", "IQ1_S/a.gguf"}, "IQ1_S/"},
		{[]string{"imatrix.gguf", "IQ1_S/a.gguf", "MMPROJ.gguf"}, "IQ1_S/"},
		{[]string{"mmproj-F16.gguf", "a.gguf"}, "/"},
		{[]string{"mmproj/mmproj-F16.gguf"}, "mmproj/"},
		{[]string{"mmproj-F16.gguf", "IQ1_S/a.gguf", "IQ2/a.gguf"}, "several folders, name one of them: IQ1_S, IQ2"},
	} {
		h := hubtest.New(t)
		for _, path := range tc.paths {
			h.Add("org/model", path, strings.NewReader("x"), 1)
		}
		folder, _, err := client(t, h, nil).Open("hf://org/model")
		if err != nil {
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v: %v", tc.paths, err)
			}
			continue
		}
		if !strings.HasSuffix(folder.Name(), strings.TrimPrefix("/"+tc.want, "//")) {
			t.Errorf("%v: folder is %s", tc.paths, folder.Name())
		}
	}
}
