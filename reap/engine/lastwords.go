package engine

import (
	"regexp"
	"strings"
	"sync"
)

// lastWords keeps what the engine wrote to its stderr, within bounds: the lines before Go's
// dump of its own state, which a fatal signal begins.
type lastWords struct {
	mu      sync.Mutex
	kept    []string
	partial string
	dump    bool
}

const (
	keptLines = 40
	lineBytes = 2000
)

func newLastWords() *lastWords { return &lastWords{} }

// Write takes what the engine wrote.
func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := string(p); rest != ""; {
		line, after, whole := strings.Cut(rest, "\n")
		if len(l.partial) < lineBytes {
			l.partial += line[:min(len(line), lineBytes-len(l.partial))]
		}
		rest = after
		if whole {
			l.add(l.partial)
			l.partial = ""
		}
	}
	return len(p), nil
}

func (l *lastWords) add(line string) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "goroutine ") || strings.HasPrefix(line, "PC=") || line == "SIGABRT: abort" {
		l.dump = true
	}
	if line == "" || l.dump {
		return
	}
	l.kept = append(l.kept, line)
	if len(l.kept) > keptLines {
		l.kept = l.kept[1:]
	}
}

// lines returns what was kept.
func (l *lastWords) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.partial != "" {
		l.add(l.partial)
		l.partial = ""
	}
	return append([]string(nil), l.kept...)
}

// causes mark the line in which a process that ends says why: ggml's assertions, C++, Go, and the
// engine itself.
var causes = []string{"GGML_ASSERT", "fatal error", "what():", "panic:", "error while loading shared libraries", "unexpected fault address", "ggufreap-engine: "}

// sourcePath matches the folder of a source file, on the machine that built the library.
var sourcePath = regexp.MustCompile(`^/\S*/([^/\s]+:[0-9]+: )`)

// cause returns the last such line, "" when there is none.
func (l *lastWords) cause() string {
	lines := l.lines()
	for i := len(lines) - 1; i >= 0; i-- {
		for _, mark := range causes {
			if strings.Contains(lines[i], mark) {
				return sourcePath.ReplaceAllString(lines[i], "$1")
			}
		}
	}
	return ""
}
