// Package picture draws scores, plans and sizes as SVG and PNG, and small ones as letters for
// terminals ([Sketch]).
//
// A [Picture] comes with the table of the numbers that it shows, for those who cannot see it
// and for those who want to know exactly. The same numbers give the same bytes on every
// machine: what a picture shows is computed without fused operations, and every coordinate is
// put on a grid before it is drawn.
//
// Pictures are drawn by gonum.org/v1/plot. The package knows no files and no pages.
package picture
