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

// allLines bounds how many are kept when lines for information are.
const allLines = 1000

// lastLog holds the library's latest warnings and errors. Nothing is printed.
var lastLog logTail

type logTail struct {
	mu    sync.Mutex
	lines []string
	keep  bool          // whether the last line was kept, for the pieces that continue it
	least yzma.LogLevel // lines below it are left out; warnings are kept when 0
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
	if level != yzma.LogLevelContinue {
		l.keep = level >= l.least && l.least > 0 || level >= yzma.LogLevelWarn
		if l.keep {
			l.lines = append(l.lines, "")
		}
	}
	if !l.keep {
		return
	}
	l.lines[len(l.lines)-1] += text
	most := logLines
	if l.least > 0 {
		most = allLines
	}
	if len(l.lines) > most {
		l.lines = l.lines[len(l.lines)-most:]
	}
}

// all begins to keep what is for information too, until the next reset.
func (l *logTail) all() {
	l.reset()
	l.mu.Lock()
	l.least = yzma.LogLevelInfo
	l.mu.Unlock()
}

func (l *logTail) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines, l.keep, l.least = nil, false, 0
}

// latest returns the lines that are not empty.
func (l *logTail) latest() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for _, line := range l.lines {
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
