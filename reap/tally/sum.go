package tally

import (
	"math"
	"math/bits"
)

// A Sum adds numbers from 0 up exactly, so that their order does not matter: it is a whole
// number of units of 2^-128 in 192 bits, and holds sums below 2^64. Numbers from 2^-75 up
// are added without any loss, smaller ones are cut to whole units. The zero Sum is 0.
type Sum struct{ words [3]uint64 } // the least significant first

const (
	sumWords = 3
	unitBits = 128 // a unit is 2^-unitBits
	mantissa = 52  // bits of a float64's fraction
)

// Add adds x. It reports false, and leaves the sum as it is, for a number that is negative
// or not finite and for a sum that would be 2^64 or more.
func (s *Sum) Add(x float64) bool {
	b := math.Float64bits(x)
	exponent := int(b >> mantissa)
	if exponent >= 0x7ff {
		return x == 0 // negative zero; any other sign bit, infinity and NaN are not added
	}
	fraction := b & (1<<mantissa - 1)
	if exponent == 0 {
		exponent = 1
	} else {
		fraction |= 1 << mantissa
	}
	var t Sum // x in units
	switch shift := exponent - 1075 + unitBits; {
	case shift <= -64:
	case shift < 0:
		t.words[0] = fraction >> -shift
	case shift+mantissa+1 > 64*sumWords:
		return false
	default:
		at, by := shift/64, uint(shift%64)
		t.words[at] = fraction << by
		if at+1 < sumWords {
			t.words[at+1] = fraction >> (64 - by)
		}
	}
	return s.AddSum(t)
}

// AddSum adds another sum. It reports false, and leaves s as it is, when the result would
// be 2^64 or more.
func (s *Sum) AddSum(t Sum) bool {
	var carry uint64
	sum := *s
	for i := range sum.words {
		sum.words[i], carry = bits.Add64(sum.words[i], t.words[i], carry)
	}
	if carry != 0 {
		return false
	}
	*s = sum
	return true
}

// Float64 returns the nearest float64, the even one of two that are equally near.
func (s Sum) Float64() float64 {
	top := sumWords - 1
	for top >= 0 && s.words[top] == 0 {
		top--
	}
	if top < 0 {
		return 0
	}
	lead := uint(bits.LeadingZeros64(s.words[top]))
	head := s.words[top] << lead // the 64 bits from the highest one down
	var rest uint64              // what follows them
	if top > 0 {
		head |= s.words[top-1] >> (64 - lead)
		rest = s.words[top-1] << lead
	}
	for i := range max(top-1, 0) {
		rest |= s.words[i]
	}
	if rest != 0 {
		head |= 1 // far below what is rounded to: it only settles which side of a half
	}
	return math.Ldexp(float64(head), 64*top-int(lead)-unitBits)
}
