package engine

import "fmt"

// A Draft is a text that a model is writing: documents of about the same length, so many side
// by side at a time, each as far as the others. Which token follows in a document depends on the
// document alone, so the text does not depend on how many are side by side, nor on
// interruptions.
type Draft struct {
	Documents [][]int
}

// DocumentLength is how many tokens the i-th of so many documents has, of a text of so many.
func DocumentLength(tokens, documents, i int) int {
	return tokens*(i+1)/documents - tokens*i/documents
}

// Written returns how many tokens there are.
func (d *Draft) Written() int {
	sum := 0
	for _, document := range d.Documents {
		sum += len(document)
	}
	return sum
}

// Add adds what documents got: lists of tokens for those from number first on, counted from 0. A
// first document behind the last is an error.
func (d *Draft) Add(first int, lists [][]int) error {
	if first < 0 || first > len(d.Documents) {
		return fmt.Errorf("%w: document %d, where there are %d", errGarbled, first, len(d.Documents))
	}
	for i, list := range lists {
		if first+i == len(d.Documents) {
			d.Documents = append(d.Documents, nil)
		}
		d.Documents[first+i] = append(d.Documents[first+i], list...)
	}
	return nil
}
