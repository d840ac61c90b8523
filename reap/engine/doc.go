// Package engine speaks with ggufreap-engine, the program that holds llama.cpp.
//
// llama.cpp can end its process: by an assertion, by running out of memory, by a fault in a
// driver. So it runs in a child, and whatever happens to the child is an error here, with
// llama.cpp's own reason where it gave one. The two speak in frames (frame.go) over the
// child's stdin and stdout: one request at a time, answered by any number of signs of life
// and one reply. The child ends when its stdin does, and so with its parent.
//
// This package needs nothing of llama.cpp.
package engine
