package reap

import "fmt"

// Gating is how router logits become the weights of the chosen experts. The numbers
// are those of the key ARCH.expert_gating_func (llama.cpp, llama-hparams.h).
type Gating uint32

// The gating functions of llama.cpp.
const (
	Softmax         Gating = 1 // over all experts
	Sigmoid         Gating = 2
	SoftmaxSelected Gating = 3 // over the chosen experts only
	SqrtSoftplus    Gating = 4
)

// String returns the name of the function.
func (g Gating) String() string {
	switch g {
	case Softmax:
		return "softmax"
	case Sigmoid:
		return "sigmoid"
	case SoftmaxSelected:
		return "softmax over the selected"
	case SqrtSoftplus:
		return "sqrt(softplus)"
	}
	return fmt.Sprintf("unknown(%d)", uint32(g))
}

// fixedGating holds the architectures whose graph ignores the key, or that fall back
// on something other than softmax when it is absent or 0.
var fixedGating = map[string]Gating{
	"gpt-oss":        SoftmaxSelected,
	"nemotron_h_moe": Sigmoid,
	"mimo2":          Sigmoid,
	"llama4":         Sigmoid, // chosen by logit
}

var defaultGating = map[string]Gating{
	"glm4moe":    Sigmoid,
	"glm-dsa":    Sigmoid,
	"hy_v3":      Sigmoid,
	"step35":     Sigmoid,
	"afmoe":      Sigmoid,
	"laguna":     Sigmoid,
	"cohere2moe": Sigmoid,
}

// gatingOf returns what an architecture does with the stored number, 0 when absent.
func gatingOf(architecture string, stored uint64) Gating {
	if g, ok := fixedGating[architecture]; ok {
		return g
	}
	if stored > 0 && stored < 1<<32 {
		return Gating(stored)
	}
	if g, ok := defaultGating[architecture]; ok {
		return g
	}
	return Softmax
}
