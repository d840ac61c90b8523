package portable

import (
	"math"
	"math/big"
	"testing"
)

// In these tests truth is computed in math/big by other methods than the package's.

const precision = 160

func number(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }

// bigExp returns e^x: the Taylor series of x/2^k, squared k times.
func bigExp(x *big.Float) *big.Float {
	const halvings = 32
	prec := x.Prec() + 2*halvings
	r := new(big.Float).SetPrec(prec).Set(x)
	k := max(r.MantExp(nil), 0) + halvings
	r.SetMantExp(r, -k)
	sum := new(big.Float).SetPrec(prec).SetInt64(1)
	term := new(big.Float).SetPrec(prec).SetInt64(1)
	for n := int64(1); term.Sign() != 0 && term.MantExp(nil) > -int(prec); n++ {
		term.Mul(term, r)
		term.Quo(term, new(big.Float).SetInt64(n))
		sum.Add(sum, term)
	}
	for range k {
		sum.Mul(sum, sum)
	}
	return sum.SetPrec(x.Prec())
}

// bigTail returns the normal tail beyond x by the Maclaurin series of its complement,
// with as many bits as its cancellation needs.
func bigTail(x float64) *big.Float {
	prec := uint(precision + 3*x*x)
	set := func(f float64) *big.Float { return new(big.Float).SetPrec(prec).SetFloat64(f) }
	square := set(x)
	square.Mul(square, square)
	term, sum := set(x), set(x)
	for n := 1; term.Sign() != 0 && term.MantExp(nil) > -int(prec); n++ {
		// term is (-1)^n x^(2n+1) / (2^n n!), to be divided by 2n+1
		term.Mul(term, square)
		term.Quo(term, set(float64(-2*n)))
		sum.Add(sum, new(big.Float).SetPrec(prec).Quo(term, set(float64(2*n+1))))
	}
	sum.Quo(sum, bigRootTwoPi(prec))
	return sum.Sub(set(0.5), sum)
}

// bigRootTwoPi returns sqrt(2*pi), pi by Machin's formula 16*atan(1/5) - 4*atan(1/239).
func bigRootTwoPi(prec uint) *big.Float {
	set := func(n int64) *big.Float { return new(big.Float).SetPrec(prec + 32).SetInt64(n) }
	atan := func(q int64) *big.Float { // of 1/q
		sum, power := set(0), new(big.Float).SetPrec(prec+32).Quo(set(1), set(q))
		for n := int64(1); power.MantExp(nil) > -int(prec)-32; n += 2 {
			term := set(0).Quo(power, set(n))
			if n%4 == 3 {
				term.Neg(term)
			}
			sum.Add(sum, term)
			power.Quo(power, set(q*q))
		}
		return sum
	}
	pi := set(0).Sub(set(0).Mul(set(16), atan(5)), set(0).Mul(set(4), atan(239)))
	return set(0).SetPrec(prec).Sqrt(pi.Mul(pi, set(2)))
}

// bigTruncatedSigmoid integrates sigmoid(s*z)*density(z) from a up with the trapezoidal
// rule after the substitution z = a + e^(t - e^-t), which makes its error exponentially
// small in 1/step (H. Takahasi, M. Mori: Double exponential formulas, 1974).
func bigTruncatedSigmoid(s, a float64) *big.Float {
	step := 1.0 / 32
	if s*a < -1 { // the sigmoid's poles are near
		step = 1.0 / 256
	}
	sum := number(0)
	for t := -6.0; t < 5; t += step {
		fall := bigExp(number(-t))
		shift := bigExp(number(0).Sub(number(t), fall))
		z := number(0).Add(number(a), shift)
		square := number(0).Mul(z, z)
		density := bigExp(square.Quo(square, number(-2)))
		exponent := number(0).Mul(z, number(-s))
		slope := shift.Mul(shift, number(0).Add(number(1), fall)) // dz/dt
		term := density.Mul(density, slope)
		sum.Add(sum, term.Quo(term, number(0).Add(number(1), bigExp(exponent))))
	}
	sum.Mul(sum, number(step))
	return sum.Quo(sum, bigRootTwoPi(precision))
}

// units is the relative difference of got from want in units of 2^-53.
func units(got float64, want *big.Float) float64 {
	difference := number(got)
	difference.Sub(difference, want)
	if difference.Sign() == 0 {
		return 0
	}
	relative, _ := difference.Quo(difference, want).Float64()
	return math.Abs(relative) * 0x1p53
}

func TestExp(t *testing.T) {
	worst, at := 0.0, 0.0
	for i := range 4000 {
		x := 1400*spread(i) - 699 // normal results
		if i%2 == 0 {
			x = 4*spread(i) - 2
		}
		if u := units(Exp(x), bigExp(number(x))); u > worst {
			worst, at = u, x
		}
	}
	t.Logf("Exp: %.2f units at %v", worst, at)
	if worst > 2 {
		t.Errorf("Exp(%v) is %.2f units off, want at most 2", at, worst)
	}
	for i := range 200 {
		x := -745.1 + 36.7*spread(i) // subnormal results
		want, _ := bigExp(number(x)).Float64()
		if got := Exp(x); math.Abs(got-want) > 0x1p-1074 {
			t.Errorf("Exp(%v) is %v, want %v", x, got, want)
		}
	}
}

