package parts

import (
	"fmt"
	"strings"
)

// Array writes numbers in ascending order as job schedulers read them: "3,7-9".
func Array(numbers []int) string {
	var words []string
	for i := 0; i < len(numbers); {
		end := i
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		switch {
		case end == i:
			words = append(words, fmt.Sprint(numbers[i]))
		default:
			words = append(words, fmt.Sprintf("%d-%d", numbers[i], numbers[end]))
		}
		i = end + 1
	}
	return strings.Join(words, ",")
}
