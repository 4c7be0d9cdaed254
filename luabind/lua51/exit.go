package lua51

import lua "github.com/yuin/gopher-lua"

// exitRequest is held by the error value by which os.exit unwinds to the host.
type exitRequest struct{ status int }

// ExitStatus returns the status of os.exit if an error value stands for a call of it. Such an error passes pcall,
// xpcall and coroutines: the caller of Protect is the first to get it.
func ExitStatus(v lua.LValue) (status int, exits bool) {
	if ud, ok := v.(*lua.LUserData); ok {
		if e, ok := ud.Value.(*exitRequest); ok {
			return e.status, true
		}
	}
	return 0, false
}

// replaceExit makes os.exit unwind to the host as an error value with the status, which pcall does not catch.
func (s *State) replaceExit() {
	s.Method(s.library(lua.OsLibName), "exit", func(L *lua.LState) int {
		status := 0
		switch v := L.Get(1).(type) {
		case lua.LNumber:
			status = int(v)
		case lua.LBool:
			if !bool(v) {
				status = 1
			}
		}
		L.Error(s.NewUserData(&exitRequest{status}, lua.LNil, 0), 0)
		return 0
	})
}
