package enginetest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// begun is the folder of the package that is tested: a test may have left it.
var begun, _ = os.Getwd()

// A Build is a program of the project that tests run, built at the first need.
type Build struct {
	Package string

	once sync.Once
	path string
	err  error
}

// Path returns where the program is, in a folder of this process.
func (b *Build) Path(t testing.TB) string {
	t.Helper()
	b.once.Do(func() { b.path, b.err = build(b.Package) })
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.path
}

// Remove removes the program. A TestMain calls it at the end.
func (b *Build) Remove() {
	if b.path != "" {
		os.RemoveAll(filepath.Dir(b.path))
	}
}

// folderVariable names the folder that a process copies a program to.
const folderVariable = "GGUFREAP_TEST_BUILD"

// build has the go command run a program, which it links once for all packages that are tested
// and keeps: what it runs is this test program, which copies the other one.
func build(pkg string) (path string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "ggufreap-test")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "run", "-exec", "'"+self+"'", pkg)
	cmd.Dir = begun
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", folderVariable+"="+dir)
	if _, err := exec.LookPath("git"); err == nil { // state the revision, as go build does
		cmd.Env = append(cmd.Env, "GOFLAGS=-buildvcs=true "+os.Getenv("GOFLAGS"))
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		os.RemoveAll(dir)
		return "", fmt.Errorf("%w\n%s", err, stderr.String())
	}
	return string(out), nil
}

func init() {
	dir := os.Getenv(folderVariable)
	if dir == "" {
		return
	}
	path := filepath.Join(dir, filepath.Base(os.Args[1]))
	if err := copyProgram(path, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(path)
	os.Exit(0)
}

func copyProgram(to, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	program, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o777)
	if err != nil {
		return err
	}
	if _, err := io.Copy(program, source); err != nil {
		program.Close()
		return err
	}
	return program.Close()
}
