package llama

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
	yzma "github.com/hybridgroup/yzma/pkg/llama"
)

// logLines bounds how many of the library's last lines an error quotes.
const logLines = 20

// toldLines bounds how many lines for information are kept.
const toldLines = 1000

// lastLog holds the library's latest lines. Nothing is printed.
var lastLog logTail

type logTail struct {
	mu    sync.Mutex
	lines []string // warnings and errors
	told  []string // lines for information
	last  *[]string
}

// captureLog sends everything that the library logs to lastLog.
func captureLog() {
	yzma.LogSet(purego.NewCallback(func(level int32, text *byte, _ uintptr) uintptr {
		lastLog.add(yzma.LogLevel(level), cString(text))
		return 0
	}))
}

func (l *logTail) add(level yzma.LogLevel, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case level == yzma.LogLevelContinue: // the line before goes on
	case level >= yzma.LogLevelWarn:
		l.last = startLine(&l.lines, logLines)
	case level == yzma.LogLevelInfo:
		l.last = startLine(&l.told, toldLines)
	default:
		l.last = nil
	}
	if l.last != nil && len(*l.last) > 0 {
		(*l.last)[len(*l.last)-1] += text
	}
}

// startLine adds an empty line to a list of at most so many.
func startLine(list *[]string, most int) *[]string {
	*list = append(*list, "")
	if len(*list) > most {
		*list = (*list)[len(*list)-most:]
	}
	return list
}

func (l *logTail) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines, l.told, l.last = nil, nil, nil
}

// latest returns the warnings and errors that are not empty.
func (l *logTail) latest() []string { return l.copy(&l.lines) }

// information returns the lines for information.
func (l *logTail) information() []string { return l.copy(&l.told) }

func (l *logTail) copy(list *[]string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for _, line := range *list {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// annotate adds the library's own words to an error about what it was asked to do.
func (l *logTail) annotate(format string, args ...any) error {
	msg := fmt.Sprintf(format, args...)
	for _, line := range l.latest() {
		msg += "\n\t" + line
	}
	return errors.New(msg)
}

func cString(p *byte) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}
