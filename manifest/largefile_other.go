//go:build !linux

package manifest

// largeFile is nothing here: every file may be large.
const largeFile = 0
