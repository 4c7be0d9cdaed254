package luabind

import (
	"path/filepath"
	"strings"

	"github.com/mlxlua/mlxlua/tensor/format"
)

// fileRows are the functions that read and write files. A state without Lua's io library refuses them.
var fileRows = []row{
	{name: "load", sig: "file:string format:string?",
		help: "The array in a .npy file, of any dtype, order and byte order. format is the file's extension unless it is " +
			"given; \"npy\" is what there is.",
		call: func(a *args) any {
			if !a.s.files {
				a.fail("this state has no access to files")
			}
			path, ext := a.Text(0), ""
			if a.Given(1) {
				ext = a.Text(1)
			} else if e := filepath.Ext(path); e != "" {
				ext = e[1:]
			}
			if ext != "npy" {
				a.fail("format of %q is %q, want \"npy\"", path, ext)
			}
			return format.LoadNPY(path, a.Ctx)
		}},
	{name: "save", sig: "file:string arr:operand",
		help: "Evaluates an array and writes it to a .npy file, as NumPy and MLX read it; a name without that extension " +
			"gets it. A file that is there is replaced when all has been written.",
		call: func(a *args) any {
			if !a.s.files {
				a.fail("this state has no access to files")
			}
			path := a.Text(0)
			if !strings.HasSuffix(path, ".npy") {
				path += ".npy"
			}
			if err := format.SaveNPY(a.s.Context(), path, a.Array(1)); err != nil {
				a.s.raise(err)
			}
			return nil
		}},
}
