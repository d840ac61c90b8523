package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/gguf/remote/hubtest"
	"ggufreap/manifest"
)

// TestAddressesGiveWhatFilesGive runs the commands that read headers by every kind of
// address, and compares what they print with what they print of the files.
func TestAddressesGiveWhatFilesGive(t *testing.T) {
	h, files := programtest.OnHub(t, gguftest.K3(gguftest.K3Options{}), gguftest.K3Shards)
	first := filepath.Base(files[0])
	for _, address := range []string{
		"hf://org/K3", "hf://org/K3@main", "hf://org/K3/IQ1_S", "hf://org/K3@" + hubtest.Commit + "/IQ1_S/" + filepath.Base(files[3]),
		h.Endpoint() + "/org/K3/tree/main/IQ1_S", h.Endpoint() + "/org/K3/blob/main/IQ1_S/" + first, h.Endpoint() + "/org/K3",
		h.File(first), h.File(filepath.Base(files[8])),
	} {
		for _, command := range [][]string{
			{"inspect", "--json", "--tensors"},
			{"inspect", "--key", "tokenizer.ggml.tokens"},
			{"plan", "--json", "--preset", "reap568"},
			{"prune", "--json", "--preset", "reap568", "--dry-run"},
			{"reshard", "--json", "--shards", "4", "--dry-run"},
		} {
			want := succeed(t, append(command, files[0])...)
			got := programtest.WithoutStated(succeed(t, append(command, address)...))
			if told := travelled.FindAllString(got, -1); len(told) != 2*strings.Count(want, `"fetched": null`) {
				t.Errorf("%s %s: tells %q of what travelled", command, address, told)
			}
			if got = travelled.ReplaceAllString(got, `"$1": null`); got != want {
				t.Errorf("%s %s: prints other than of the files:\n%.2000s", command, address, got)
			}
		}
	}
	if out := succeed(t, "diff", "hf://org/K3", files[0]); !strings.Contains(out, "same") {
		t.Errorf("diff prints %s", out)
	}
}

// travelled is what a release says of the bytes that travelled.
var travelled = regexp.MustCompile(`"(fetched|saved)": [1-9][0-9]*`)

// TestInspectCostsLittle counts the requests and bytes of an inspection of nine shards: at
// most four a shard, the one that finds where it is stored included, and at most 1.1 times the
// bytes of the headers. It is the small fixture, and one of the real size with a vocabulary of
// 163,840 tokens.
func TestInspectCostsLittle(t *testing.T) {
	real := gguftest.K3Real(1536, gguf.IQ1_S)
	for name, spec := range map[string]gguftest.Spec{
		"fixture": gguftest.K3(gguftest.K3Options{}), "real": real, "with a vocabulary": real.WithVocabulary("gpt2", 163840, 8),
	} {
		h := programtest.OnEmptyHub(t)
		files, err := spec.WriteSparse(t.TempDir(), gguf.Split{Shards: gguftest.K3Shards})
		if err != nil {
			t.Fatal(err)
		}
		var headers int64
		stored := map[string]string{} // names by sums, as the storage has them
		for i, f := range openModel(t, files[0]).Files {
			headers += f.DataOffset
			base, sum := filepath.Base(f.Name), fmt.Sprintf("%064x", i+1)
			stored[sum] = base
			h.AddStated("org/K3", "IQ1_S/"+base, f, f.Size, sum)
			h.AddStated("plain/files", base, f, f.Size, sum)
		}
		for _, address := range []string{"hf://org/K3", h.File(filepath.Base(files[0]))} {
			h.Reset()
			succeed(t, "inspect", address)
			perShard, listing := map[string]int{}, 0
			for _, r := range h.Requests() {
				switch base := filepath.Base(r.Path); {
				case stored[base] != "":
					perShard[stored[base]]++
				case strings.HasPrefix(r.Path, "/api/"):
					listing++
				default:
					perShard[base]++
				}
			}
			for shard, n := range perShard {
				if n > 4 {
					t.Errorf("%s at %s: %s was asked for %d times", name, address, shard, n)
				}
			}
			if len(perShard) != gguftest.K3Shards || listing > 2 {
				t.Errorf("%s at %s: %d shards, %d requests for the listing", name, address, len(perShard), listing)
			}
			got := h.Written.Load()
			t.Logf("%s at %s: %d requests, %d bytes, the headers have %d: %.3f times as many", name, address, len(h.Requests()), got, headers, float64(got)/float64(headers))
			if float64(got) > 1.1*float64(headers) {
				t.Errorf("%s at %s: %d bytes travelled, the headers have %d", name, address, got, headers)
			}
		}
	}
}

