package hub

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Cache is the folder of all repositories.
type Cache struct{ Dir string }

// DefaultCache is the cache that the hub's own tools use: HF_HUB_CACHE (or its older name, HUGGINGFACE_HUB_CACHE), else
// the folder hub of Home.
func DefaultCache() (Cache, error) {
	for _, name := range []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"} {
		if dir := os.Getenv(name); dir != "" {
			return Cache{expanded(dir)}, nil
		}
	}
	home, err := Home()
	return Cache{filepath.Join(home, "hub")}, err
}

// Home is the folder of the hub's tools: HF_HOME, else huggingface in XDG_CACHE_HOME or ~/.cache.
func Home() (string, error) {
	if dir := os.Getenv("HF_HOME"); dir != "" {
		return expanded(dir), nil
	}
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return expanded(filepath.Join(dir, "huggingface")), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("[hub] there is no folder for a cache, HF_HOME names none: %w", err)
	}
	return filepath.Join(home, ".cache", "huggingface"), nil
}

// expanded is a path of the environment with its ~ and $NAME replaced, as Python's expanduser and expandvars do.
func expanded(path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		if home, err := os.UserHomeDir(); err == nil {
			path = home + path[1:]
		}
	}
	return os.Expand(path, func(name string) string {
		if value, ok := os.LookupEnv(name); ok {
			return value
		}
		return "${" + name + "}"
	})
}

// nameForm is the form of a repository's name, and longestName how many bytes it may have.
var nameForm = regexp.MustCompile(`^(\w[\w.-]*/)?\w([\w.-]*\w)?$`)

const longestName = 96

// CheckName reports what is wrong with the name of a repository: org/name, or a name alone.
func CheckName(name string) error {
	if len(name) > longestName || !nameForm.MatchString(name) || strings.Contains(name, "--") ||
		strings.Contains(name, "..") || strings.HasSuffix(name, ".git") {
		return fmt.Errorf("[hub] %q is no name of a repository: want org/name", name)
	}
	return nil
}

// Repository is a model's place in a cache.
type Repository struct{ Cache, Name string }

// Repository is the place of a repository whose name CheckName has nothing against.
func (c Cache) Repository(name string) Repository { return Repository{c.Dir, name} }

func (r Repository) folder() string { return "models--" + strings.ReplaceAll(r.Name, "/", "--") }

// Path is the path of what lies at a place of the repository, such as "refs", "main".
func (r Repository) Path(place ...string) string {
	return filepath.Join(append([]string{r.Cache, r.folder()}, place...)...)
}

// Lock is the path of the file that a program locks while it writes a blob.
func (r Repository) Lock(hash string) string {
	return filepath.Join(r.Cache, ".locks", r.folder(), hash+".lock")
}

// Find is the path of a model of the cache: the snapshot that main stands for, or its one .gguf file if it has no
// config.json.
func (c Cache) Find(name string) (string, error) {
	if CheckName(name) != nil {
		return "", fmt.Errorf("[hub] there is no model %s: no such directory, and no name of a repository", name)
	}
	r := c.Repository(name)
	text, err := os.ReadFile(r.Path("refs", "main"))
	if commit := strings.TrimSpace(string(text)); commit != "" {
		var info os.FileInfo
		path := r.Path("snapshots", commit)
		if info, err = os.Stat(path); err == nil && info.IsDir() {
			return Model(path)
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("[hub] %s cannot be read: %w", name, err)
	}
	return "", fmt.Errorf("[hub] there is no model %s: looked for the directories %s and %s; "+
		"\"mlxlua lm pull %s\" downloads it", name, name, r.Path("snapshots"), name)
}

// Model is what a model is read from in a snapshot: the directory, or its one .gguf file if it has no config.json.
func Model(snapshot string) (string, error) {
	if _, err := os.Stat(filepath.Join(snapshot, "config.json")); err == nil {
		return snapshot, nil
	}
	entries, err := os.ReadDir(snapshot)
	if err != nil {
		return "", fmt.Errorf("[hub] the snapshot cannot be read: %w", err)
	}
	var files []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".gguf") {
			files = append(files, filepath.Join(snapshot, e.Name()))
		}
	}
	switch len(files) {
	case 0:
		return snapshot, nil
	case 1:
		return files[0], nil
	}
	return "", fmt.Errorf("[hub] which file of %d? Give its path: %s", len(files), strings.Join(files, ", "))
}
