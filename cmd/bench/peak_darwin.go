package main

// peakUnit is the unit of Rusage.Maxrss in bytes: getrusage(2).
const peakUnit = 1
