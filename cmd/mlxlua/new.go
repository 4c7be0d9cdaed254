package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// starter is the script that `mlxlua new` writes.
//
//go:embed starter.lua
var starter string

// newScript writes a starter script to a file that is not there yet.
func newScript(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("new: %s is there already", path)
	}
	if err != nil {
		return fmt.Errorf("new: cannot write %s: %w", path, errors.Unwrap(err))
	}
	_, err = f.WriteString(starter)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
		return fmt.Errorf("new: cannot write %s: %w", path, err)
	}
	return nil
}
