package fetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/mlxlua/mlxlua/internal/jsonfault"
)

// beside are the files of a model beside its weights.
var beside = []string{
	"config*.json", "generation_config.json", "preprocessor_config.json", "model.safetensors.index.json",
	"tokenizer*.json", "tokenizer.model", "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt",
	"merges.txt", "chat_template.jinja", "chat_template.json", "additional_chat_templates/*.jinja",
}

const (
	weightsIndex = "model.safetensors.index.json"
	weightsFiles = "model*.safetensors" // what lm reads where there is no index
)

// chosen are the files of a repository that match one of some patterns.
func chosen(tree []file, patterns ...string) []file {
	var out []file
	for _, f := range tree {
		if slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, f.path); return ok }) {
			out = append(out, f)
		}
	}
	return out
}

// first are the files to fetch first: one GGUF file, or what is beside the weights. gguf is a part of the name of the
// GGUF file, "" for one only if there are no other weights.
func first(tree []file, gguf string) ([]file, error) {
	files := ggufFiles(tree)
	weights := chosen(tree, weightsIndex, weightsFiles)
	if gguf == "" && len(weights) > 0 {
		if len(chosen(tree, "config.json")) == 0 {
			return nil, errors.New("[pull] there is no config.json: these weights are no model by themselves")
		}
		return chosen(tree, beside...), nil
	}
	if gguf == "" && len(files) == 0 {
		return nil, errors.New("[pull] there are no model*.safetensors and no .gguf file: nothing that lm reads")
	}
	one, err := oneGGUF(files, gguf)
	return []file{one}, err
}

// ggufFiles are those of models: not what projects pictures, or weighs what is packed.
func ggufFiles(tree []file) []file {
	return slices.DeleteFunc(slices.Clone(tree), func(f file) bool {
		name := strings.ToLower(path.Base(f.path))
		return !strings.HasSuffix(name, ".gguf") || strings.HasPrefix(name, "mmproj") || strings.Contains(name, "imatrix")
	})
}

// ggufPart is the end of the name of a file that is one of several parts of a model.
var ggufPart = regexp.MustCompile(`-\d{5}-of-\d{5}\.gguf$`)

// oneGGUF is the file of that name, or the one whose name has that part.
func oneGGUF(files []file, part string) (file, error) {
	fits := slices.DeleteFunc(slices.Clone(files), func(f file) bool {
		return !strings.Contains(strings.ToLower(f.path), strings.ToLower(part))
	})
	for _, f := range fits {
		if f.path == part {
			fits = []file{f}
		}
	}
	switch {
	case len(fits) == 0:
		return file{}, fmt.Errorf("[pull] no .gguf file has %q in its name: %s", part, names(files))
	case ggufPart.MatchString(fits[0].path):
		return file{}, fmt.Errorf("[pull] %s is a part of a model, which lm does not read", fits[0].path)
	case len(fits) > 1:
		return file{}, fmt.Errorf("[pull] which .gguf file? --gguf takes a name or a part of it: %s", names(fits))
	}
	return fits[0], nil
}

// names lists files, "none" if there are none.
func names(files []file) string {
	if len(files) == 0 {
		return "there is none"
	}
	var out []string
	for _, f := range files {
		out = append(out, f.path)
	}
	return strings.Join(out, ", ")
}

// weights are the files that the index at a path names, or all where index is "".
func weights(tree []file, index string) ([]file, error) {
	if index == "" {
		return chosen(tree, weightsFiles), nil
	}
	text, err := os.ReadFile(index)
	if err != nil {
		return nil, fmt.Errorf("[pull] the index cannot be read: %w", err)
	}
	var of struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return nil, fmt.Errorf("[pull] %s: %w", weightsIndex, jsonfault.Explain(string(text), err))
	}
	wanted := map[string]bool{}
	for _, name := range of.Map {
		wanted[name] = true
	}
	out := slices.DeleteFunc(slices.Clone(tree), func(f file) bool { return !wanted[f.path] })
	for _, f := range out {
		delete(wanted, f.path)
	}
	for name := range wanted {
		return nil, fmt.Errorf("[pull] %s names %q, which the repository does not have", weightsIndex, name)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("[pull] %s names no file", weightsIndex)
	}
	return out, nil
}
