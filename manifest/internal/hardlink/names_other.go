//go:build !(darwin || linux)

// Package hardlink tells files that have several names.
package hardlink

import "io/fs"

// Names returns how many names a file has, as far as is known here.
func Names(fs.FileInfo) int { return 1 }
