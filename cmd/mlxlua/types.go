package main

import (
	"io"
	"os"
	"path/filepath"

	"github.com/mlxlua/mlxlua/luabind"
	"github.com/mlxlua/mlxlua/tensor/format"
)

// emitTypes writes the annotations of mx and of the packages for the Lua language server to files in a folder, which is
// made if need be: mx.lua, lm.lua and so on, where require would look for them.
func emitTypes(folder string) error {
	for name, text := range luabind.TypeFiles() {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		err := format.WriteFile("emit-types", path, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
