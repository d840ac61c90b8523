package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

// The collector's settings.
const (
	firstCollection  = 32 << 20  // bytes of memory before the first one
	collectorPercent = 40        // GOGC from then on
	memoryGoal       = 104 << 20 // GOMEMLIMIT from then on
	connectionGoal   = 4 << 20   // and of each connection: a range on its way, and one that waits
)

// goal is the memory limit from the first collection on, 0 where the collector is not tuned.
var goal atomic.Int64

// tuneCollector lets the memory of a small task be: reading the largest headers leaves
// little garbage, and most commands end before there is a first collection. Behind it
// memory counts more than time, so that a small file full of oddities takes less than
// 64 MiB, and large models what the program promises. GOGC and GOMEMLIMIT turn this off.
func tuneCollector() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	goal.Store(memoryGoal)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(firstCollection)
	first := new([16]byte) // goes at the first collection
	runtime.AddCleanup(first, func(struct{}) {
		debug.SetGCPercent(collectorPercent)
		debug.SetMemoryLimit(goal.Load())
	}, struct{}{})
}

// expectConnections makes room for what so many connections hold: with less the collector
// would run all the time.
func expectConnections(n int) {
	was := goal.Load()
	if was == 0 {
		return
	}
	goal.Store(memoryGoal + int64(n)*connectionGoal)
	if debug.SetMemoryLimit(-1) == was { // the first collection is over
		debug.SetMemoryLimit(goal.Load())
	}
}
