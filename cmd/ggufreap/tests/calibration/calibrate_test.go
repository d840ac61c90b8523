package calibration

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ggufreap/cmd/ggufreap/internal/programtest"

	"ggufreap/cmd/ggufreap/internal/engines"
	"ggufreap/gguf"
	"ggufreap/gguf/gguftest"
	"ggufreap/reap/engine/enginetest"
)

// withEngine lets the program find the engine.
func withEngine(t *testing.T) {
	t.Helper()
	library, err := filepath.Abs(enginetest.Folder(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GGUFREAP_LLAMA_LIB", library)
	t.Setenv(engines.Variable, enginetest.Program(t))
}

// trained is the trained model of the project.
func trained(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "..", "testdata", "trained", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// head writes the first bytes of a text of the trained model.
func head(t *testing.T, name string, size int) string {
	t.Helper()
	f, err := os.Open(trained(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(size)))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// fails runs the program and wants an error with the given words.
func fails(t *testing.T, want string, args ...string) {
	t.Helper()
	if r := programtest.Run(t, args...); r.Code != programtest.Failed || !strings.Contains(r.Stderr, want) {
		t.Errorf("%q: exit %d, stderr %q, want %q", args, r.Code, r.Stderr, want)
	}
}

// The road: calibrate, plan, prune, verify. Both score files give one plan, which says that it
// was measured and by what.
func TestCalibrateToRelease(t *testing.T) {
	model := trained(t, "dots1-trained-Q8_0.gguf")
	prose, code := head(t, "prose.calib.txt", 3000), head(t, "code.calib.txt", 3000)
	withEngine(t)
	t.Chdir(t.TempDir())
	said := programtest.Succeed(t, "calibrate", "--threads", "1", "--text", "prose="+prose, "--text", "code="+code, "--keep", "16", "-o", "s.npz", model)
	for _, want := range []string{"96 of 96 got a token, in 3 layers", "text            prose, 3,000 tokens", "llama.cpp 0.5.0", "agreement       two halves"} {
		if !strings.Contains(said, want) {
			t.Errorf("calibrate says\n%swant %q", said, want)
		}
	}
	if programtest.Exists("s.checkpoint") {
		t.Error("a checkpoint is left")
	}
	for _, scores := range []string{"s.npz", "s.json"} {
		said := programtest.Succeed(t, "plan", "--keep", "16", "--from", scores, "-o", scores+".plan", model)
		if !strings.Contains(said, "measured on text") || !strings.Contains(said, "6,000 tokens") || !strings.Contains(said, "llama.cpp 0.5.0") {
			t.Errorf("plan of %s says\n%s", scores, said)
		}
	}
	keeps := func(name string) string {
		_, lists, _ := strings.Cut(string(programtest.ReadFile(t, name)), `"layers"`)
		return lists
	}
	if keeps("s.npz.plan") != keeps("s.json.plan") {
		t.Error("npz and document give other keep lists")
	}
	if said := programtest.Succeed(t, "calibrate", "--json", "--force", "--threads", "1", "--text", prose, "-o", "j.npz", model); !strings.Contains(said, `"schema": "ggufreap/calibration/v1"`) || !strings.Contains(said, `"overlap": 0.`) {
		t.Errorf("calibrate --json says\n%s", said)
	}
	programtest.Succeed(t, "prune", "--plan", "s.json.plan", "-o", "release", model)
	programtest.Succeed(t, "verify", "release")
}

// An interrupted run that goes on gives the bits of one that was not interrupted.
func TestCalibrateResumed(t *testing.T) {
	model := head(t, "dots1-trained-Q8_0.gguf", 1<<30)
	text := head(t, "german.calib.txt", 3000)
	withEngine(t)
	t.Chdir(t.TempDir())
	args := func(out string, more ...string) []string {
		return append([]string{"calibrate", "--quiet", "--threads", "1", "--text", text, "-o", out}, append(more, model)...)
	}
	programtest.Succeed(t, args("whole.npz")...)

	for range 2 { // the second goes on with what the first has
		if r := interruptedAt(t, "measure", 2, args("part.npz", "--resume")...); !programtest.Exists("part.checkpoint") || !strings.Contains(r.Stderr, "--resume goes on") {
			t.Fatalf("exit %d: %s", r.Code, r.Stderr)
		}
	}
	if programtest.Exists("part.npz") {
		t.Error("scores of an interrupted run are there")
	}
	fails(t, "an earlier run was interrupted", args("part.npz")...)
	fails(t, "chunks was", args("part.npz", "--resume", "--ctx", "100")...)
	info, err := os.Stat(model)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{info.ModTime().Add(time.Second), info.ModTime()} {
		if err := os.Chtimes(model, at, at); err != nil {
			t.Fatal(err)
		}
		if !at.Equal(info.ModTime()) {
			fails(t, "model's files was", args("part.npz", "--resume")...)
		}
	}
	programtest.Succeed(t, args("part.npz", "--resume")...)
	for _, ending := range []string{".npz", ".json"} {
		if !bytes.Equal(programtest.ReadFile(t, "part"+ending), programtest.ReadFile(t, "whole"+ending)) {
			t.Errorf("%s differs from that of a run that was not interrupted", ending)
		}
	}
}

// A checkpoint that cannot be written is told with its name, and no scores are written.
func TestCalibrateCheckpointThatCannotBeWritten(t *testing.T) {
	model := trained(t, "dots1-trained-Q8_0.gguf")
	text := head(t, "german.calib.txt", 3000)
	withEngine(t)
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("s.checkpoint/inside", 0o777); err != nil {
		t.Fatal(err)
	}
	r := interruptedAt(t, "measure", 2, "calibrate", "--force", "--threads", "1", "--text", text, "-o", "s.npz", model)
	if !strings.Contains(r.Stderr, "s.checkpoint exists and is not a regular file") || programtest.Exists("s.npz") {
		t.Errorf("exit %d: %s", r.Code, r.Stderr)
	}
}

// A run stops when the two halves agree as far as was asked for, after the same chunks each time.
func TestCalibrateUntilStable(t *testing.T) {
	model := trained(t, "dots1-trained-Q8_0.gguf")
	text := head(t, "german.calib.txt", 20000)
	withEngine(t)
	t.Chdir(t.TempDir())
	for _, out := range []string{"a.npz", "b.npz"} {
		said := programtest.Succeed(t, "calibrate", "--threads", "1", "--text", text, "--keep", "16", "--until-stable", "0.6", "-o", out, model)
		if !strings.Contains(said, "stopped as ") || !strings.Contains(said, "each half's choice keeps") {
			t.Errorf("calibrate says\n%s", said)
		}
	}
	if !bytes.Equal(programtest.ReadFile(t, "a.npz"), programtest.ReadFile(t, "b.npz")) {
		t.Error("two runs stopped at different places")
	}
	var document struct {
		Chunks    int     `json:"chunks"`
		AllChunks int     `json:"all_chunks"`
		Overlap   float64 `json:"overlap"`
		Early     bool    `json:"stopped_early"`
	}
	said := programtest.Succeed(t, "calibrate", "--json", "--threads", "1", "--text", text, "--keep", "16", "--until-stable", "0.8", "-o", "c.npz", model)
	if err := json.Unmarshal([]byte(said), &document); err != nil {
		t.Fatal(err)
	}
	if document.Early != (document.Chunks < document.AllChunks) || document.Early && document.Overlap < 0.8 {
		t.Errorf("calibrate --json says\n%s", said)
	}
}

// Conversations are measured as the chat template spells them, the model's own or one by name.
func TestCalibrateChat(t *testing.T) {
	spec := gguftest.K3(gguftest.K3Options{Experts: 32, Used: 4})
	withEngine(t)
	t.Chdir(t.TempDir())
	programtest.Write(t, spec, gguf.Split{})
	chatty := spec.Clone()
	chatty.Name = "Chatty"
	chatty.Metadata.Set("tokenizer.chat_template", gguf.TextValue("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"))
	programtest.Write(t, chatty, gguf.Split{})
	for name, data := range map[string]string{
		"chat.jsonl": `{"messages": [{"role": "user", "content": "in the end"}, {"role": "assistant", "content": "an error"}]}` + "\n",
		"chat.txt":   "<|im_start|>user\nin the end<|im_end|>\n<|im_start|>assistant\nan error<|im_end|>\n",
	} {
		if err := os.WriteFile(name, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	fails(t, "has no chat template", "calibrate", "--text", "chat.jsonl", "-o", "none.npz", "K3.gguf")
	programtest.Succeed(t, "calibrate", "--threads", "1", "--text", "chat.jsonl", "-o", "own.npz", "Chatty.gguf")
	programtest.Succeed(t, "calibrate", "--threads", "1", "--text", "chat.jsonl", "--template", "chatml", "-o", "named.npz", "K3.gguf")
	programtest.Succeed(t, "calibrate", "--threads", "1", "--text", "chat.txt", "--special", "-o", "plain.npz", "K3.gguf")
	if !bytes.Equal(programtest.ReadFile(t, "own.npz"), programtest.ReadFile(t, "named.npz")) || !bytes.Equal(programtest.ReadFile(t, "named.npz"), programtest.ReadFile(t, "plain.npz")) {
		t.Error("the template and its text give other scores")
	}
	fails(t, "does not know the", "calibrate", "--text", "chat.jsonl", "--template", "no such thing", "-o", "x.npz", "K3.gguf")
}

// What the model writes itself is the same in every run, and is kept.
func TestCalibrateOnSelfWrittenText(t *testing.T) {
	model := trained(t, "dots1-trained-Q8_0.gguf")
	withEngine(t)
	t.Chdir(t.TempDir())
	for _, out := range []string{"a.npz", "b.npz"} {
		said := programtest.Succeed(t, "calibrate", "--threads", "1", "--ctx", "64", "--self-text", "900", "--seed", "3", "-o", out, model)
		if !strings.Contains(said, "self, 900 tokens that the model wrote") {
			t.Errorf("calibrate says\n%s", said)
		}
	}
	if said := programtest.Succeed(t, "plan", "--keep", "16", "--from", "a.json", model); !strings.Contains(said, "text that the model wrote itself was measured") {
		t.Errorf("plan says\n%s", said)
	}
	if !bytes.Equal(programtest.ReadFile(t, "a.npz"), programtest.ReadFile(t, "b.npz")) || !bytes.Equal(programtest.ReadFile(t, "a.self.jsonl"), programtest.ReadFile(t, "b.self.jsonl")) {
		t.Error("two runs with one seed differ")
	}
	programtest.Succeed(t, "calibrate", "--threads", "1", "--ctx", "64", "--self-text", "900", "--seed", "4", "-o", "c.npz", model)
	if bytes.Equal(programtest.ReadFile(t, "a.self.jsonl"), programtest.ReadFile(t, "c.self.jsonl")) {
		t.Error("another seed writes the same text")
	}
	// The tokens can be measured again as they are.
	programtest.Succeed(t, "calibrate", "--threads", "1", "--ctx", "64", "--text", "self=a.self.jsonl", "-o", "again.npz", model)
	if !bytes.Equal(programtest.ReadFile(t, "again.npz"), programtest.ReadFile(t, "a.npz")) {
		t.Error("the text that was kept gives other scores")
	}
}

func TestCalibrateRefuses(t *testing.T) {
	model := trained(t, "dots1-trained-Q8_0.gguf")
	library := enginetest.Folder(t)
	program := enginetest.Program(t)
	t.Chdir(t.TempDir())
	for name, data := range map[string]string{"empty.txt": "", "one.txt": "x", "latin.txt": "gr\xfcn", "bad.jsonl": "{\"text\": \"abc\"}\n[1]\n"} {
		if err := os.WriteFile(name, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	fails(t, "no engine", "calibrate", "--self-text", "100", "-o", "s.npz", model)
	t.Setenv("GGUFREAP_LLAMA_LIB", library)
	t.Setenv(engines.Variable, library)
	fails(t, "a folder: it names the engine program", "calibrate", "--self-text", "100", "-o", "s.npz", model)
	t.Setenv(engines.Variable, program)
	fails(t, "nothing to measure on", "calibrate", "-o", "s.npz", model)
	fails(t, "nothing says where to write", "calibrate", "--self-text", "9", model)
	fails(t, "empty.txt: nothing to measure on: 0 tokens", "calibrate", "--text", "empty.txt", "-o", "s.npz", model)
	fails(t, "one.txt: nothing to measure on: 1 token", "calibrate", "--text", "one.txt", "-o", "s.npz", model)
	fails(t, "byte 2 is not UTF-8", "calibrate", "--text", "latin.txt", "-o", "s.npz", model)
	fails(t, "line 2", "calibrate", "--text", "bad.jsonl", "-o", "s.npz", model)
	fails(t, `error: no device "GPU7": "ggufreap engine" lists`, "calibrate", "--devices", "GPU7", "--self-text", "100", "-o", "s.npz", model)
	fails(t, "have no RPC backend", "calibrate", "--rpc", "localhost:1", "--self-text", "100", "-o", "s.npz", model)
	for flag, want := range map[string]string{"ubatch": "3 to", "threads": "1 to 512", "ctx": "2 to", "self-text": "2 to"} {
		fails(t, "--"+flag+" is 100000000000, want "+want, "calibrate", "--text", "one.txt", "--"+flag, "100000000000", "-o", "s.npz", model)
	}
	fails(t, "want a whole number", "calibrate", "--self-text", "many", "-o", "s.npz", model)
	fails(t, "llama.cpp libraries not found", "calibrate", "--llama-lib", t.TempDir(), "--self-text", "9", "-o", "s.npz", model)

	llama4, err := gguftest.Architecture("llama4", gguftest.ArchitectureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	programtest.Write(t, llama4, gguf.Split{})
	fails(t, "scale the input of the experts", "calibrate", "--self-text", "9", "-o", "s.npz", "llama4.gguf")

	gating := gguftest.K3(gguftest.K3Options{Experts: 64, Used: 4}).Clone()
	gating.Metadata.Set(gating.Metadata.ArchKey("expert_gating_func"), gguf.Uint32Value(99))
	programtest.Write(t, gating, gguf.Split{})
	fails(t, "fatal error", "calibrate", "--threads", "1", "--self-text", "90", "-o", "s.npz", "K3.gguf")
	if left, _ := filepath.Glob("s.*"); len(left) > 0 {
		t.Errorf("files are left: %q", left)
	}
}

func TestEngineSaysWhatIsThere(t *testing.T) {
	fails(t, "no engine", "engine")
	withEngine(t)
	said := programtest.Succeed(t, "engine")
	for _, want := range []string{"llama.cpp       0.5.0", "devices         CPU", "known to work   0.5.0"} {
		if !strings.Contains(said, want) {
			t.Errorf("engine says\n%swant %q", said, want)
		}
	}
	if said := programtest.Succeed(t, "engine", "--json"); !strings.Contains(said, `"schema": "ggufreap/engine/v1"`) {
		t.Errorf("engine --json says\n%s", said)
	}
	fails(t, "llama.cpp libraries not found", "engine", "--llama-lib", t.TempDir())
	t.Setenv("PATH", "")
	t.Setenv(engines.Variable, filepath.Join(t.TempDir(), "nothing"))
	fails(t, "no such file", "engine")
}

// The demo measures where llama.cpp is found.
func TestDemoCalibrates(t *testing.T) {
	withEngine(t)
	t.Chdir(t.TempDir())
	said := programtest.Succeed(t, "demo")
	for _, want := range []string{"$ ggufreap calibrate --self-text 2048", "that the model wrote", "measured on text", "would load it", "nothing found"} {
		if !strings.Contains(said, want) {
			t.Errorf("the demo says\n%swant %q", said, want)
		}
	}
}

// A run that is interrupted while the model writes goes on with the same text, to the same bits.
func TestCalibrateResumedWhileWriting(t *testing.T) {
	model := trained(t, "dots1-trained-Q8_0.gguf")
	withEngine(t)
	t.Chdir(t.TempDir())
	args := func(out string, more ...string) []string {
		return append([]string{"calibrate", "--quiet", "--threads", "1", "--self-text", "1000", "--seed", "8", "-o", out}, append(more, model)...)
	}
	for _, dir := range []string{"whole", "part"} {
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	programtest.Succeed(t, args("whole/s.npz")...)
	r := interruptedAt(t, "write", 3, args("part/s.npz")...)
	if !strings.Contains(r.Stderr, "what the model wrote is in part/s.checkpoint") || !programtest.Exists("part/s.checkpoint") {
		t.Fatalf("exit %d: %s", r.Code, r.Stderr)
	}
	fails(t, "self-written text was", "calibrate", "--resume", "--threads", "1", "--self-text", "1000", "--seed", "9", "-o", "part/s.npz", model)
	programtest.Succeed(t, args("part/s.npz", "--resume")...)
	for _, ending := range []string{".npz", ".json", ".self.jsonl"} {
		if !bytes.Equal(programtest.ReadFile(t, "part/s"+ending), programtest.ReadFile(t, "whole/s"+ending)) {
			t.Errorf("%s differs from that of a run that was not interrupted", ending)
		}
	}
	if programtest.Exists("part/s.checkpoint") {
		t.Error("the checkpoint is left")
	}
}

// With -o - the score document is printed, and nothing is written.
func TestCalibratePrints(t *testing.T) {
	model := trained(t, "dots1-trained-Q8_0.gguf")
	withEngine(t)
	t.Chdir(t.TempDir())
	programtest.Succeed(t, "calibrate", "--threads", "1", "--self-text", "300", "-o", "s.json", model)
	written, err := filepath.Glob("*")
	if err != nil || len(written) != 3 {
		t.Errorf("%q were written (%v)", written, err)
	}
	os.Mkdir("empty", 0o777)
	t.Chdir("empty")
	if said := programtest.Succeed(t, "calibrate", "--threads", "1", "--self-text", "300", "-o", "-", model); said != strings.Replace(string(programtest.ReadFile(t, "../s.json")), `"s.self.jsonl"`, `"self.jsonl"`, 1) {
		t.Errorf("printed:\n%.2000s", said)
	}
	if written, _ := filepath.Glob("*"); len(written) > 0 {
		t.Errorf("%q were written", written)
	}
}

// What cannot be written is told before the model is loaded.
func TestCalibrateChecksItsOutput(t *testing.T) {
	model := trained(t, "dots1-trained-Q8_0.gguf")
	withEngine(t)
	t.Chdir(t.TempDir())
	fails(t, "want a name that ends in .npz or .json", "calibrate", "--self-text", "100", "-o", "t.txt", model)
	fails(t, "leave out --resume and --json", "calibrate", "--self-text", "100", "--json", "-o", "-", model)
	r := programtest.Run(t, "calibrate", "--self-text", "100", "-o", "none/s.npz", model)
	if r.Code != programtest.Failed || !strings.HasPrefix(r.Stderr, "ggufreap: error: writing none/s.npz: no such file") {
		t.Errorf("a folder that is not there: exit %d: %s", r.Code, r.Stderr)
	}
	if err := os.WriteFile("s.self.jsonl", []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	fails(t, "output s.self.jsonl exists", "calibrate", "--self-text", "100", "-o", "s.npz", model)
	for _, path := range []string{"s.json", "s.npz", "s.self.jsonl"} { // what is read is not replaced by force
		if err := os.WriteFile(path, []byte("a text of mine"), 0o666); err != nil {
			t.Fatal(err)
		}
		fails(t, "output "+path+" is the source "+path, "calibrate", "--force", "--self-text", "100", "--text", "x="+path, "-o", "s.npz", model)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if r := programtest.Run(t, "calibrate", "--threads", "1", "--ctx", "300", "--self-text", "40", "-o", "long.npz", model); r.Code != programtest.OK || !strings.Contains(r.Stderr, "--ctx 300 is more than the 256 tokens") {
		t.Errorf("chunks longer than the model was trained on: exit %d: %s", r.Code, r.Stderr)
	}
}