// TestPlanFetchesRoutersOnly counts the bytes of a plan by router-mass.
func TestPlanFetchesRoutersOnly(t *testing.T) {
	h, files := programtest.OnHub(t, gguftest.K3(gguftest.K3Options{}), gguftest.K3Shards)
	m := openModel(t, files[0])
	var headers, routers int64
	for _, f := range m.Files {
		headers += f.DataOffset
	}
	for _, tensor := range m.Tensors() {
		for _, suffix := range []string{".ffn_gate_inp.weight", ".exp_probs_b.bias", ".ffn_norm.weight"} {
			if strings.HasSuffix(tensor.Name, suffix) {
				routers += tensor.Size
			}
		}
	}
	succeed(t, "plan", "--preset", "reap568", "hf://org/K3")
	if got, most := h.Written.Load(), routers+headers*11/10; got > most || got < routers/2 {
		t.Errorf("%d bytes travelled, headers and routers have %d", got, most)
	}
}

// TestPlanKeepsRouters plans twice with a cache folder: the second time next to nothing
// travels, and a file of the cache that was damaged is fetched anew.
func TestPlanKeepsRouters(t *testing.T) {
	h, files := programtest.OnHub(t, gguftest.K3(gguftest.K3Options{}), gguftest.K3Shards)
	cache := filepath.Join(t.TempDir(), "cache")
	for _, address := range []string{"hf://org/K3", h.File(filepath.Base(files[0]))} {
		line := []string{"plan", "--json", "--preset", "reap568", "--criterion", "router-mass", "--cache", cache, address}
		want := succeed(t, line...)
		h.Reset()
		if got := succeed(t, line...); got != want || h.Written.Load() > 9*512 {
			t.Errorf("%s: %d bytes travelled the second time, same plan: %t", address, h.Written.Load(), got == want)
		}
		kept, err := filepath.Glob(filepath.Join(cache, "*", "*-*"))
		if err != nil || len(kept) == 0 {
			t.Fatalf("nothing is kept, %v", err)
		}
		for _, path := range kept {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			data[0] ^= 1
			if err := os.WriteFile(path, data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if got := succeed(t, line...); got != want {
			t.Errorf("%s: a damaged cache gives another plan", address)
		}
	}
}

// TestPruneFromTheHub gets the release that the files give, byte for byte, while only what
// is kept travels; and so from another server, and with addresses that expire.
func TestPruneFromTheHub(t *testing.T) {
	h, files := programtest.OnHub(t, programtest.WideExperts(), 5)
	dir := t.TempDir()
	local := filepath.Join(dir, "local")
	keep := []string{"prune", "--keep", "12", "--shards", "4"}
	succeed(t, append(keep, "-o", local, files[0])...)
	want := folder(t, local)
	var kept int64
	for name, data := range want {
		if strings.HasSuffix(name, ".gguf") {
			kept += int64(len(data))
		}
	}
	for i, address := range []string{"hf://org/K3", h.File(filepath.Base(files[0])), "hf://org/K3/IQ1_S"} {
		if i == 2 {
			h.Life = 7
		}
		h.Reset()
		out := filepath.Join(dir, "far"+string(rune('0'+i)))
		printed := succeed(t, append(keep, "-o", out, address)...)
		programtest.SameFolder(t, folder(t, out), want)
		if got := h.Written.Load(); got > kept*105/100 {
			t.Errorf("%s: %d bytes travelled for a release of %d", address, got, kept)
		}
		if !strings.Contains(printed, "fetched") || !strings.Contains(printed, "saved") || i == 0 && !strings.Contains(printed, "hub states") {
			t.Errorf("%s: prints\n%s", address, printed)
		}
	}
}

// TestPlanSaysWhatTheHubStates has plan, release and verify tell what the hub said and nobody
// computed: a release shows nothing of its source's sums, unless a pin of the source has them.
func TestPlanSaysWhatTheHubStates(t *testing.T) {
	h, files := programtest.OnHub(t, smallK3(), 4)
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	succeed(t, "plan", "--keep", "8", "-o", path("local.json"), files[0])
	succeed(t, "plan", "--keep", "8", "-o", path("hub.json"), "hf://org/K3")
	if text := string(read(t, path("hub.json"))); programtest.WithoutStated(text) != string(read(t, path("local.json"))) || !strings.Contains(text, `"commit": "`+hubtest.Commit+`"`) || strings.Count(text, `"path": "IQ1_S/`) != 4 {
		t.Errorf("the plan is\n%.1500s", text)
	}
	succeed(t, "prune", "--plan", path("local.json"), "-o", path("a"), files[0])
	for _, plan := range []string{"local.json", "hub.json"} {
		out := path("of-" + plan)
		succeed(t, "prune", "--plan", path(plan), "-o", out, "hf://org/K3")
		programtest.SameFolder(t, folder(t, out), folder(t, path("a")))
		if got := string(read(t, filepath.Join(out, "plan.json"))); got != string(read(t, path("hub.json"))) {
			t.Errorf("%s: the plan of the release is\n%.1500s", plan, got)
		}
	}
	const gap = "not checked     the sha256 of the source's files, as the hub states it of 4 shards of hf://org/K3@" + hubtest.Commit
	if out := succeed(t, "verify", path("of-hub.json")); !strings.Contains(out, gap) {
		t.Errorf("verify prints\n%s", out)
	}
	if out := succeed(t, "verify", path("a")); strings.Contains(out, "as the hub states") {
		t.Errorf("verify of what the hub never saw prints\n%s", out)
	}
	succeed(t, "pin", "-o", path("pin.json"), files[0])
	if out := succeed(t, "verify", "--source-pin", path("pin.json"), path("of-hub.json")); !strings.Contains(out, "has the sha256 that the hub states: 4 of 4 shards") || strings.Contains(out, gap) {
		t.Errorf("verify with the source's pin prints\n%s", out)
	}
	data := read(t, files[2])
	h.AddStated("org/K3", "IQ1_S/"+filepath.Base(files[2]), bytes.NewReader(data), int64(len(data)), strings.Repeat("ab", 32))
	r := ggufreap(t, "prune", "--plan", path("hub.json"), "-o", path("b"), "hf://org/K3")
	if r.code != exitOK || !strings.Contains(r.stderr, "of which the hub stated another content of 1 file") {
		t.Errorf("a plan for other files: exit %d, %s", r.code, r.stderr)
	}
	if r := ggufreap(t, "verify", "--source-pin", path("pin.json"), path("b")); r.code != exitDiffers || !strings.Contains(r.stdout, "the source's pin says otherwise") {
		t.Errorf("exit %d\n%s", r.code, r.stdout)
	}
}

// read returns the bytes of a file.
func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestReshardAndPinFromTheHub reads all of a model that is far away.
func TestReshardAndPinFromTheHub(t *testing.T) {
	h, files := programtest.OnHub(t, smallK3(), 4)
	dir := t.TempDir()
	local, far := filepath.Join(dir, "local"), filepath.Join(dir, "far")
	succeed(t, "reshard", "--shards", "3", "-o", local, files[0])
	succeed(t, "reshard", "--shards", "3", "-o", far, "hf://org/K3")
	programtest.SameFolder(t, folder(t, far), folder(t, local))

	here, there := filepath.Join(dir, "here.json"), filepath.Join(dir, "there.json")
	succeed(t, "pin", "-o", here, "--repo", "org/K3", "--revision", hubtest.Commit, "--license", "apache-2.0", files[0])
	succeed(t, "pin", "-o", there, "hf://org/K3")
	a, errA := os.ReadFile(here)
	b, errB := os.ReadFile(there)
	if errA != nil || errB != nil || string(a) != programtest.WithoutStated(string(b)) {
		t.Error("the pin of the model on the hub is another one, or declares other facts")
	}
	if pin, err := manifest.DecodePin(bytes.NewReader(b)); err != nil || !slices.Equal(pin.Declared.StatedByHub, []string{"repo", "revision", "license"}) {
		t.Errorf("%v: what the hub stated is marked %q", err, pin.Declared.StatedByHub)
	}
	if out := succeed(t, "pin", "--repo", "mine", "hf://org/K3"); !strings.Contains(out, "repo mine\n") || !strings.Contains(out, "license apache-2.0 (stated by the hub, not computed here)") {
		t.Errorf("pin prints\n%s", out)
	}
	succeed(t, "prune", "--keep", "8", "--source-pin", there, "-o", filepath.Join(dir, "pruned"), h.File(filepath.Base(files[0])))
}

// TestReshardChecksTheHubsSums takes the sums of the source's files as they come, publishes
// nothing when one is not what the hub states, and finds that out of a run that was gone on
// with too.
func TestReshardChecksTheHubsSums(t *testing.T) {
	h, files := programtest.OnHub(t, smallK3(), 4)
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	if printed := succeed(t, "reshard", "--shards", "3", "-o", out, "hf://org/K3"); !strings.Contains(printed, "sha256 of 4 of 4 shards as the hub states it") {
		t.Errorf("prints\n%s", printed)
	}
	for _, resumed := range []bool{false, true} {
		data, err := os.ReadFile(files[2])
		if err != nil {
			t.Fatal(err)
		}
		h.AddStated("org/K3", "IQ1_S/"+filepath.Base(files[2]), bytes.NewReader(data), int64(len(data)), strings.Repeat("ab", 32))
		out := filepath.Join(dir, fmt.Sprint("damaged", resumed))
		line := []string{"reshard", "--shards", "3", "-o", out, "hf://org/K3"}
		if resumed { // by shards of which the first is finished when the source ends
			last, err := os.ReadFile(files[3])
			if err != nil {
				t.Fatal(err)
			}
			end := fmt.Sprint(len(last) - 1)
			h.Fault = func(w http.ResponseWriter, r *http.Request) bool {
				gone := strings.HasSuffix(r.URL.Path, fmt.Sprintf("%x", sha256.Sum256(last))) && strings.HasSuffix(r.Header.Get("Range"), "-"+end)
				if gone {
					w.WriteHeader(http.StatusNotFound)
				}
				return gone
			}
			line = []string{"reshard", "--shards", "30", "-o", out, "hf://org/K3"}
			if r := ggufreap(t, line...); r.code != exitFailed || !strings.Contains(r.stderr, "to go on") {
				t.Fatalf("exit %d, stderr %s", r.code, r.stderr)
			}
			h.Fault = nil
			line = append([]string{"reshard", "--resume"}, line[1:]...)
		}
		r := ggufreap(t, line...)
		if r.code != exitFailed || !strings.Contains(r.stderr, "the hub states "+strings.Repeat("ab", 32)) {
			t.Errorf("resumed %t: exit %d, stderr %s", resumed, r.code, r.stderr)
		}
		for name := range folder(t, out) {
			if strings.HasSuffix(name, ".gguf") || name == "MANIFEST.sha256" {
				t.Errorf("resumed %t: %s was published", resumed, name)
			}
		}
		h.Add("org/K3", "IQ1_S/"+filepath.Base(files[2]), bytes.NewReader(data), int64(len(data)))
	}
}

// TestFilesAgainstTheHub holds downloaded files against what the hub lists.
func TestFilesAgainstTheHub(t *testing.T) {
	h, files := programtest.OnHub(t, smallK3(), 4)
	h.Add("org/K3", "IQ1_S/README.md", strings.NewReader("x"), 1)
	dir := filepath.Dir(files[0])
	check := func(code int, wants ...string) {
		t.Helper()
		for _, line := range [][]string{
			{"verify", "--against", "hf://org/K3", dir},
			{"pin", "--check", "hf://org/K3", dir},
			{"verify", "--against", h.Endpoint() + "/org/K3/tree/main/IQ1_S", files[0]},
		} {
			r := ggufreap(t, line...)
			if r.code != code {
				t.Errorf("%s: exit %d\n%s%s", line, r.code, r.stdout, r.stderr)
			}
			for _, want := range wants {
				if !strings.Contains(r.stdout, want) {
					t.Errorf("%s: %q is not in\n%s", line, want, r.stdout)
				}
			}
		}
	}
	check(exitOK, "sha256: 4 of 4", "other files too: 1")
	data, err := os.ReadFile(files[2])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-100] ^= 1
	if err := os.WriteFile(files[2], data, 0o666); err != nil {
		t.Fatal(err)
	}
	check(exitDiffers, filepath.Base(files[2])+": sha256 is", "sha256: 3 of 4")
	if r := ggufreap(t, "verify", "--fast", "--against", "hf://org/K3", dir); r.code != exitOK || !strings.Contains(r.stdout, "sizes: 4 of 4") {
		t.Errorf("--fast: exit %d\n%s", r.code, r.stdout)
	}
	if err := os.WriteFile(filepath.Join(dir, "other.gguf"), data, 0o666); err != nil {
		t.Fatal(err)
	}
	if r := ggufreap(t, "verify", "--against", "hf://org/K3", files[0]); r.code != exitDiffers {
		t.Errorf("exit %d\n%s", r.code, r.stdout)
	}
	if r := ggufreap(t, "verify", "hf://org/K3"); r.code != exitFailed || !strings.Contains(r.stderr, "verify --against hf://org/K3 DIR") {
		t.Errorf("exit %d\n%s", r.code, r.stderr)
	}
}

// keptExpert returns which of the source's experts is the first of a pruned tensor.
func keptExpert(t *testing.T, source, pruned *gguf.Tensor) int {
	t.Helper()
	experts := source.Shape[len(source.Shape)-1]
	size := source.Size / int64(experts)
	want := make([]byte, size)
	if _, err := pruned.Reader().ReadAt(want, 0); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, size)
	for i := range int64(experts) {
		if _, err := source.Reader().ReadAt(got, i*size); err == nil && bytes.Equal(got, want) {
			return int(i)
		}
	}
	t.Fatalf("no expert of %s is the first one kept", source.Name)
	return 0
}

