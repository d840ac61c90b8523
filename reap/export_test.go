package reap

// JudgedCount is for tests outside of the package.
func JudgedCount() int { return len(judged) }
