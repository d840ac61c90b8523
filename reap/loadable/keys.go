package loadable

import (
	"fmt"
	"slices"
	"strings"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
)

// A keyRule is a key that llama.cpp reads under the architecture, and the one type of value
// that it takes.
type keyRule struct {
	suffix   string
	typ      gguf.ValueType
	required bool
}

// commonKeys are read for every architecture (llama_model_base::load_hparams).
var commonKeys = []keyRule{
	{"context_length", gguf.Uint32, true},
	{"embedding_length", gguf.Uint32, true},
	{"block_count", gguf.Uint32, true},
	{"embedding_length_out", gguf.Uint32, false},
	{"attention.causal", gguf.Bool, false},
	{"pooling_type", gguf.Uint32, false},
	{"expert_count", gguf.Uint32, false},
	{"expert_group_count", gguf.Uint32, false},
	{"expert_group_used_count", gguf.Uint32, false},
	{"nextn_predict_layers", gguf.Uint32, false},
	{"rope.scaling.finetuned", gguf.Bool, false},
	{"rope.scaling.original_context_length", gguf.Uint32, false},
	{"rope.freq_base", gguf.Float32, false},
	{"rope.scaling.type", gguf.Text, false},
	{"rope.scaling.factor", gguf.Float32, false},
	{"rope.scaling.attn_factor", gguf.Float32, false},
	{"rope.scaling.alpha", gguf.Float32, false},
	{"attention.key_length_swa", gguf.Uint32, false},
	{"attention.value_length_swa", gguf.Uint32, false},
	{"rope.dimension_count_swa", gguf.Uint32, false},
}

// headKeys are read besides where the first block has attention heads.
var headKeys = []keyRule{
	{"attention.key_length", gguf.Uint32, false},
	{"attention.value_length", gguf.Uint32, false},
	{"rope.dimension_count", gguf.Uint32, false},
}

// checkPairs looks for pairs that no file of llama.cpp may have, in any shard
// (gguf_init_from_reader).
func (c *check) checkPairs() {
	for _, f := range c.m.Files {
		for key, v := range f.Metadata.All() {
			place := fmt.Sprintf("%s: key %q", f.Name, key)
			switch {
			case key == "":
				c.refuse(place, "has no name, llama.cpp loads no file with such a key")
			case v.Type() == gguf.Array && v.Elem() == gguf.Array:
				c.refuse(place, "is a list of lists, llama.cpp loads no file with one")
			}
		}
	}
}

// checkKeys looks at the keys that every architecture has.
func (c *check) checkKeys() {
	if !c.known() || c.draftAlone() {
		return
	}
	for _, k := range commonKeys {
		c.read(k)
	}
	if c.perBlock("attention.head_count")(0) > 0 {
		for _, k := range headKeys {
			c.read(k)
		}
	}
	if c.noVocabulary() {
		c.read(keyRule{"vocab_size", gguf.Uint32, false})
	}
	if c.blocks == 0 && c.keys[c.md.ArchKey("block_count")] {
		c.refuse(c.keyPlace(c.md.ArchKey("block_count")), "is %s, llama.cpp wants 1 to %d", c.value("block_count").Describe(), maxBlocks)
	}
	if v, there := c.md.Get("general.name"); there && v.Type() != gguf.Text {
		c.refuse(c.keyPlace("general.name"), "is %s, llama.cpp reads a text only", v.TypeName())
	}
	if v, there := c.md.Get("general.file_type"); there && v.Type() != gguf.Uint32 {
		c.refuse(c.keyPlace("general.file_type"), "is %s, llama.cpp reads u32 only", v.TypeName())
	}
	c.checkListOf("classifier.output_labels", gguf.Text)
	c.checkScaling()
	c.checkDrafts()
	c.checkExpertCounts()
}

// scalings are the ways to stretch the rotation over longer texts.
var scalings = []string{"none", "linear", "yarn", "longrope"}

func (c *check) checkScaling() {
	if _, there := c.md.Arch("rope.scaling.factor"); !there { // the older key counts then
		c.read(keyRule{"rope.scale_linear", gguf.Float32, false})
	}
	if way, ok := c.value("rope.scaling.type").Text(); ok && !slices.Contains(scalings, way) {
		c.refuse(c.keyPlace(c.md.ArchKey("rope.scaling.type")), "is %.60q, llama.cpp wants one of %s", way, strings.Join(scalings, ", "))
	}
}

// checkDrafts wants no more layers for drafting than there are layers.
func (c *check) checkDrafts() {
	if drafts := c.number("nextn_predict_layers"); c.blocks > 0 && drafts > uint64(c.blocks) {
		c.refuse(c.keyPlace(c.md.ArchKey("nextn_predict_layers")), "is %d, of %d layers altogether", drafts, c.blocks)
	}
}

