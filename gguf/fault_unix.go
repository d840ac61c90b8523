//go:build unix

package gguf

import "syscall"

// machineFaults are the numbers of the system's errors: of files and memory, of processes and
// locks, and of network file systems and networks.
var machineFaults = []error{
	syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS,
	syscall.EAGAIN, syscall.EINTR, syscall.ENOLCK,
	syscall.ESTALE, syscall.ETIMEDOUT, syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.ENETDOWN,
	syscall.ENETUNREACH, syscall.ENETRESET, syscall.ECONNREFUSED, syscall.ECONNRESET,
	syscall.ECONNABORTED, syscall.ENOTCONN, syscall.ESHUTDOWN,
}
