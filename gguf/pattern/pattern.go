// Package pattern has regular expressions that are compiled when they are first used: of those
// that the program knows, which take it longer to compile than many a command runs, one run needs
// few.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy returns a function that compiles expr the first time, and panics where it is none, as
// [regexp.MustCompile] does.
func Lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
