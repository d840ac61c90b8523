// Package portable has the elementary functions that scores are made of, computed so
// that every machine gives the same bits.
//
// Go's math.Exp and math.Log have assembly on some processors and differ from one to
// the next in the last bit; and a compiler may fuse a product with a sum, which rounds
// once in place of twice. Here every function is a fixed sequence of additions,
// multiplications and divisions, which IEEE 754 defines to the last bit, and every
// product that a sum follows is converted to float64, which the Go specification
// says must round it. Of package math only functions that have no rounding of their
// own are used (Floor, Frexp, Ldexp, Inf, NaN, IsNaN) and Sqrt, which IEEE 754 defines.
//
// Error bounds are relative and in units of 2^-53, the rounding of one operation.
package portable

// mulAdd returns a*b + c, rounded twice.
func mulAdd(a, b, c float64) float64 { return float64(a*b) + c }

// polynomial evaluates c[0] + c[1]*x + c[2]*x^2 + ... by Horner's rule.
func polynomial(x float64, c []float64) float64 {
	sum := c[len(c)-1]
	for i := len(c) - 2; i >= 0; i-- {
		sum = mulAdd(sum, x, c[i])
	}
	return sum
}
