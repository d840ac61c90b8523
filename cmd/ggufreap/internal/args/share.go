package args

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Experts reads how many of a number of experts are meant: a count, or a share such as "75%",
// of which parts of an expert are left out, and more of them until multiple divides what is
// left. A count is taken as it is.
func Experts(s string, of, multiple int) (n int, share bool, err error) {
	percent, share := strings.CutSuffix(s, "%")
	if !share {
		n, err = strconv.Atoi(s)
		if err != nil {
			err = fmt.Errorf("%q is no number of experts, nor a share such as 75%%", s)
		}
		return n, false, err
	}
	part, ok := new(big.Rat).SetString(percent)
	if !ok || strings.ContainsAny(percent, "/eEpPxX_+-") || part.Sign() <= 0 || part.Cmp(big.NewRat(100, 1)) > 0 {
		return 0, true, fmt.Errorf("%q is no share: above 0%% and at most 100%%", s)
	}
	part.Mul(part, big.NewRat(int64(of), 100))
	n = int(new(big.Int).Quo(part.Num(), part.Denom()).Int64())
	return n - n%multiple, true, nil
}
