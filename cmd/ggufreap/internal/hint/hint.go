// Package hint lets an error say what the user can do about it: a hint is what to type next,
// and is printed on a line of its own behind the error.
package hint

import (
	"errors"
	"fmt"
)

// A hinted error comes with what the user can do about it.
type hinted struct {
	err  error
	hint string
}

func (e hinted) Error() string { return e.err.Error() }

func (e hinted) Unwrap() error { return e.err }

// With adds a hint to an error; nil stays nil.
func With(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return hinted{err, fmt.Sprintf(format, args...)}
}

// Of returns the hint of an error, or "".
func Of(err error) string {
	var h hinted
	if errors.As(err, &h) {
		return h.hint
	}
	return ""
}

// Without returns an error without the hint that was added to it last.
func Without(err error) error {
	if h, ok := err.(hinted); ok {
		return h.err
	}
	return err
}
