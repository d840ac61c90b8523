package reap

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The page for users states every criterion as the program does.
func TestSelectionPageNamesTheCriteria(t *testing.T) {
	page, err := os.ReadFile("SELECTION.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Criteria {
		row := fmt.Sprintf("| `%s` | %s | `%s` | %s |\n", c.Name, c.Evidence, strings.ReplaceAll(c.Formula, "|", `\|`), c.Meaning)
		if !strings.Contains(string(page), row) {
			t.Errorf("SELECTION.md lacks the row\n%s", row)
		}
	}
	for _, rule := range DraftRules[2:] { // those that a user can ask for
		if !strings.Contains(string(page), "`"+rule+"`") && !strings.Contains(string(page), "`--draft-layers "+rule+"`") {
			t.Errorf("SELECTION.md lacks the rule %q for draft layers", rule)
		}
	}
}