// checkExpertCounts holds the counts of experts against each other (load_hparams).
func (c *check) checkExpertCounts() {
	count, groups, grouped := c.number("expert_count"), c.number("expert_group_count"), c.number("expert_group_used_count")
	used := slices.Max(append([]uint64{0}, c.numbers("expert_used_count")...))
	place := c.keyPlace(c.md.ArchKey("expert_used_count"))
	switch {
	case used > count:
		c.refuse(place, "%s used of %d", words.Count(used, "expert"), count)
	case count > 0 && used == 0:
		c.refuse(place, "no experts used of %d", count)
	}
	place = c.keyPlace(c.md.ArchKey("expert_group_count"))
	switch {
	case groups > 0 && groups >= count:
		c.refuse(place, "%s of %d experts, llama.cpp wants more experts than groups", words.Count(groups, "group"), count)
	case groups > 1 && count%groups != 0:
		c.refuse(place, "%d groups, which %d experts do not divide into", groups, count)
	case groups > 1 && (grouped == 0 || grouped >= groups):
		c.refuse(c.keyPlace(c.md.ArchKey("expert_group_used_count")), "%s used of %d, llama.cpp wants 1 at least and fewer than all", words.Count(grouped, "group"), groups)
	}
}

// read looks at one key and returns its value when it is there and sound.
func (c *check) read(k keyRule) (gguf.Value, bool) {
	key := c.md.ArchKey(k.suffix)
	v, there := c.md.Get(key)
	sound, seen := c.keys[key]
	if !seen || sound && !there && k.required { // an architecture may need what others may have
		sound = !there && !k.required || there && v.Type() == k.typ
		c.note(key, sound)
		switch {
		case sound:
		case !there:
			c.refuse(c.keyPlace(key), "is not there, llama.cpp does not load %s without it", c.arch)
		default:
			c.refuse(c.keyPlace(key), "is %s, llama.cpp reads %s only", v.TypeName(), k.typ)
		}
	}
	return v, there && sound
}

// value returns the value of a key under the architecture, or none.
func (c *check) value(suffix string) gguf.Value {
	v, _ := c.md.Arch(suffix)
	return v
}

// number returns a number under the architecture, 0 when there is none.
func (c *check) number(suffix string) uint64 {
	n, _ := c.md.ArchUint(suffix)
	return n
}

// numbers returns the number of a key, or those of its list. A list that no model needs is
// not read.
func (c *check) numbers(suffix string) []uint64 {
	v := c.value(suffix)
	if v.Type() == gguf.Array && v.Len() <= maxBlocks {
		list, _ := v.Uints()
		return list
	}
	if n, ok := v.Uint(); ok {
		return []uint64{n}
	}
	return nil
}

// perBlock returns the number of a key for each block: that of all, or its entry of a list.
func (c *check) perBlock(suffix string) func(block int) uint64 {
	list := c.numbers(suffix)
	single := c.value(suffix).Type() != gguf.Array
	return func(block int) uint64 {
		switch {
		case len(list) == 0:
			return 0
		case single:
			return list[0]
		case block < len(list):
			return list[block]
		}
		return 0
	}
}

// blockLists are keys that are one number or a list with one for each block
// (get_key_or_arr in load_hparams).
var blockLists = []string{"feed_forward_length", "attention.head_count", "attention.head_count_kv", "expert_used_count"}

// checkLists wants an entry for each block in the lists that run over them.
func (c *check) checkLists() {
	if c.blocks == 0 || c.draftAlone() {
		return
	}
	for _, suffix := range blockLists {
		c.checkList(suffix, gguf.Uint32, c.blocks)
	}
}

// checkList wants one number of a type, or a list of a length.
func (c *check) checkList(suffix string, single gguf.ValueType, length int) {
	key := c.md.ArchKey(suffix)
	v, there := c.md.Arch(suffix)
	if !there {
		return
	}
	if fault := listFault(v, single, length); fault != "" {
		c.refuse(c.keyPlace(key), "%s", fault)
		c.note(key, false)
	}
}

// checkListOf wants a list under the architecture to have elements of one of some types. Another
// value is no list, and llama.cpp passes over it.
func (c *check) checkListOf(suffix string, elems ...gguf.ValueType) {
	if v := c.value(suffix); v.Type() == gguf.Array && !slices.Contains(elems, v.Elem()) {
		c.refuse(c.keyPlace(c.md.ArchKey(suffix)), "is %s, llama.cpp reads a list of %s only", v.TypeName(), elems[0])
	}
}

// listFault says what llama.cpp does not take of a value, if there is one.
func listFault(v gguf.Value, single gguf.ValueType, length int) string {
	elems, called := []gguf.ValueType{gguf.Uint32, gguf.Int32, gguf.Bool}, "u32 and i32"
	if single == gguf.Float32 {
		elems, called = []gguf.ValueType{gguf.Float32}, "f32"
	}
	switch {
	case v.Type() == single:
	case v.Type() != gguf.Array:
		return fmt.Sprintf("is %s, llama.cpp reads %s or a list only", v.TypeName(), single)
	case v.Len() != int64(length):
		return fmt.Sprintf("has %s, llama.cpp wants %d", entries(v.Len()), length)
	case !slices.Contains(elems, v.Elem()):
		return fmt.Sprintf("is a list of %s, llama.cpp reads %s only", v.Elem(), called)
	}
	return ""
}

// note keeps whether a key is sound: nothing else is said of a model by one that is not.
func (c *check) note(key string, sound bool) {
	if c.keys == nil {
		c.keys = map[string]bool{}
	}
	c.keys[key] = sound
}

func entries(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%s entries", words.Group(n))
}
