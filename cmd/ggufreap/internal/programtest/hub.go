package programtest

import (
	"path/filepath"
	"regexp"
	"testing"

	"ggufreap/gguf/gguftest"
	"ggufreap/gguf/remote/hubtest"
	"ggufreap/manifest"
)

// OnHub puts a model on a test hub, in the folder IQ1_S of org/K3 and on the server that is
// not the hub, and has the environment point there. It returns the files on disk too.
func OnHub(t *testing.T, spec gguftest.Spec, shards int) (h *hubtest.Hub, files []string) {
	t.Helper()
	h = OnEmptyHub(t)
	files = WriteModel(t, spec, shards)
	h.AddFolder(t, "org/K3", "IQ1_S", filepath.Dir(files[0]))
	h.AddFolder(t, "plain/files", "", filepath.Dir(files[0]))
	return h, files
}

// OnEmptyHub has the environment point to a test hub.
func OnEmptyHub(t *testing.T) *hubtest.Hub {
	t.Helper()
	h := hubtest.NewPlain(t)
	t.Setenv("HF_ENDPOINT", h.Endpoint())
	for _, name := range []string{"HF_TOKEN", "HF_HUB_OFFLINE", "HTTP_PROXY", "http_proxy"} {
		t.Setenv(name, "")
	}
	t.Setenv("HF_HOME", t.TempDir())
	return h
}

// WideExperts is a model whose experts are so large that the gaps between those that are
// kept do not travel.
func WideExperts() gguftest.Spec {
	return gguftest.K3(gguftest.K3Options{Name: "wide", Experts: 32, Used: 4, Layers: 3, Latent: 512, Width: 256})
}

// SameFolder compares the models and plans of two folders. Pins differ in what is declared,
// and plans in what the hub stated.
func SameFolder(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, data := range want {
		if WithoutStated(got[name]) != data && name != manifest.PinName && name != "MANIFEST.sha256" {
			t.Errorf("%s differs", name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d files, want %d", len(got), len(want))
	}
}

// statedByHub is what plans and pins say that the hub stated.
var statedByHub = regexp.MustCompile(`(?s),\s*"stated_by_hub": (\[[^]]*\]|\{.*?\]\s*\})`)

// WithoutStated is a plan or a pin without it.
func WithoutStated(document string) string { return statedByHub.ReplaceAllString(document, "") }
