package reap

import "testing"

func TestNewInput(t *testing.T) {
	// The digest of "abc" is the first example of FIPS 180-2.
	want := Input{"abc.txt", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}
	for _, name := range []string{"abc.txt", "testdata/abc.txt", `c:\x\abc.txt`} {
		if got := NewInput(name, []byte("abc")); got != want {
			t.Errorf("%q: %+v", name, got)
		}
	}
}
