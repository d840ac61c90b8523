package calibration

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"ggufreap/cmd/ggufreap/internal/engines"
	"ggufreap/cmd/ggufreap/internal/programtest"
)

// What a stand-in for the engine needs to know: the engine's program, and the request at which it
// interrupts the program that asks.
const (
	engineVariable  = "GGUFREAP_TEST_STAND_IN_FOR"
	requestVariable = "GGUFREAP_TEST_INTERRUPT_AT"
)

// interruptedAt runs the program with a stand-in for the engine, which interrupts it instead of
// passing on its nth request of a kind: at one moment, however fast or busy the machine is.
func interruptedAt(t *testing.T, op string, nth int, args ...string) programtest.Result {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(programtest.Path(t), args...)
	cmd.Env = append(os.Environ(), engineVariable+"="+os.Getenv(engines.Variable), engines.Variable+"="+self,
		fmt.Sprintf("%s=%s %d", requestVariable, op, nth))
	r := programtest.RunCommand(t, cmd)
	if r.Code == programtest.OK {
		t.Fatalf("%q came to its end, without %s number %d", args, op, nth)
	}
	return r
}

// standIn is what a copy of the test program does that was started as the engine: it passes
// requests on to it, until one of them is that which it waits for.
func standIn(program string) error {
	var op string
	var nth int
	if _, err := fmt.Sscan(os.Getenv(requestVariable), &op, &nth); err != nil {
		return err
	}
	cmd := exec.Command(program, os.Args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for n := 0; ; {
		frame, asks, err := request(os.Stdin)
		if err != nil {
			in.Close()
			return cmd.Wait()
		}
		if asks == op {
			n++
		}
		if n == nth {
			break
		}
		if _, err := in.Write(frame); err != nil {
			return err
		}
	}
	parent, err := os.FindProcess(os.Getppid())
	if err != nil {
		return err
	}
	if err := parent.Signal(os.Interrupt); err != nil {
		return err
	}
	time.Sleep(time.Minute) // the parent ends this process
	return fmt.Errorf("the program did not end its engine")
}

// request reads a request, as package engine lays it out, and returns what it asks for. An engine
// that is to write answers at once, where it would write for a second.
func request(r io.Reader) (frame []byte, op string, err error) {
	head := make([]byte, 16)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, "", err
	}
	text := int(binary.LittleEndian.Uint32(head[4:]))
	body := make([]byte, text+int(binary.LittleEndian.Uint64(head[8:])))
	tail := make([]byte, 8)
	for _, part := range [][]byte{body, tail} {
		if _, err := io.ReadFull(r, part); err != nil {
			return nil, "", err
		}
	}
	var message struct{ Op string }
	if err := json.Unmarshal(body[:text], &message); err != nil {
		return nil, "", err
	}
	copy(body, bytes.Replace(body[:text], []byte(`"Seconds":1`), []byte(`"Seconds":0`), 1))
	binary.LittleEndian.PutUint32(tail, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
	return bytes.Join([][]byte{head, body, tail}, nil), message.Op, nil
}
