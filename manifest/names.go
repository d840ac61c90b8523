package manifest

import (
	"fmt"
	"iter"
	"slices"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
)

// NameWarnings returns a warning of the tensors, and one of the keys, for whose names no
// digest is defined.
func NameWarnings(m *gguf.Model) []gguf.Problem {
	list := unnamableTensors(m)
	if key, fault := firstFault(slices.Values(m.Metadata().Keys()), "keys"); fault != "" {
		list = append(list, gguf.Problem{Where: fmt.Sprintf("%s: key %q", m.Files[0].Name, key), What: fault})
	}
	return list
}

func unnamableTensors(m *gguf.Model) []gguf.Problem {
	name, fault := firstFault(func(yield func(string) bool) {
		for _, t := range m.Tensors() {
			if !yield(t.Name) {
				return
			}
		}
	}, "tensors")
	if fault == "" {
		return nil
	}
	where := fmt.Sprintf("%s: tensor %q", m.Tensor(name).File().Name, name)
	return []gguf.Problem{{Where: where, What: fault, Tensor: name}}
}

// firstFault returns the first name for which no digest is defined, says why, and how
// many of the nouns have such names. The fault is "" when none has.
func firstFault(names iter.Seq[string], nouns string) (first, fault string) {
	faulty := 0
	for name := range names {
		if controlAt(name) < 0 {
			continue
		}
		if faulty++; faulty == 1 {
			first, fault = name, "the name has "+lineFault(name)
		}
	}
	if faulty > 1 {
		fault += fmt.Sprintf("; %s %s have such names", words.Group(faulty), nouns)
	}
	return first, fault
}

// checkNames returns an error when there are warnings of names.
func checkNames(unnamable []gguf.Problem) error {
	if len(unnamable) == 0 {
		return nil
	}
	return &NameError{unnamable[0].Where + ": " + unnamable[0].What}
}

// CheckNames returns a [NameError] when no digest is defined for a model that holds what
// the layout does: a tensor name or key has a control character.
func CheckNames(layout *gguf.Layout) error {
	for i, shard := range layout.Shards {
		for _, v := range shard.Views {
			if err := checkLineName("tensor", v.Name); err != nil {
				return &NameError{err.Error()}
			}
		}
		if i > 0 {
			continue // the metadata of a model is that of its first shard
		}
		for key := range shard.Metadata.All() {
			if err := checkLineName("key", key); err != nil {
				return &NameError{err.Error()}
			}
		}
	}
	return nil
}

// A NameError says which name of a model is in the way of a digest.
type NameError struct{ what string }

func (e *NameError) Error() string { return e.what }

// checkLineName refuses a name that could end its line or its field, or sort
// differently as part of a line than alone.
func checkLineName(kind, name string) error {
	if controlAt(name) < 0 {
		return nil
	}
	return fmt.Errorf("%s name %q has %s", kind, name, lineFault(name))
}

// controlAt returns the place of the first control character in a name, -1 if there is
// none.
func controlAt(name string) int {
	for i := range len(name) {
		if name[i] < ' ' {
			return i
		}
	}
	return -1
}

// lineFault says what in a name, which has a control character, no digest is defined for.
func lineFault(name string) string {
	i := controlAt(name)
	return fmt.Sprintf("the control character %q, so no digest is defined for it", name[i:i+1])
}
