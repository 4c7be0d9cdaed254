package interp

import (
	"fmt"

	"github.com/mlxlua/mlxlua/metal/launch"
)

// fail records the frame's first fault.
func (f *frame) fail(in *inst, object string, index, length int64, format string, args ...any) {
	if f.fault != nil {
		return
	}
	f.fault = &launch.Fault{Kernel: f.exe.kernel.Name, Object: object, Index: index, Len: length, Param: -1, Pos: in.pos,
		File: launch.FileName(f.exe.files, in.pos), Msg: fmt.Sprintf(format, args...)}
}

// concerns adds the object to the frame's fault.
func (f *frame) concerns(ob int) {
	if ob <= len(f.exe.kernel.Params) {
		f.fault.Param = ob - 1
	}
}

func (f *frame) describe(ob int) (name string, elem int64) {
	name, elem, _ = launch.Describe(f.exe.kernel, ob)
	return name, elem
}

// badAccess records what is wrong with a lane's access of size bytes.
func (f *frame) badAccess(in *inst, q, size uint64, acc launch.AccessKind) {
	if f.fault == nil {
		f.fault = launch.BadAccess(f.exe.kernel, f.exe.files, in.pos, in.space, acc, q, size,
			func(ob int) uint64 { return f.objs[ob].size })
	}
}
