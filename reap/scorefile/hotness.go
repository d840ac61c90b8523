package scorefile

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"ggufreap/gguf/jsondoc"
	"ggufreap/reap"
)

// hotnessHeader is the first line of a table of counts.
const hotnessHeader = "layer,expert,count"

func isHotness(data []byte) bool {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return string(bytes.TrimRight(line, "\r")) == hotnessHeader
}

// readHotness reads a table with a row for each layer and expert, in whole numbers. A row
// that is missing means a count of 0.
func readHotness(data []byte, e *reap.Experts) (*Measurements, error) {
	h := &hotness{experts: e, layers: map[int]*Layer{}, seen: map[[2]int]bool{}}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if number > 1 && line != "" {
			h.addRow(fmt.Sprintf("line %d", number), line)
		}
	}
	if err := h.faults.Err(); err != nil {
		return nil, err
	}
	return &Measurements{Format: "hotness CSV", Layers: h.layers}, nil
}

// hotness is a table of counts while it is being read.
type hotness struct {
	experts *reap.Experts
	layers  map[int]*Layer
	seen    map[[2]int]bool
	faults  reap.Faults
}

func (h *hotness) addRow(where, line string) {
	fields := strings.Split(line, ",")
	if len(fields) != 3 {
		h.faults.Add(where, "%d fields, want 3", len(fields))
		return
	}
	block, okBlock := jsondoc.Decimal(fields[0])
	expert, okExpert := jsondoc.Decimal(fields[1])
	count, err := strconv.ParseUint(fields[2], 10, 53) // exact in a float64
	switch {
	case !okBlock || !okExpert || err != nil:
		h.faults.Add(where, "%q, want three whole numbers", line)
	case h.experts.Layer(block) == nil:
		h.faults.Add(where, "layer %d: the model has no routed experts there", block)
	case expert >= h.experts.Count:
		h.faults.Add(where, "expert %d, the model has %d", expert, h.experts.Count)
	case h.seen[[2]int{block, expert}]:
		h.faults.Add(where, "layer %d, expert %d stands twice", block, expert)
	default:
		h.seen[[2]int{block, expert}] = true
		if h.layers[block] == nil {
			h.layers[block] = &Layer{Count: make([]float64, h.experts.Count)}
		}
		h.layers[block].Count[expert] = float64(count)
	}
}
