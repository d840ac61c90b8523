package verify

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"ggufreap/gguf"
	"ggufreap/gguf/words"
	"ggufreap/manifest"
	"ggufreap/manifest/lists"
	"ggufreap/manifest/sign"
)

// readList reads the list of sums, if there is one, as far as it is without fault. Of its
// entries none is held here: there can be a million.
func (v *verifier) readList() error {
	f, info, err := manifest.OpenRegular(v.path(manifest.SumsName))
	switch {
	case gguf.MachineFault(err):
		return err
	case errors.Is(err, fs.ErrNotExist):
		v.report.gap("there is no "+manifest.SumsName, "whether these are the bytes that were published")
		return nil
	case err == nil:
		defer f.Close()
		err = lists.EachSum(f, func(lists.FileSum) error { v.entries++; return nil })
	}
	if err == nil && info.Size() > lists.MaxSumsBytes {
		err = fmt.Errorf("more than %d bytes", lists.MaxSumsBytes)
	}
	var faults *lists.SumsError
	switch {
	case gguf.MachineFault(err):
		return err
	case errors.As(err, &faults):
		v.listFaults(faults.Faults)
		return nil
	case err != nil:
		v.report.find(KindUnreadable, manifest.SumsName, about(v.path(manifest.SumsName), err))
		return nil
	}
	odd, err := lists.OddForms(io.NewSectionReader(f, 0, info.Size()))
	if err != nil {
		return err
	}
	v.hasList = true
	v.listFaults(odd)
	return nil
}

// listText returns the list of sums whole, for who checks a signature over it. It must be
// what was compared.
func (v *verifier) listText() ([]byte, error) {
	text, err := readBounded(v.path(manifest.SumsName), lists.MaxSumsBytes)
	if err == nil && sha256.Sum256(text) != v.listSum {
		err = fmt.Errorf("%s was changed while it was looked at", manifest.SumsName)
	}
	return text, err
}

func (v *verifier) listFaults(faults []lists.SumsFault) {
	for _, fault := range faults {
		v.report.find(KindList, manifest.SumsName, fault.String())
	}
}

// readBounded reads a file of at most so many bytes.
func readBounded(path string, most int64) ([]byte, error) {
	f, _, err := manifest.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	return data, err
}

// compareNames compares the list with the folder, and keeps the entries that are there.
func (v *verifier) compareNames(ctx context.Context) error {
	if !v.hasList {
		return nil
	}
	f, _, err := manifest.OpenRegular(v.path(manifest.SumsName))
	if err != nil {
		return err
	}
	defer f.Close()
	names := map[string]bool{manifest.SumsName: true} // of files of the folder
	for _, name := range v.files {
		names[name] = name == manifest.SumsName || slices.Contains(sign.Names, name)
	}
	sum := sha256.New()
	if err := lists.EachSum(io.TeeReader(f, sum), func(s lists.FileSum) error { return v.compareName(s, names) }); err != nil {
		return err
	}
	v.listSum = manifest.Sum(sum.Sum(nil))
	v.findPieces(names)
	unlisted := slices.DeleteFunc(slices.Clone(v.files), func(name string) bool { return names[name] || !v.contents[name].model })
	if err := v.findRenamed(ctx, unlisted); err != nil {
		return err
	}
	for _, s := range v.listed {
		names[s.Name] = true
	}
	v.reportUnlisted(names)
	v.report.checked(fmt.Sprintf("names: %s listed, %s of them there, %s in the folder", words.Group(v.entries), words.Group(len(v.listed)), words.Count(len(v.files), "file")))
	for _, s := range v.listed {
		v.claims = append(v.claims, claim{s.Name, s.SHA256, manifest.SumsName})
	}
	return nil
}

// reportUnlisted names the files of the folder that are not among those of the list.
func (v *verifier) reportUnlisted(names map[string]bool) {
	for _, name := range v.files {
		switch {
		case names[name]:
		case v.contents[name].model:
			v.report.find(KindExtra, name, "is a model file that "+manifest.SumsName+" does not list")
		case name == manifest.PinName:
			v.report.find(KindExtra, name, "is a pin that "+manifest.SumsName+" does not list")
		default:
			v.report.note(name, "not listed in "+manifest.SumsName)
		}
	}
}

// compareName looks for the file of one entry, and takes note that the list has it.
func (v *verifier) compareName(s lists.FileSum, names map[string]bool) error {
	if _, here := names[s.Name]; here {
		names[s.Name] = true
	}
	info, err := os.Stat(v.path(s.Name))
	switch {
	case s.Name == manifest.SumsName:
		v.report.find(KindList, manifest.SumsName, "lists itself, which no list can do rightly")
	case gguf.MachineFault(err):
		return err
	case errors.Is(err, fs.ErrNotExist) && gguf.IsModelFile(s.Name) && len(v.missing) < maxRenamed:
		v.missing = append(v.missing, s)
	case errors.Is(err, fs.ErrNotExist):
		v.report.find(KindMissing, s.Name, "is listed and not there")
	case err != nil:
		v.report.find(KindUnreadable, s.Name, about(v.path(s.Name), err))
	case !info.Mode().IsRegular():
		v.report.find(KindUnreadable, s.Name, "is listed and not a regular file")
	default:
		v.listed = append(v.listed, s)
		return v.look(s.Name)
	}
	return nil
}
