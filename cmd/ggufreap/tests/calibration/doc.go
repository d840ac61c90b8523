// Package calibration runs what the program does with an engine: it measures experts on texts,
// and asks llama.cpp whether it would load a model.
package calibration
