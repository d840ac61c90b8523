// Package text writes names, numbers and sizes for people. It knows what a terminal would act
// on and spells it out, how many columns a text takes and where it may be broken, and how
// sizes are written and read. It knows no terminal: it is told widths and returns strings.
package text
