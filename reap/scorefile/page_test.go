package scorefile

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every example of a score file on the page for users is one.
func TestExamplesOnThePageAreRead(t *testing.T) {
	page, err := os.ReadFile("../SELECTION.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```(csv|json)\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(examples) != 4 {
		t.Fatalf("%d examples, want 4", len(examples))
	}
	for _, example := range examples {
		m, err := Read(strings.NewReader(example[2]), int64(len(example[2])), model())
		if err != nil {
			t.Errorf("%v in\n%s", err, example[2])
			continue
		}
		if m.Layers[1].Count[2] != 51 {
			t.Errorf("expert 2 of layer 1 has %v tokens, want 51, in\n%s", m.Layers[1].Count[2], example[2])
		}
	}
}
