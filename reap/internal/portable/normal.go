package portable

import "math"

const (
	rootTwoPi    = 2.50662827463100050241576528481104525 // sqrt(2*pi)
	logRootTwoPi = 0.91893853320467274178032973640561764 // log(sqrt(2*pi))
	rootHalfPi   = 1.25331413731550025120788264240552263 // sqrt(pi/2)
)

// density returns the density of the standard normal distribution at x, within
// x^2/2 + 4 units.
func density(x float64) float64 { return Exp(-float64(x*x)/2) / rootTwoPi }

// millsRatio returns the tail beyond x over the density at x, for x >= 0: within 36 units.
//
// It is sqrt(pi/2)*e^(x^2/2) less the series sum_n x^(2n+1)/(2n+1)!! where x is small,
// and Laplace's continued fraction 1/(x + 1/(x + 2/(x + 3/(x + ...)))) elsewhere.
func millsRatio(x float64) float64 {
	square := float64(x * x)
	if x < 1.5 {
		term, sum := x, x
		for n := 3.0; term > float64(sum*0x1p-60); n += 2 {
			term = float64(term*square) / n
			sum += term
		}
		return float64(rootHalfPi*Exp(square/2)) - sum
	}
	// The number of steps at which what is cut off is below 2^-54, found by trial.
	steps := math.Floor(410/square) + 10
	tail := x
	for n := steps; n >= 1; n-- {
		tail = x + n/tail
	}
	return 1 / tail
}

// NormalTail returns the probability that a standard normal variable exceeds x, within
// x^2/2 + 40 units as long as it is a normal number: up to x = 37.5.
func NormalTail(x float64) float64 {
	switch {
	case math.IsNaN(x):
		return x
	case x < 0:
		return 1 - NormalTail(-x)
	case x > 39:
		return 0
	}
	return float64(density(x) * millsRatio(x))
}

// LogNormalTail returns the logarithm of [NormalTail], which does not underflow. Its error is
// at most x^2 + 60 units of 2^-53, absolute, for x >= 0, and 60 such units below.
func LogNormalTail(x float64) float64 {
	if math.IsNaN(x) || x < 0 {
		return Log(NormalTail(x))
	}
	return logDensity(x) + Log(millsRatio(x))
}

// logDensity returns the logarithm of the density of the standard normal distribution.
func logDensity(x float64) float64 { return -float64(float64(x*x)/2) - logRootTwoPi }
