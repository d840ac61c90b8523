package gguf

import "syscall"

// machineFaults are the numbers of Windows' errors, as in winerror.h, and of its sockets.
var machineFaults = []error{
	syscall.Errno(4),    // ERROR_TOO_MANY_OPEN_FILES
	syscall.Errno(8),    // ERROR_NOT_ENOUGH_MEMORY
	syscall.Errno(14),   // ERROR_OUTOFMEMORY
	syscall.Errno(21),   // ERROR_NOT_READY
	syscall.Errno(23),   // ERROR_CRC
	syscall.Errno(32),   // ERROR_SHARING_VIOLATION
	syscall.Errno(33),   // ERROR_LOCK_VIOLATION
	syscall.Errno(51),   // ERROR_REM_NOT_LIST
	syscall.Errno(54),   // ERROR_NETWORK_BUSY
	syscall.Errno(55),   // ERROR_DEV_NOT_EXIST
	syscall.Errno(59),   // ERROR_UNEXP_NET_ERR
	syscall.Errno(64),   // ERROR_NETNAME_DELETED
	syscall.Errno(121),  // ERROR_SEM_TIMEOUT
	syscall.Errno(1117), // ERROR_IO_DEVICE
	syscall.Errno(1450), // ERROR_NO_SYSTEM_RESOURCES
	syscall.Errno(1455), // ERROR_COMMITMENT_LIMIT
	syscall.WSAECONNABORTED, syscall.WSAECONNRESET,
	syscall.Errno(10050), // WSAENETDOWN
	syscall.Errno(10051), // WSAENETUNREACH
	syscall.Errno(10055), // WSAENOBUFS
	syscall.Errno(10060), // WSAETIMEDOUT
	syscall.Errno(10061), // WSAECONNREFUSED
	syscall.Errno(10065), // WSAEHOSTUNREACH
}
