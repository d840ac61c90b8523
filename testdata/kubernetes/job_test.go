package kubernetes

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// text returns the file of a name that the page shows.
func text(t *testing.T, name string) []byte {
	t.Helper()
	page, err := os.ReadFile("../../cmd/ggufreap/CLUSTER.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml " + regexp.QuoteMeta(name) + "\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatalf("the page has no %s", name)
	}
	return block[1]
}

// job decodes a Job. A field that Kubernetes does not know is an error.
func job(t *testing.T, name string) *batchv1.Job {
	t.Helper()
	j := &batchv1.Job{}
	if err := yaml.UnmarshalStrict(text(t, name), j); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if j.APIVersion != "batch/v1" || j.Kind != "Job" || j.Name == "" {
		t.Errorf("%s: is %s %s %q", name, j.APIVersion, j.Kind, j.Name)
	}
	return j
}

// TestMisspelt shows that the decoder is strict: every field's name, misspelt, is refused.
func TestMisspelt(t *testing.T) {
	for _, name := range []string{"prune.yaml", "assemble.yaml"} {
		data := text(t, name)
		for _, m := range regexp.MustCompile(`(?m)^[ -]*([a-zA-Z]+):`).FindAllSubmatchIndex(data, -1) {
			wrong := bytes.Join([][]byte{data[:m[3]], data[m[3]:]}, []byte("x"))
			if err := yaml.UnmarshalStrict(wrong, &batchv1.Job{}); err == nil {
				t.Errorf("%s: %sx is taken", name, data[m[2]:m[3]])
			}
		}
	}
}

// TestPolicies holds the Jobs to the rules of Kubernetes that no type tells.
func TestPolicies(t *testing.T) {
	prune := job(t, "prune.yaml").Spec
	if prune.CompletionMode == nil || *prune.CompletionMode != batchv1.IndexedCompletion || prune.Completions == nil || prune.BackoffLimitPerIndex == nil {
		t.Fatal("prune.yaml: limits of each index are for an Indexed Job with a number of completions")
	}
	if prune.MaxFailedIndexes == nil || *prune.MaxFailedIndexes > *prune.Completions {
		t.Error("prune.yaml: more indexes may fail than there are")
	}
	for name, want := range map[string]batchv1.PodFailurePolicyAction{"prune.yaml": batchv1.PodFailurePolicyActionFailIndex, "assemble.yaml": batchv1.PodFailurePolicyActionFailJob} {
		spec := job(t, name).Spec
		if spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
			t.Errorf("%s: a policy for failed pods needs restartPolicy Never", name)
		}
		rule := spec.PodFailurePolicy.Rules[0]
		codes := rule.OnExitCodes
		if rule.Action != want || codes.Operator != batchv1.PodFailurePolicyOnExitCodesOpIn || fmt.Sprint(codes.Values) != "[1 2]" {
			t.Errorf("%s: the policy is %+v of %+v, want %s of 1 and 2, which no other try mends", name, rule, codes, want)
		}
		if codes.ContainerName == nil || *codes.ContainerName != spec.Template.Spec.Containers[0].Name {
			t.Errorf("%s: the policy is for another container", name)
		}
		mount, volume := spec.Template.Spec.Containers[0].VolumeMounts[0], spec.Template.Spec.Volumes[0]
		if mount.Name != volume.Name || spec.Template.Spec.Containers[0].WorkingDir != mount.MountPath {
			t.Errorf("%s: the container does not work in the folder of the volume", name)
		}
	}
}

// TestIndexes runs the command of the Indexed Job once for each index, in any order and some
// twice, and that of the join: the release is that of one run.
func TestIndexes(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "ggufreap")
	run := func(in string, env []string, words ...string) {
		t.Helper()
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir, cmd.Env = in, append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", words, err, out)
		}
	}
	run("../..", []string{"CGO_ENABLED=0"}, "go", "build", "-o", program, "./cmd/ggufreap")
	run("../..", nil, "go", "run", "./gguf/gguftest/mkmodel", "-hidden", "256", "-latent", "256", "-width", "256", "-layers", "3", "-shards", "9", filepath.Join(dir, "K3"))
	run(dir, nil, program, "plan", "--preset", "reap568", "-o", "plan.json", "K3")
	run(dir, nil, program, "prune", "-q", "--plan", "plan.json", "-o", "whole", "K3")

	prune, join := job(t, "prune.yaml").Spec, job(t, "assemble.yaml").Spec
	n := int(*prune.Completions)
	command := prune.Template.Spec.Containers[0].Command
	if !strings.Contains(strings.Join(command, " "), fmt.Sprintf("--only auto/%d ", n)) {
		t.Errorf("%q is not one of %d", command, n)
	}
	for _, index := range append(rand.Perm(n), rand.IntN(n)) {
		run(dir, []string{fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index)}, append([]string{program}, command[1:]...)...)
	}
	run(dir, nil, append([]string{program}, join.Template.Spec.Containers[0].Command[1:]...)...)
	run(dir, nil, "diff", "-r", "whole", "K3-REAP568")
}
