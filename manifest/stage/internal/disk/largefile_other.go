//go:build !linux

package disk

// largeFile is nothing here: every file may be large.
const largeFile = 0
