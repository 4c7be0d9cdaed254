package main

import (
	"io"
	"os"
	"path/filepath"

	"github.com/mlxlua/mlxlua/luabind"
	"github.com/mlxlua/mlxlua/tensor/format"
)

// emitTypes writes the annotations of mx for the Lua language server to mx.lua in a folder, which is made if need be.
func emitTypes(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return format.WriteFile("emit-types", filepath.Join(folder, "mx.lua"), func(w io.Writer) error {
		_, err := io.WriteString(w, luabind.Types())
		return err
	})
}
