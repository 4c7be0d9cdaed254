// Package scripts is the standard library written in Lua: each file is a module of mx. It is run with mx and two
// functions. define makes a function of the module from a description: its name, its parameters (sig, as in luabind's
// rows), its help, and the Lua function that is called with them. fail(op, text) raises an error of the module.
package scripts

import "embed"

// Files holds the modules: nn.lua is mx.nn.
//
//go:embed *.lua
var Files embed.FS
