package portable

import "math"

// logSeries are 2/3, 2/5, ... 2/23: the series of (log((1+s)/(1-s)) - 2s) / s^3 in s^2.
// For |s| up to 3-2*sqrt(2) what is cut off is below 2^-58.
var logSeries = []float64{
	2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15,
	2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23,
}

// Log returns the natural logarithm of x, within 4 units: -Inf for 0 and NaN below.
func Log(x float64) float64 {
	switch {
	case math.IsNaN(x) || x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	case math.IsInf(x, 1):
		return x
	}
	fraction, exponent := math.Frexp(x) // in [1/2, 1)
	if fraction < math.Sqrt2/2 {
		fraction, exponent = 2*fraction, exponent-1
	}
	f := fraction - 1 // exact
	s := f / (2 + f)
	square := float64(s * s)
	// log(1+f) = 2s + s^3*series, and 2s = f - s*f
	series := float64(float64(square*s) * polynomial(square, logSeries))
	small := f - (float64(s*f) - series)
	k := float64(exponent)
	return float64(k*ln2Upper) + (float64(k*ln2Lower) + small)
}
