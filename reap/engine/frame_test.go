package engine

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
)

func frame(t testing.TB, message any, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := writeFrame(&b, message, data); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFrame(t *testing.T) {
	data := bytes.Repeat([]byte("data"), 1<<19)
	whole := frame(t, &Request{Op: OpMeasure, Lengths: []int{1, 2}}, data)
	r := bytes.NewReader(append(whole, whole...))
	for range 2 {
		var got Request
		back, err := readFrame(r, &got)
		if err != nil || !bytes.Equal(back, data) || got.Op != OpMeasure || len(got.Lengths) != 2 {
			t.Fatalf("read %+v and %d bytes: %v", got, len(back), err)
		}
	}
	if _, err := readFrame(r, &Request{}); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// A frame that is cut anywhere, or with any bit changed, is not taken for a message.
func TestGarbledFrames(t *testing.T) {
	whole := frame(t, &Request{Op: OpTokenize}, []byte("some text"))
	for n := 1; n < len(whole); n++ {
		if _, err := readFrame(bytes.NewReader(whole[:n]), &Request{}); !errors.Is(err, errGarbled) {
			t.Errorf("cut after %d bytes: %v", n, err)
		}
	}
	for i := range whole {
		for bit := range 8 {
			changed := bytes.Clone(whole)
			changed[i] ^= 1 << bit
			if _, err := readFrame(bytes.NewReader(changed), &Request{}); !errors.Is(err, errGarbled) {
				t.Errorf("bit %d of byte %d changed: %v", bit, i, err)
			}
		}
	}
}

func FuzzFrame(f *testing.F) {
	f.Add(frame(f, &Reply{Error: "x"}, []byte{1, 2, 3}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var reply Reply
		readFrame(bytes.NewReader(b), &reply)
	})
}

func TestLastWords(t *testing.T) {
	l := newLastWords()
	for range 3 * keptLines {
		l.Write([]byte("loading a ten"))
		l.Write([]byte("sor\n"))
	}
	l.Write([]byte("/src/graph.cpp:2003: fatal error\nSIGABRT: abort\nPC=0x1\n\ngoroutine 1:\nmain.main()\nfatal error: again"))
	lines := l.lines()
	if len(lines) != keptLines || lines[keptLines-1] != "/src/graph.cpp:2003: fatal error" || l.cause() != "graph.cpp:2003: fatal error" {
		t.Errorf("%d lines, the last %q, the cause %q", len(lines), lines[len(lines)-1], l.cause())
	}
	l = newLastWords()
	l.Write(bytes.Repeat([]byte("x"), 10*lineBytes))
	if n := len(l.lines()[0]); n != lineBytes {
		t.Errorf("a line of %d bytes is kept", n)
	}
}

// What is asked for comes through as it is, in all its fields.
func TestRequestsOverFrames(t *testing.T) {
	sent := Request{OpWrite, "path", 1, &OpenOptions{Threads: 2, TensorSplit: []float32{0.5}, Devices: []string{"x"}, RPC: []string{"y"}}, true, "template",
		[]Message{{"user", "hello"}}, &Measure{1, map[int]int{3: 4}, 5, 6, 7}, &Write{true, 1 << 63, 2, 3, 4, 0.25}, []int{8}}
	var got Request
	if _, err := readFrame(bytes.NewReader(frame(t, &sent, nil)), &got); err != nil || !reflect.DeepEqual(got, sent) {
		t.Errorf("%+v became %+v: %v", sent, got, err)
	}
}
