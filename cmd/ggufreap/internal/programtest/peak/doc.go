// Package peak has a test program run another one and note the most memory that it had. It does
// so before other packages are initialized, some of which take longer than the program that is
// measured: packages are initialized by their names as soon as what they import is, and this one
// imports nothing but os, strconv and syscall.
package peak

// Variable names the file that the peak is written to.
const Variable = "GGUFREAP_TEST_PEAK"
