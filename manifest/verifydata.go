package manifest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// readData compares the bytes of the listed files with their sums, and takes the
// weights digest where one is expected. Each file is read once.
func (v *verifier) readData(ctx context.Context) error {
	if v.options.Fast {
		v.report.gap("data was not read", "whether any byte behind the headers is what it should be")
		return nil
	}
	known, err := v.readWeights(ctx)
	if err != nil {
		return err
	}
	return v.checkSums(ctx, known)
}

// readWeights pins the main model when its weights digest is expected, and returns the
// sums of its files, by path.
func (v *verifier) readWeights(ctx context.Context) (map[string]Sum, error) {
	wanted := slices.ContainsFunc(v.options.Expect, func(e Expectation) bool { return e.Key == weightsKey })
	m := v.main()
	if !wanted || m == nil || m.Err() != nil {
		return nil, nil
	}
	pin, err := BuildPin(ctx, m, BuildOptions{Workers: v.options.Workers, Progress: v.options.Progress})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		v.report.find(KindUnreadable, "", err.Error())
		return nil, nil
	}
	v.weights = pin.WeightsDigest
	known := map[string]Sum{}
	for i, path := range m.Paths() {
		known[filepath.Clean(path)] = pin.Files[i].SHA256
	}
	return known, nil
}

// checkSums compares every listed file that is there. Sums that are known already are
// not taken again.
func (v *verifier) checkSums(ctx context.Context, known map[string]Sum) error {
	if !v.hasList {
		return nil
	}
	sums := make([]Sum, len(v.listed))
	faults := make([]error, len(v.listed))
	var todo []int
	var total int64
	for i, s := range v.listed {
		sum, ok := known[v.path(s.Name)]
		if ok {
			sums[i] = sum
			continue
		}
		todo = append(todo, i)
		if info, err := os.Stat(v.path(s.Name)); err == nil {
			total += info.Size()
		}
	}
	count := newMeter(total, v.options.Progress)
	err := forEach(ctx, len(todo), v.options.Workers, func(ctx context.Context, i int, buf []byte) error {
		at := todo[i]
		sums[at], _, faults[at] = sumFile(ctx, v.path(v.listed[at].Name), buf, count)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	v.reportSums(sums, faults)
	return nil
}

func (v *verifier) reportSums(sums []Sum, faults []error) {
	same := 0
	for i, s := range v.listed {
		switch {
		case faults[i] != nil:
			v.report.find(KindUnreadable, s.Name, faults[i].Error())
		case sums[i] != s.SHA256:
			v.report.find(KindDigest, s.Name, fmt.Sprintf("sha256 is %s, %s says %s", sums[i], SumsName, s.SHA256))
		default:
			same++
		}
	}
	v.report.checked(fmt.Sprintf("sums: %d of %d files have the bytes that %s lists", same, len(v.listed), SumsName))
}
