package main

import "os"

// endBy does nothing: no process of this system ends by a signal.
func endBy(os.Signal) {}
