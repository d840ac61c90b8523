package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"ggufreap/reap"
)

func calibText(domain string) string { return folder + "/" + domain + ".calib.txt" }

// calibrate measures the model over all domains, and over each.
func (j *judge) calibrate() error {
	var texts []string
	j.one = map[string]string{}
	for _, domain := range domains {
		texts = append(texts, domain+"="+calibText(domain))
		path, err := j.tool.scores(domain, calibText(domain))
		if err != nil {
			return err
		}
		j.one[domain] = path
	}
	var err error
	j.all, err = j.tool.scores("all", texts...)
	return err
}

// pruned judges what a choice keeps.
func (j *judge) pruned(keep int, choice ...string) (verdict, error) {
	path, err := j.tool.prune(keep, choice...)
	if err != nil {
		return verdict{}, err
	}
	return j.judge(path)
}

// mixed prints the tables of what was calibrated on all domains.
func (j *judge) mixed() error {
	fmt.Printf("Calibrated on all domains. KL to the full model by held-out domain; shares are those of the mean of %d random plans.\n\n", seeds)
	j.means = map[string]float64{}
	header := []any{"keep", "criterion"}
	for _, domain := range domains {
		header = append(header, domain)
	}
	row(append(header, "mean KL", "of chance", "perplexity")...)
	row(slices.Repeat([]any{"---"}, len(header)+3)...)
	_, perplexity := j.perfect.mean()
	row("32", "(the full model)", "", "", "", "", 0.0, "", perplexity)
	for _, keep := range keeps {
		random, least, most, err := j.chance(keep)
		if err != nil {
			return err
		}
		chance, _ := random.mean()
		for _, name := range measuredCriteria() {
			v, err := j.pruned(keep, "--from", j.all, "--criterion", name)
			if err != nil {
				return err
			}
			j.means[fmt.Sprint(keep, name)], _ = v.mean()
			j.line(keep, "`"+name+"`", v, chance)
		}
		for _, name := range proxies() {
			v, err := j.pruned(keep, "--criterion", name)
			if err != nil {
				return err
			}
			j.line(keep, "`"+name+"`", v, chance)
		}
		j.line(keep, fmt.Sprintf("`%s`, mean of %d (%.4f to %.4f)", reap.SeededRandom, seeds, least, most), random, chance)
	}
	fmt.Println()
	return j.correlations()
}

func (j *judge) line(keep int, name string, v verdict, chance float64) {
	cells := []any{keep, name}
	for _, domain := range domains {
		cells = append(cells, v.divergence[domain])
	}
	divergence, perplexity := v.mean()
	row(append(cells, divergence, fmt.Sprintf("%.0f %%", 100*divergence/chance), fmt.Sprintf("%.3f", perplexity))...)
}

// chance judges random plans, and returns their mean and the range of their means.
func (j *judge) chance(keep int) (mean verdict, least, most float64, err error) {
	mean = verdict{map[string]float64{}, map[string]float64{}}
	least = math.Inf(1)
	for seed := range seeds {
		v, err := j.pruned(keep, "--criterion", reap.SeededRandom, "--seed", fmt.Sprint(seed))
		if err != nil {
			return mean, 0, 0, err
		}
		divergence, _ := v.mean()
		least, most = min(least, divergence), max(most, divergence)
		for _, domain := range domains {
			mean.divergence[domain] += v.divergence[domain] / seeds
			mean.perplexity[domain] += math.Log(v.perplexity[domain]) / seeds
		}
	}
	for domain, x := range mean.perplexity {
		mean.perplexity[domain] = math.Exp(x)
	}
	return mean, least, most, nil
}

// alone prints what calibration on one domain costs the others.
func (j *judge) alone() error {
	fmt.Print("\nCalibrated on one domain: mean KL on it and on the three others, beside calibration on all.\n\n")
	row("keep", "criterion", "own domain: one", "all", "other domains: one", "all")
	row(slices.Repeat([]any{"---"}, 6)...)
	for _, keep := range keeps {
		for _, name := range measuredCriteria() {
			mean := j.means[fmt.Sprint(keep, name)]
			var own, others float64
			for _, domain := range domains {
				v, err := j.pruned(keep, "--from", j.one[domain], "--criterion", name)
				if err != nil {
					return err
				}
				sum, _ := v.mean()
				own += v.divergence[domain] / 4
				others += (4*sum - v.divergence[domain]) / 12
			}
			row(keep, "`"+name+"`", own, mean, others, mean)
		}
	}
	return nil
}

