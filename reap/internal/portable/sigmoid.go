package portable

import "math"

// TruncatedSigmoid returns E[sigmoid(s*Z); Z > a], the mean of the logistic function of a
// normal variable of deviation s >= 0 over the part above s*a, for standard normal Z.
// It is within a^2/2 + 100 units for a >= 0 and within 100 units below, as long as it is
// a normal number.
//
// For a >= 0 the geometric series of the sigmoid gives, with M the Mills ratio,
//
//	density(a) * sum_n (-1)^n e^(-n*s*a) M(a + n*s)
//
// whose terms are the moments of a positive measure, so that the sum of the first terms
// with fixed weights (H. Cohen, F. Rodriguez Villegas, D. Zagier: Convergence
// acceleration of alternating series, 2000, algorithm 1) has a bounded error. Below 0,
// since sigmoid(u) + sigmoid(-u) = 1, it is 1/2 - P(Z > -a) + E[sigmoid(s*Z); Z > -a].
func TruncatedSigmoid(s, a float64) float64 {
	switch {
	case math.IsNaN(s) || math.IsNaN(a) || s < 0 || math.IsInf(s, 1):
		return math.NaN()
	case a < 0:
		return 0.5 - (NormalTail(-a) - TruncatedSigmoid(s, -a))
	case a > 39:
		return 0
	}
	return float64(density(a) * truncatedRatio(s, a))
}

// LogTruncatedSigmoid returns the logarithm of [TruncatedSigmoid], which does not underflow.
// Its error is at most a^2 + 120 units of 2^-53, absolute, for a >= 0, and 120 such units below.
func LogTruncatedSigmoid(s, a float64) float64 {
	if !(s >= 0) || !(a >= 0) || math.IsInf(s, 1) {
		return Log(TruncatedSigmoid(s, a))
	}
	if math.IsInf(a, 1) {
		return -a
	}
	return logDensity(a) + Log(truncatedRatio(s, a))
}

// truncatedRatio returns the truncated sigmoid over the density at a, for finite a >= 0.
func truncatedRatio(s, a float64) float64 {
	ratio := Exp(-float64(s * a))
	power, sum := 1.0, 0.0
	for n, weight := range alternatingWeights {
		sum += float64(float64(weight*power) * millsRatio(mulAdd(float64(n), s, a)))
		power = float64(power * ratio)
	}
	return sum
}

// alternatingTerms is the number of terms taken of an alternating series; the error is
// below 2/(3+sqrt(8))^21 of the sum, which is 2^-52.4. It is the greatest number for which
// the weights are ratios of whole numbers below 2^53.
const alternatingTerms = 21

// alternatingWeights are the weights of the terms, with their signs.
var alternatingWeights = func() (weights [alternatingTerms]float64) {
	const n = alternatingTerms
	d, next := int64(1), int64(3) // d = ((3+sqrt(8))^n + (3-sqrt(8))^n) / 2
	for range n {
		d, next = next, 6*next-d
	}
	b, c := int64(-1), -d
	for k := range int64(n) {
		c = b - c
		weights[k] = float64(c) / float64(d)
		b = b * 2 * (k + n) * (k - n) / ((2*k + 1) * (k + 1))
	}
	return weights
}()
