package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/mlxlua/mlxlua/internal/jsonfault"
)

// file is one that the hub lists.
type file struct {
	path   string // below the repository, with slashes
	size   int64
	hash   string // sha256 if lfs, else git's sha1 of a blob
	lfs    bool
	listed listed
}

// listed is what the hub says of a file: see api/models/NAME/tree/COMMIT.
type listed struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Size int64  `json:"size"`
	OID  string `json:"oid"`
	LFS  *struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	} `json:"lfs"`
	XetHash string `json:"xetHash"`
}

var (
	sha1Form   = regexp.MustCompile(`^[0-9a-f]{40}$`)
	sha256Form = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// most is how long a list or an index may be: as text, and in pages.
const (
	mostText  = 64 << 20
	mostPages = 1000
)

// ask reads the JSON at an address, and gives the address of the next page, nil if there is none.
func (c *client) ask(ctx context.Context, u *url.URL, to any) (next *url.URL, err error) {
	err = c.trying(ctx, func() (bool, error) {
		resp, err := c.get(ctx, u, 0)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(io.LimitReader(resp.Body, mostText+1))
		if err != nil {
			return false, err
		}
		if len(text) > mostText {
			return false, fmt.Errorf("[pull] %s: more than %d bytes", bare(u), mostText)
		}
		if err := json.Unmarshal(text, to); err != nil {
			return false, fmt.Errorf("[pull] %s is no answer of a hub: %w", bare(u), jsonfault.Explain(string(text), err))
		}
		for part := range strings.SplitSeq(resp.Header.Get("Link"), ",") {
			at, what, _ := strings.Cut(part, ";")
			if strings.TrimSpace(what) == `rel="next"` {
				next, err = u.Parse(strings.Trim(strings.TrimSpace(at), "<>"))
				if err != nil {
					return false, fmt.Errorf("[pull] %s: the next page: %w", bare(u), err)
				}
			}
		}
		return true, nil
	})
	return next, err
}

// commit is the commit that a revision stands for at this moment.
func (c *client) commit(ctx context.Context, name, revision string) (string, error) {
	if sha1Form.MatchString(revision) {
		return revision, nil
	}
	var info struct {
		SHA string `json:"sha"`
	}
	u := c.at(append(append([]string{"api", "models"}, strings.Split(name, "/")...), "revision", revision)...)
	if _, err := c.ask(ctx, u, &info); err != nil {
		return "", err
	}
	if !sha1Form.MatchString(info.SHA) {
		return "", fmt.Errorf("[pull] %s names no commit: %q", bare(u), info.SHA)
	}
	return info.SHA, nil
}

// tree is what the hub lists for a commit.
func (c *client) tree(ctx context.Context, name, commit string) ([]file, error) {
	u := c.at(append(append([]string{"api", "models"}, strings.Split(name, "/")...), "tree", commit)...)
	u.RawQuery = "recursive=True&expand=False"
	var all []file
	for range mostPages {
		var page []listed
		next, err := c.ask(ctx, u, &page)
		if err != nil {
			return nil, err
		}
		for _, l := range page {
			if l.Type != "file" {
				continue
			}
			f, err := l.file()
			if err != nil {
				return nil, err
			}
			all = append(all, f)
		}
		if next == nil {
			return all, nil
		}
		u = next
	}
	return nil, fmt.Errorf("[pull] the list of %s has more than %d pages", name, mostPages)
}

// file is what is listed, if its name and hashes are none that could lead out of the cache.
func (l listed) file() (file, error) {
	f := file{path: l.Path, size: l.Size, hash: l.OID, listed: l}
	if err := checkPath(l.Path); err != nil {
		return f, err
	}
	form := sha1Form
	if l.LFS != nil {
		f.size, f.hash, f.lfs, form = l.LFS.Size, l.LFS.OID, true, sha256Form
	}
	if !form.MatchString(f.hash) || !sha1Form.MatchString(l.OID) {
		return f, fmt.Errorf("[pull] the hub lists %q with something that is no hash: %q", l.Path, f.hash)
	}
	if f.size < 0 || l.Size < 0 {
		return f, fmt.Errorf("[pull] the hub lists %q with %d bytes", l.Path, f.size)
	}
	return f, nil
}

// errPath is the error of names that are refused.
var errPath = errors.New("that is no place in a repository")

// checkPath refuses names that lead out of a folder, on any system.
func checkPath(path string) error {
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "\\:\x00") {
			return fmt.Errorf("[pull] the name %q: %w", path, errPath)
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(path)) {
		return fmt.Errorf("[pull] the name %q: %w", path, errPath)
	}
	return nil
}
