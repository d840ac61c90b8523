package scorefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"ggufreap/gguf/pattern"
)

// Limits of an npy array: saliency of the largest models, by source, has some ten million
// elements.
const (
	maxArrayElements = 1 << 25
	maxArrayHeader   = 1 << 16
	maxTextBytes     = 1 << 12 // of one string
	maxTexts         = maxSources
)

// An array is what an npy file holds, in C order: numbers or strings.
type array struct {
	shape  []int // none for a single value
	values []float64
	texts  []string
}

// npyHeader matches the dictionary that numpy writes.
var npyHeader = pattern.Lazy(`^\{'descr': '([<>|=])([a-zA-Z])([0-9]+)', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \}\s*$`)

// readArray reads an npy file (numpy.lib.format, versions 1 to 3) to its end: floats,
// integers and Unicode strings of at most most elements. Memory is taken for as many as
// the header states, within that bound.
func readArray(r io.Reader, most int) (*array, error) {
	var fixed [8]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil || string(fixed[:6]) != "\x93NUMPY" {
		return nil, errors.New("not an npy array")
	}
	header, err := readArrayHeader(r, fixed[6])
	if err != nil {
		return nil, err
	}
	part := npyHeader().FindStringSubmatch(header)
	if part == nil {
		return nil, fmt.Errorf("npy header %.100q is not understood", header)
	}
	if part[4] == "True" {
		return nil, errors.New("npy array in Fortran order, want C order (numpy.ascontiguousarray)")
	}
	a := &array{}
	count, err := a.setShape(part[5], most)
	if err != nil {
		return nil, err
	}
	width, err := strconv.Atoi(part[3])
	if err != nil {
		return nil, fmt.Errorf("npy type %q is not understood", part[2]+part[3])
	}
	if err := a.readElements(r, count, part[1], part[2], width); err != nil {
		return nil, err
	}
	if n, err := io.ReadFull(r, fixed[:1]); n > 0 || err != io.EOF {
		return nil, errors.New("more data than the npy header states")
	}
	return a, nil
}

func readArrayHeader(r io.Reader, version byte) (string, error) {
	var length uint32
	switch version {
	case 1:
		var short uint16
		if err := binary.Read(r, binary.LittleEndian, &short); err != nil {
			return "", err
		}
		length = uint32(short)
	case 2, 3:
		if err := binary.Read(r, binary.LittleEndian, &length); err != nil {
			return "", err
		}
	default:
		return "", fmt.Errorf("npy format version %d, want 1 to 3", version)
	}
	if length > maxArrayHeader {
		return "", fmt.Errorf("npy header of %d bytes, at most %d are read", length, maxArrayHeader)
	}
	header := make([]byte, length)
	_, err := io.ReadFull(r, header)
	return string(header), err
}

// setShape reads a Python tuple of dims and returns the number of elements.
func (a *array) setShape(tuple string, most int) (int, error) {
	count := 1
	for dim := range strings.SplitSeq(strings.TrimSuffix(strings.ReplaceAll(tuple, " ", ""), ","), ",") {
		if dim == "" && len(a.shape) == 0 {
			break // a single value
		}
		n, err := strconv.ParseInt(dim, 10, 64)
		if err != nil || len(a.shape) == 4 {
			return 0, fmt.Errorf("npy shape (%s) is not understood", tuple)
		}
		if n > int64(most) || n > 0 && count > most/int(n) {
			return 0, fmt.Errorf("npy shape (%s) has more than %d elements, the most that are read here", tuple, most)
		}
		count *= int(n)
		a.shape = append(a.shape, int(n))
	}
	return count, nil
}

// readElements reads count elements of a numpy type, such as "<f8": byte order, kind, and
// width in bytes, or in characters for strings.
func (a *array) readElements(r io.Reader, count int, order, kind string, width int) error {
	var decode func(b []byte) error
	size := width
	endian := binary.ByteOrder(binary.LittleEndian)
	if order == ">" {
		endian = binary.BigEndian
	}
	if kind == "U" {
		size = 4 * width // UCS-4, padded with NULs
		switch {
		case count > maxTexts:
			return fmt.Errorf("npy array of %d strings, at most %d are read", count, maxTexts)
		case width > maxTextBytes/4:
			return fmt.Errorf("npy strings of %d characters, at most %d are read", width, maxTextBytes/4)
		}
		decode = func(b []byte) error { return a.addText(b, endian) }
	} else {
		number := numberDecoder(kind, width, endian)
		if number == nil {
			return fmt.Errorf("npy type %q is not read, want floats of 4 or 8 bytes, integers or strings", kind+strconv.Itoa(width))
		}
		a.values = make([]float64, 0, count)
		decode = func(b []byte) error { a.values = append(a.values, number(b)); return nil }
	}
	element := make([]byte, size)
	for i := range count {
		if _, err := io.ReadFull(r, element); err != nil {
			return fmt.Errorf("npy array ends at element %d of %d", i, count)
		}
		if err := decode(element); err != nil {
			return err
		}
	}
	return nil
}

// numberDecoder returns a function that reads one number, nil for a type that is not read.
func numberDecoder(kind string, width int, endian binary.ByteOrder) func(b []byte) float64 {
	switch kind + strconv.Itoa(width) {
	case "f4":
		return func(b []byte) float64 { return float64(math.Float32frombits(endian.Uint32(b))) }
	case "f8":
		return func(b []byte) float64 { return math.Float64frombits(endian.Uint64(b)) }
	case "i1":
		return func(b []byte) float64 { return float64(int8(b[0])) }
	case "i2":
		return func(b []byte) float64 { return float64(int16(endian.Uint16(b))) }
	case "i4":
		return func(b []byte) float64 { return float64(int32(endian.Uint32(b))) }
	case "i8":
		return func(b []byte) float64 { return float64(int64(endian.Uint64(b))) }
	case "u1", "b1":
		return func(b []byte) float64 { return float64(b[0]) }
	case "u2":
		return func(b []byte) float64 { return float64(endian.Uint16(b)) }
	case "u4":
		return func(b []byte) float64 { return float64(endian.Uint32(b)) }
	case "u8":
		return func(b []byte) float64 { return float64(endian.Uint64(b)) }
	}
	return nil
}

func (a *array) addText(b []byte, endian binary.ByteOrder) error {
	var text strings.Builder
	for ; len(b) > 0; b = b[4:] {
		r := endian.Uint32(b)
		if r > utf8.MaxRune || !utf8.ValidRune(rune(r)) {
			return fmt.Errorf("npy string holds %#x, which is no character", r)
		}
		if r != 0 {
			text.WriteRune(rune(r))
		}
	}
	a.texts = append(a.texts, text.String())
	return nil
}

// whole returns the elements as whole numbers from 0 up.
func (a *array) whole() ([]int, error) {
	list := make([]int, len(a.values))
	for i, x := range a.values {
		if x != math.Trunc(x) || x < 0 || x >= min(1<<53, math.MaxInt) {
			return nil, fmt.Errorf("element %d is %v, want a whole number", i, x)
		}
		list[i] = int(x)
	}
	return list, nil
}
