package lists

import (
	"fmt"
	"testing"
)

// TestUUID has the namespace's own uuid and others as Python's uuid.uuid5 makes them.
func TestUUID(t *testing.T) {
	for data, want := range map[string]string{
		"":                        "6b2748e2363e58259e7ad9b30f33ac5b",
		"abc":                     "9f2200fc45e85a399535c3ea5c0e0cef",
		"the data of all tensors": "ff73e3546fc55748a4e8dd537d391d7b",
	} {
		u := newUUID()
		for range 2 {
			u.Write([]byte(data))
			if got := fmt.Sprintf("%x", u.Sum(nil)); got != want {
				t.Errorf("%q: %s, want %s", data, got, want)
			}
			u.Reset()
		}
		if u.Size() != len(want)/2 {
			t.Errorf("size %d", u.Size())
		}
	}
}
