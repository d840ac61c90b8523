package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A frame is
//
//	4 bytes  "GRE" and the version of the protocol, a digit
//	u32      length of the JSON
//	u64      length of the data
//	         the JSON: a [Request] or a [Reply]
//	         the data
//	u32      CRC-32C of both
//	4 bytes  "end\n"
//
// with little-endian numbers. What is printed into the stream by mistake is no frame, and so
// is a frame that was cut off.
const (
	frameMark = "GRE2"
	frameEnd  = "end\n"
)

// Bounds of a frame: text comes as data, sums of the largest models have 10 MB.
const (
	maxJSON = 16 << 20
	maxData = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writeFrame writes a message and its data.
func writeFrame(w io.Writer, message any, data []byte) error {
	frame, err := layOut(message, data)
	if err != nil {
		return err
	}
	return writeParts(w, frame)
}

// layOut returns the parts of a frame.
func layOut(message any, data []byte) ([][]byte, error) {
	text, err := json.Marshal(message, jsontext.AllowInvalidUTF8(true)) // llama.cpp's words can be anything
	if err != nil {
		return nil, err
	}
	if len(text) > maxJSON || len(data) > maxData {
		return nil, fmt.Errorf("message of %d and %d bytes, at most %d and %d can be sent", len(text), len(data), maxJSON, maxData)
	}
	head := append([]byte(frameMark), make([]byte, 12)...)
	binary.LittleEndian.PutUint32(head[4:], uint32(len(text)))
	binary.LittleEndian.PutUint64(head[8:], uint64(len(data)))
	sum := crc32.Update(crc32.Checksum(text, castagnoli), castagnoli, data)
	tail := append(binary.LittleEndian.AppendUint32(nil, sum), frameEnd...)
	return [][]byte{append(head, text...), data, tail}, nil
}

func writeParts(w io.Writer, parts [][]byte) error {
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// errGarbled is what is said of bytes that are no frame.
var errGarbled = errors.New("garbled message")

// readFrame reads a message into to, and returns its data. The error is io.EOF at the end of
// the stream between two frames.
func readFrame(r io.Reader, to any) ([]byte, error) {
	var head [16]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if err == io.ErrUnexpectedEOF {
			return nil, fmt.Errorf("%w: it ends in its head", errGarbled)
		}
		return nil, err
	}
	if mark := string(head[:4]); mark != frameMark {
		if mark[:3] == frameMark[:3] {
			return nil, fmt.Errorf("%w: protocol version %q, want %q: the two programs are of different versions", errGarbled, mark[3:], frameMark[3:])
		}
		return nil, fmt.Errorf("%w: it begins with %q", errGarbled, head[:])
	}
	textSize, dataSize := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint64(head[8:])
	if textSize > maxJSON || dataSize > maxData {
		return nil, fmt.Errorf("%w: %d and %d bytes", errGarbled, textSize, dataSize)
	}
	text, err := readPart(r, int64(textSize))
	if err != nil {
		return nil, err
	}
	data, err := readPart(r, int64(dataSize))
	if err != nil {
		return nil, err
	}
	tail, err := readPart(r, 8)
	if err != nil {
		return nil, err
	}
	if sum := crc32.Update(crc32.Checksum(text, castagnoli), castagnoli, data); binary.LittleEndian.Uint32(tail) != sum || string(tail[4:]) != frameEnd {
		return nil, fmt.Errorf("%w: its sum or its end is wrong", errGarbled)
	}
	if err := json.Unmarshal(text, to); err != nil {
		return nil, fmt.Errorf("%w: %w", errGarbled, err)
	}
	return data, nil
}

// readPart reads n bytes, taking memory as they come.
func readPart(r io.Reader, n int64) ([]byte, error) {
	const first = 1 << 20
	data := make([]byte, 0, min(n, first))
	for int64(len(data)) < n {
		at := len(data)
		data = append(data, make([]byte, min(n-int64(at), int64(max(at, first))))...)
		if _, err := io.ReadFull(r, data[at:]); err != nil {
			return nil, fmt.Errorf("%w: it ends after %d bytes of a part of %d", errGarbled, at, n)
		}
	}
	return data, nil
}