// TestSourceOnTheHubChanges ends a run, and refuses to go on, when the source is no longer
// what it was.
func TestSourceOnTheHubChanges(t *testing.T) {
	h, files := programtest.OnHub(t, smallK3(), 4)
	plain := h.File(filepath.Base(files[0]))
	third := openModel(t, files[0]).Files[2]
	h.Fault = func(w http.ResponseWriter, r *http.Request) bool {
		var from int64
		fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
		if filepath.Base(r.URL.Path) != filepath.Base(third.Name) || from < third.DataOffset {
			return false
		}
		h.Answer(&keepTag{w}, r)
		return true
	}
	out := filepath.Join(t.TempDir(), "out")
	r := ggufreap(t, "prune", "--keep", "8", "-o", out, plain)
	if r.code != exitFailed || !strings.Contains(r.stderr, "the file changed on the server while in use") {
		t.Errorf("exit %d, stderr %s", r.code, r.stderr)
	}
	if published, _ := filepath.Glob(filepath.Join(out, "*.gguf")); len(published) > 0 {
		t.Errorf("%q were published", published)
	}
}

// A keepTag does not let the entity tag be set again.
type keepTag struct{ http.ResponseWriter }

func (w *keepTag) WriteHeader(code int) {
	w.Header().Set("ETag", `"another"`)
	w.ResponseWriter.WriteHeader(code)
}