func TestLog(t *testing.T) {
	worst, at := 0.0, 0.0
	for i := range 3000 {
		x := math.Ldexp(1+spread(i), i%2000-1000)
		switch i % 3 {
		case 0:
			x = 1 + (spread(i)-0.5)/8
		case 1:
			x = 4 * spread(i)
		}
		y := Log(x)
		// log x = y + log(x/e^y), and the last is d - d^2/2 for small d.
		d := number(0).Quo(number(x), bigExp(number(y)))
		d.Sub(d, number(1))
		half := number(0).Mul(d, d)
		want := d.Sub(d, half.Quo(half, number(2)))
		want.Add(want, number(y))
		if u := units(y, want); u > worst {
			worst, at = u, x
		}
	}
	t.Logf("Log: %.2f units at %v", worst, at)
	if worst > 4 {
		t.Errorf("Log(%v) is %.2f units off, want at most 4", at, worst)
	}
}

func TestNormalTail(t *testing.T) {
	worst, at := 0.0, 0.0
	check := func(x float64) {
		if u := units(NormalTail(x), bigTail(x)) - x*x/2; u > worst {
			worst, at = u, x
		}
	}
	for i := range 150 {
		check(37.5 * spread(i))
		check(3 * spread(i))
	}
	for _, x := range []float64{0, 0x1p-60, 1e-8, 1.4999999999999998, 1.5, 1.5000000000000002, 2, 37.5} {
		check(x)
		if got, want := NormalTail(-x), 1-NormalTail(x); got != want {
			t.Errorf("NormalTail(%v) is %v, want %v", -x, got, want)
		}
	}
	t.Logf("NormalTail: x^2/2 + %.2f units at %v", worst, at)
	if worst > 40 {
		t.Errorf("NormalTail(%v) is %.2f units off beyond x^2/2, want at most 40", at, worst)
	}
}

func TestTruncatedSigmoid(t *testing.T) {
	worst, at, deviation := 0.0, 0.0, 0.0
	for _, s := range []float64{0, 1e-9, 0.05, 0.5, 1, 2.5, 8} {
		for _, a := range []float64{-6, -1.5, -0.25, 0, 1e-9, 0.3, 1, 1.5, 2.125, 4, 9, 30} {
			u := units(TruncatedSigmoid(s, a), bigTruncatedSigmoid(s, a))
			if a > 0 {
				u -= a * a / 2
			}
			if u > worst {
				worst, at, deviation = u, a, s
			}
		}
	}
	t.Logf("TruncatedSigmoid: %.2f units beyond a^2/2 at s %v, a %v", worst, deviation, at)
	if worst > 100 {
		t.Errorf("TruncatedSigmoid(%v, %v) is %.2f units off beyond a^2/2, want at most 100", deviation, at, worst)
	}
}

// logUnits is how far y is from the logarithm of f, in units of 2^-53.
func logUnits(y float64, f *big.Float) float64 {
	d := number(0).Quo(f, bigExp(number(y))) // log f = y + log(f/e^y)
	d.Sub(d, number(1))
	off, _ := d.Float64()
	return math.Abs(off) * 0x1p53
}

func TestLogNormalTail(t *testing.T) {
	worst, at := 0.0, 0.0
	for i, x := range []float64{-9, -1, -1e-9, 0, 1e-9, 0.5, 1.4999999999999998, 1.5, 2, 9, 37.5, 38.5, 39, 40, 55, 90} {
		if u := logUnits(LogNormalTail(x), bigTail(x)) - max(x, 0)*max(x, 0); i == 0 || u > worst {
			worst, at = u, x
		}
	}
	t.Logf("LogNormalTail: x^2 + %.2f units at %v", worst, at)
	if worst > 60 {
		t.Errorf("LogNormalTail(%v) is %.2f units off beyond x^2, want at most 60", at, worst)
	}
}

func TestLogTruncatedSigmoid(t *testing.T) {
	worst, at, deviation := 0.0, 0.0, 0.0
	for _, s := range []float64{0, 1e-9, 0.05, 1, 8} {
		for _, a := range []float64{-6, -0.25, 0, 0.3, 1.5, 9, 38.5, 39.5, 80, 700} {
			u := logUnits(LogTruncatedSigmoid(s, a), bigTruncatedSigmoid(s, a)) - max(a, 0)*max(a, 0)
			if u > worst {
				worst, at, deviation = u, a, s
			}
		}
	}
	t.Logf("LogTruncatedSigmoid: a^2 + %.2f units at s %v, a %v", worst, deviation, at)
	if worst > 120 {
		t.Errorf("LogTruncatedSigmoid(%v, %v) is %.2f units off beyond a^2, want at most 120", deviation, at, worst)
	}
}

// spread returns numbers in [0,1) that fill it evenly: multiples of the golden ratio. The
// product is converted, since Modf subtracts from it.
func spread(i int) float64 {
	_, f := math.Modf(float64(float64(i) * 0.6180339887498949))
	return f
}
