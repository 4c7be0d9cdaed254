package fetch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf16"
)

// cacheTag tells programs that make backups to leave the cache out: see bford.info/cachedir.
const cacheTag = "Signature: 8a477f597d28d172789f06886806bc55\n# Made by mlxlua: all of this can be downloaded.\n"

// publish makes the snapshot of files whose blobs are there, and has the revision stand for it.
func (p *pull) publish(tree, files []file) error {
	if tag := filepath.Join(p.repository.Cache, "CACHEDIR.TAG"); !exists(tag) {
		if err := written(tag, strings.NewReader(cacheTag)); err != nil {
			return uncached(err)
		}
	}
	if err := p.write(p.listing(tree), "trees", p.commit+".json"); err != nil {
		return err
	}
	last := map[string]int{}
	for i, f := range files {
		last[f.hash] = i
	}
	for i, f := range files {
		if err := p.place(f, last[f.hash] == i); err != nil {
			return uncached(err)
		}
	}
	if p.request.Revision == p.commit {
		return nil
	}
	return p.write([]byte(p.commit), "refs", filepath.FromSlash(p.request.Revision))
}

func uncached(err error) error { return fmt.Errorf("[pull] the cache cannot be written: %w", err) }

// place makes a file of the snapshot: a link to its blob; where links cannot be made, the blob itself if this pull has
// brought it and no further file needs it; else a copy.
func (p *pull) place(f file, last bool) error {
	path, blob := p.snapshot(f), p.blob(f)
	if hasSize(path, f.size) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	to, err := filepath.Rel(filepath.Dir(path), blob)
	if err != nil {
		return err
	}
	begun := unnamed(path)
	if !on("HF_HUB_DISABLE_SYMLINKS") && os.Symlink(to, begun) == nil {
		return named(begun, path)
	}
	if p.brought[f.hash] && last {
		return named(blob, path)
	}
	in, err := os.Open(blob)
	if err != nil {
		return err
	}
	defer in.Close()
	return written(path, in)
}

// write writes a small file of the repository, whole or not at all, if it does not say that yet.
func (p *pull) write(text []byte, place ...string) error {
	path := p.repository.Path(place...)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(path), 0o777)
	if err == nil {
		err = written(path, bytes.NewReader(text))
	}
	if err != nil {
		return uncached(err)
	}
	return nil
}

// unnamed is a name beside a path, for what gets that path when it is whole.
func unnamed(path string) string { return path + "." + strconv.FormatUint(rand.Uint64(), 36) + ".tmp" }

// named gives what is whole its name.
func named(begun, path string) error {
	err := os.Rename(begun, path)
	if err != nil {
		os.Remove(begun)
	}
	return err
}

// written writes a file, whole or not at all.
func written(path string, from io.Reader) error {
	begun := unnamed(path)
	out, err := os.OpenFile(begun, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	if err == nil {
		err = out.Sync()
	}
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		os.Remove(begun)
		return err
	}
	return named(begun, path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// hasSize reports whether there is a file of a size, maybe behind links.
func hasSize(path string, size int64) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}

// listing is what the hub lists for the commit as its own tools write it, by which they know that a snapshot has only
// a part of the repository.
func (p *pull) listing(tree []file) []byte {
	type entry struct {
		Size    int64  `json:"size"`
		Blob    string `json:"blob_id"`
		SHA256  string `json:"lfs_sha256,omitempty"`
		LFSSize *int64 `json:"lfs_size,omitempty"`
		XetHash string `json:"xet_hash,omitempty"`
	}
	files := map[string]entry{}
	for _, f := range tree {
		e := entry{Size: f.listed.Size, Blob: f.listed.OID}
		if f.lfs {
			e.SHA256, e.LFSSize = f.hash, &f.size
		}
		if sha256Form.MatchString(f.listed.XetHash) {
			e.XetHash = f.listed.XetHash
		}
		files[f.path] = e
	}
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	to.SetIndent("", " ")
	if err := to.Encode(struct {
		Version int              `json:"format_version"`
		Files   map[string]entry `json:"files"`
	}{1, files}); err != nil {
		panic(err) // of texts and numbers
	}
	return asciiJSON(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
}

// asciiJSON is JSON with all characters beyond ASCII as \uXXXX, as Python writes them.
func asciiJSON(text []byte) []byte {
	var out []byte
	for _, r := range string(text) {
		if r < 0x7f {
			out = append(out, byte(r))
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}
