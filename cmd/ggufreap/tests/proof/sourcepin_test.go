package proof

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/manifest"
)

// TestPruneHoldsTheSourceAgainstItsPin changes one byte of the source after it was pinned.
func TestPruneHoldsTheSourceAgainstItsPin(t *testing.T) {
	proofFolder(t)
	programtest.WriteText(t, "plan.json", shuffledPlan)
	prune := func(out string) programtest.Result {
		return programtest.Run(t, "prune", "--plan", "plan.json", "--source-pin", "source.pin.json.zst", "--shards", "5", "-o", out, "source")
	}
	if r := prune("good"); r.Code != programtest.OK || !strings.Contains(r.Stdout, "every one that was read is the pinned one") {
		t.Fatalf("exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	m := programtest.OpenModel(t, "source")
	for what, test := range map[string]struct {
		tensor string
		expert int // NoExpert for a whole tensor
		stops  bool
	}{
		"a kept expert":      {"blk.1.ffn_up_exps.weight", 17, true},
		"a kept router row":  {"blk.2.ffn_gate_inp.weight", 30, true},
		"a kept bias":        {"blk.2.exp_probs_b.bias", 1, true},
		"a dropped expert":   {"blk.1.ffn_up_exps.weight", 1, false},
		"a tensor":           {"blk.0.ffn_up.weight", manifest.NoExpert, true},
		"the last expert":    {"blk.2.ffn_down_exps.weight", 29, true},
		"a dropped bias":     {"blk.2.exp_probs_b.bias", 0, false},
		"the last of a file": {"output.weight", manifest.NoExpert, true},
	} {
		t.Run(what, func(t *testing.T) {
			tensor := m.Tensor(test.tensor)
			at := tensor.DataOffset()
			if test.expert != manifest.NoExpert {
				at += int64(test.expert) * tensor.Size / 32
			}
			file := tensor.File().Name
			if err := programtest.Flip(file, int(at)); err != nil {
				t.Fatal(err)
			}
			defer programtest.Flip(file, int(at))
			out := strings.ReplaceAll(what, " ", "-")
			r := prune(out)
			place := fmt.Sprintf("%s: tensor %q", file, test.tensor)
			if test.expert != manifest.NoExpert {
				place += fmt.Sprintf(": expert %d", test.expert)
			}
			switch {
			case !test.stops && r.Code != programtest.OK:
				t.Errorf("exit %d, %s", r.Code, r.Stderr)
			case test.stops && (r.Code != programtest.Failed || !strings.Contains(r.Stderr, place+": ") || !strings.Contains(r.Stderr, "the source's pin says")):
				t.Errorf("exit %d, want %q in %s", r.Code, place, r.Stderr)
			}
			if _, err := os.Stat(filepath.Join(out, manifest.SumsName)); (err == nil) == test.stops {
				t.Errorf("manifest: %v", err)
			}
		})
	}
}

func TestPruneRefusesOtherPins(t *testing.T) {
	proofFolder(t)
	other := programtest.SmallK3().Clone()
	other.Name = "other"
	other.Metadata.Set("tokenizer.chat_template", gguf.TextValue("another"))
	programtest.Write(t, other, gguf.Split{})
	programtest.Succeed(t, "pin", "-o", "other.pin.json", "other.gguf")
	seeded := gguftest.K3(gguftest.K3Options{Name: "seeded", Experts: 32, Used: 4, Layers: 3, Seed: 9})
	programtest.Write(t, seeded, gguf.Split{})
	programtest.Succeed(t, "pin", "-o", "seeded.pin.json", "seeded.gguf")
	programtest.Succeed(t, "plan", "--keep", "16", "--pin", "seeded.pin.json", "-o", "seeded.plan.json", "seeded.gguf")
	programtest.WriteText(t, "there.json", "")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--keep", "16", "--source-pin", "other.pin.json"}, `other.pin.json: the pin of another model, "other": key "tokenizer.chat_template"`},
		{[]string{"--keep", "16", "--source-pin", "source.pin.json.zst", "--pin-source", "x.json"}, "contradict each other"},
		{[]string{"--keep", "16", "--pin-source", "there.json"}, "output there.json exists"},
		{[]string{"--keep", "16", "--pin-source", "source/small-00001-of-00009.gguf", "--force"}, "is the source"},
		{[]string{"--plan", "seeded.plan.json", "--source-pin", "source.pin.json.zst"}, "made for other weights"},
		{[]string{"--keep", "16", "--source-pin", "none.json"}, "none.json: no such file"},
	} {
		args := slices.Concat([]string{"prune"}, tc.args, []string{"-o", "out", "source"})
		r := programtest.Run(t, args...)
		if r.Code != programtest.Failed || !strings.Contains(r.Stderr, tc.want) {
			t.Errorf("%q: exit %d, want %q in %s", tc.args, r.Code, tc.want, r.Stderr)
		}
		if _, err := os.Stat("out"); err == nil {
			t.Errorf("%q: an output folder was left behind", tc.args)
		}
	}
}

// TestPrunePinsItsSource wants the pin that pin makes, from the pass that prunes, and the
// release that prune writes without it.
func TestPrunePinsItsSource(t *testing.T) {
	proofFolder(t)
	programtest.WriteText(t, "shuffled.json", shuffledPlan)
	want, err := os.ReadFile("source.pin.json.zst")
	if err != nil {
		t.Fatal(err)
	}
	for name, choice := range map[string][]string{
		"sorted":   {"--keep", "16"},
		"all":      {"--keep", "32"},
		"shuffled": {"--plan", "shuffled.json"},
	} {
		for _, workers := range []string{"1", "8"} {
			args := slices.Concat([]string{"prune", "--shards", "7", "--workers", workers}, choice)
			dir := name + workers
			programtest.Succeed(t, append(args, "-o", dir, "source")...)
			out := programtest.Succeed(t, append(args, "--pin-source", dir+".pin.json.zst", "--no-source-pin", "-o", dir+"-pinned", "source")...)
			if !strings.Contains(out, "pinned as they were read, in "+dir+".pin.json.zst") {
				t.Errorf("%s: %s", dir, out)
			}
			got, err := os.ReadFile(dir + ".pin.json.zst")
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: another pin of the source", dir)
			}
			a, b := programtest.Folder(t, dir), programtest.Folder(t, dir+"-pinned")
			for file, data := range a {
				if b[file] != data {
					t.Errorf("%s: %s differs", dir, file)
				}
			}
			programtest.Succeed(t, "verify", "--source-pin", dir+".pin.json.zst", dir+"-pinned")
		}
	}
	if r := programtest.Run(t, "prune", "--keep", "16", "--pin-source", "dry.json", "--dry-run", "source"); r.Code != programtest.OK || !strings.Contains(r.Stdout, "pinned as they are read, in dry.json") {
		t.Errorf("exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	if _, err := os.Stat("dry.json"); err == nil {
		t.Error("a dry run wrote a pin")
	}
}

// TestReleaseStatesPinnedWeightsOnly wants the key with the source's weights digest where
// the bytes were held against a pin, and not where the plan alone names it.
func TestReleaseStatesPinnedWeightsOnly(t *testing.T) {
	proofFolder(t)
	programtest.Succeed(t, "plan", "--keep", "16", "--pin", "source.pin.json.zst", "-o", "plan.json", "source")
	pin, err := manifest.ReadPin("source.pin.json.zst")
	if err != nil {
		t.Fatal(err)
	}
	for dir, args := range map[string][]string{"pinned": {"--source-pin", "source.pin.json.zst"}, "unpinned": nil} {
		programtest.Succeed(t, slices.Concat([]string{"prune", "--plan", "plan.json", "-o", dir}, args, []string{"source"})...)
		got := programtest.OpenModel(t, dir).Metadata().Text("reap.source_weights_digest")
		want := ""
		if dir == "pinned" {
			want = pin.WeightsDigest.String()
		}
		if got != want {
			t.Errorf("%s: source_weights_digest is %q, want %q", dir, got, want)
		}
		programtest.Succeed(t, "verify", "--source-pin", "source.pin.json.zst", dir)
	}
}