// TestRemoteRefusals puts into words what cannot be done, without secrets.
func TestRemoteRefusals(t *testing.T) {
	h, files := programtest.OnHub(t, smallK3(), 1)
	t.Setenv("HF_TOKEN", "hf_verysecret")
	for _, tc := range []struct {
		offline string
		args    []string
		want    []string
	}{
		{"", []string{"inspect", "hf://org/none"}, []string{"hf://org/none: is not there", "hf auth login"}},
		{"", []string{"inspect", "hf://org/K3", files[0]}, []string{"not both"}},
		{"1", []string{"inspect", "hf://org/K3"}, []string{"offline", "HF_HUB_OFFLINE is set"}},
		{"", []string{"inspect", h.File("none.gguf?X-Amz-Signature=" + hubtest.Secret)}, []string{"404"}},
		{"", []string{"plan", "--keep", "8", "--limit-rate", "fast", "hf://org/K3"}, []string{"--limit-rate"}},
		{"", []string{"inspect", "--connections", "0", "hf://org/K3"}, []string{"--connections is 0"}},
	} {
		t.Setenv("HF_HUB_OFFLINE", tc.offline)
		r := ggufreap(t, tc.args...)
		for _, want := range tc.want {
			if r.code != exitFailed || !strings.Contains(r.stderr, want) {
				t.Errorf("%s: exit %d, stderr %s", tc.args, r.code, r.stderr)
			}
		}
		if strings.Contains(r.stderr+r.stdout, hubtest.Secret) || strings.Contains(r.stderr+r.stdout, "hf_very") {
			t.Errorf("%s: a secret in %s", tc.args, r.stderr)
		}
	}
	t.Setenv("HF_ENDPOINT", "ftp://x")
	if r := ggufreap(t, "inspect", "hf://org/K3"); !strings.Contains(r.stderr, "HF_ENDPOINT") {
		t.Errorf("stderr %s", r.stderr)
	}
}

