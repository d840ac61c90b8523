package main

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"ggufreap/gguf"
)

// TestKeyTooLong has a text, and one in a list, that are longer than what is printed.
func TestKeyTooLong(t *testing.T) {
	t.Chdir(t.TempDir())
	const size = 70 << 20
	word := func(n uint64, size int) []byte { return binary.LittleEndian.AppendUint64(nil, n)[:size] }
	pair := func(key string, parts ...[]byte) []byte {
		b := append(word(uint64(len(key)), 8), key...)
		for _, part := range parts {
			b = append(b, part...)
		}
		return b
	}
	begin := append([]byte("GGUF"), append(word(3, 4), append(word(0, 8), word(1, 8)...)...)...)
	for name, tc := range map[string]struct {
		pair []byte
		want string
	}{
		"text.gguf": {pair("general.name", word(uint64(gguf.Text), 4), word(size, 8)),
			`text.gguf: key "general.name": a string of 73,400,320 bytes, at most 67,108,856 can be printed`},
		"list.gguf": {pair("general.name", word(uint64(gguf.Array), 4), word(uint64(gguf.Text), 4), word(1, 8), word(size, 8)),
			`list.gguf: key "general.name": item 0 of the list has 73,400,328 bytes, at most 67,108,864 can be printed`},
	} {
		writeFile(t, name, append(begin, tc.pair...))
		if err := os.Truncate(name, int64(len(begin)+len(tc.pair)+size)); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"inspect", "--key", "general.name", name}, {"inspect", "--json", "--key", "general.name", name}} {
			if r := ggufreap(t, args...); r != (result{"", "ggufreap: error: " + tc.want + "\n", exitFailed}) {
				t.Errorf("%q gives %+v", args, r)
			}
		}
	}
	r := ggufreap(t, "inspect", "text.gguf")
	if want := `key "general.name": is a text of 73,400,320 bytes, too long to be shown`; !strings.Contains(r.stdout, want) {
		t.Errorf("%q is missing in\n%s", want, r.stdout)
	}
}

// TestKeys lists keys, and prints the bytes of one as they stand in the file.
func TestKeys(t *testing.T) {
	t.Chdir(t.TempDir())
	template := "[{% x %}\n\x1b\"\\x1b\xff"
	write(t, with(smallMoE(), func(md *gguf.Metadata) {
		md.Set("test.template", gguf.TextValue(template))
		md.Set("test.list", gguf.TextsValue("a", "\"a\"", "b\nc", "\x1b", `\x1b`))
		md.Set("test.number", gguf.Uint16Value(0x1234))
	}), gguf.Split{})
	if got := succeed(t, "inspect", "--key", "test.template", "--raw", "small.gguf"); got != template {
		t.Errorf("--raw prints %q, want %q", got, template)
	}
	if got := succeed(t, "inspect", "--key", "test.number", "--raw", "small.gguf"); got != "\x34\x12" {
		t.Errorf("--raw prints %q", got)
	}
	if got, want := succeed(t, "inspect", "--key", "test.list", "small.gguf"), "a\n\"\\\"a\\\"\"\n\"b\\nc\"\n\"\\u001b\"\n\\x1b\n"; got != want {
		t.Errorf("the list is printed as\n%swant\n%s", got, want)
	}
	got := succeed(t, "inspect", "--keys", "--prefix", "test.", "small.gguf")
	for _, want := range []string{"test.template  str ", "test.list      str[] ", "test.number    u16"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if lines := strings.Count(got, "\n"); lines != 4 {
		t.Errorf("%d lines:\n%s", lines, got)
	}
	refuse(t, "--raw is for the value of --key", "inspect", "--raw", "small.gguf")
	refuse(t, "--prefix is for the list of --keys", "inspect", "--prefix", "x", "small.gguf")
	refuse(t, "leave out the other flags", "inspect", "--keys", "--tensors", "small.gguf")
}
