package gguf

import "errors"

// MachineFault reports whether an error says that a machine, a disk or a network failed, and
// nothing of the file: too many files are open, memory ran out, a disk or a server cannot be
// read now. The same request may succeed later, or on another machine. A disk without room is
// none: it waits for a person.
//
// Errors of the system are known by their numbers; others say it themselves, by a method
// MachineFault.
func MachineFault(err error) bool {
	for _, fault := range machineFaults {
		if errors.Is(err, fault) {
			return true
		}
	}
	var said interface{ MachineFault() bool }
	return errors.As(err, &said) && said.MachineFault()
}
