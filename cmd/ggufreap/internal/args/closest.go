package args

// Closest returns the candidate that differs from word by a slip or two, or "".
func Closest(word string, candidates []string) string {
	best, least := "", 3
	for _, c := range candidates {
		if len(c) < 3 {
			continue // a flag of one letter is near to everything
		}
		if d := editDistance(word, c); d < least && d < len(c)-1 {
			best, least = c, d
		}
	}
	return best
}

// editDistance counts the letters to insert, delete or replace.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