// TestSignedAddressesOfAllShards opens a model by an address for each shard.
func TestSignedAddressesOfAllShards(t *testing.T) {
	h, files := programtest.OnHub(t, smallK3(), 3)
	var addresses []string
	for _, i := range []int{2, 0, 1} {
		addresses = append(addresses, h.File(filepath.Base(files[i]))+"?sig="+hubtest.Secret)
	}
	out := filepath.Join(t.TempDir(), "out")
	printed := succeed(t, append([]string{"prune", "--keep", "8", "-o", out}, addresses...)...)
	if strings.Contains(printed, hubtest.Secret) {
		t.Errorf("prints a signature: %s", printed)
	}
	local := filepath.Join(t.TempDir(), "local")
	succeed(t, "prune", "--keep", "8", "-o", local, files[0])
	programtest.SameFolder(t, folder(t, out), folder(t, local))

	h.Fault = func(w http.ResponseWriter, r *http.Request) bool { // a signature is that of one file
		refused := filepath.Base(r.URL.Path) != filepath.Base(files[2])
		if refused {
			w.WriteHeader(http.StatusForbidden)
		}
		return refused
	}
	line := []string{"prune", "--keep", "8", "-o", filepath.Join(t.TempDir(), "one"), addresses[0]}
	if r := ggufreap(t, line...); r.code == exitOK || !strings.Contains(r.stderr, "give the addresses of all 3 shards") || strings.Contains(r.stderr, hubtest.Secret) {
		t.Errorf("exit %d, stderr %s", r.code, r.stderr)
	}
}