// selfWritten prints what text is worth that the model wrote itself.
func (j *judge) selfWritten() error {
	fmt.Print("\nCalibrated on text that the model wrote: mean KL.\n\n")
	row("tokens written", "criterion", "keep 24", "keep 20", "keep 16")
	row(slices.Repeat([]any{"---"}, 5)...)
	for _, tokens := range []int{2048, 16384, 65536} {
		path := j.tool.path(fmt.Sprintf("self%d.json", tokens))
		if err := j.tool.run("calibrate", "--quiet", "--threads", fmt.Sprint(j.threads), "--self-text", fmt.Sprint(tokens), "-o", path, model); err != nil {
			return err
		}
		for _, name := range []string{reap.ReapMean, reap.ReapSum} {
			cells := []any{tokens, "`" + name + "`"}
			for _, keep := range keeps {
				v, err := j.pruned(keep, "--from", path, "--criterion", name)
				if err != nil {
					return err
				}
				mean, _ := v.mean()
				cells = append(cells, mean)
			}
			row(cells...)
		}
	}
	return nil
}

// correlations prints how alike criteria rank the experts of a layer (Spearman), the mean over
// the layers, with the measured sum of router weights and with reap-mean.
func (j *judge) correlations() error {
	lists := map[string]map[string][]float64{}
	for _, name := range append(measuredCriteria(), proxies()...) {
		ranks, err := j.ranks(name)
		if err != nil {
			return err
		}
		lists[name] = ranks
	}
	fmt.Print("Rank correlation (Spearman) of all 32 experts of a layer, by layer:\n\n")
	row("criterion", "with gate-sum", "with reap-mean")
	row("---", "---", "---")
	for _, name := range append(measuredCriteria(), proxies()...) {
		cells := []any{"`" + name + "`"}
		for _, other := range []string{reap.GateSum, reap.ReapMean} {
			var values []string
			for _, layer := range []string{"1", "2", "3"} {
				values = append(values, fmt.Sprintf("%.2f", spearman(lists[name][layer], lists[other][layer])))
			}
			cells = append(cells, strings.Join(values, ", "))
		}
		row(cells...)
	}
	return nil
}

// ranks returns the rank of each expert by layer: how many keep counts leave it out.
func (j *judge) ranks(name string) (map[string][]float64, error) {
	ranks := map[string][]float64{}
	for keep := 4; keep < 32; keep++ {
		path := j.tool.path("rank.json")
		args := []string{"plan", "--force", "--quiet", "--keep", fmt.Sprint(keep), "--criterion", name, "-o", path}
		if info, _ := reap.FindCriterion(name); info.Evidence == reap.Measured {
			args = append(args, "--from", j.all)
		}
		if err := j.tool.run(append(args, model)...); err != nil {
			return nil, err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var plan struct {
			Layers map[string]struct {
				Keep []int `json:"keep"`
			} `json:"layers"`
		}
		if err := json.Unmarshal(data, &plan); err != nil {
			return nil, err
		}
		for layer, l := range plan.Layers {
			if ranks[layer] == nil {
				ranks[layer] = make([]float64, 32)
			}
			for _, expert := range l.Keep {
				ranks[layer][expert]++
			}
		}
	}
	return ranks, nil
}

// spearman is the correlation of two rankings, whose ties share their places.
func spearman(a, b []float64) float64 {
	ra, rb := places(a), places(b)
	mean := float64(len(a)-1) / 2
	var ab, aa, bb float64
	for i := range ra {
		x, y := ra[i]-mean, rb[i]-mean
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab / math.Sqrt(aa*bb)
}

func places(list []float64) []float64 {
	out := make([]float64, len(list))
	for i, x := range list {
		below, same := 0, 0
		for _, y := range list {
			if y < x {
				below++
			} else if y == x {
				same++
			}
		}
		out[i] = float64(below) + float64(same-1)/2
	}
	return out
}
