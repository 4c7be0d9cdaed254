// Package scripts is the standard library written in Lua: each file is a module of mx, and so is each folder, whose
// files make one module together. A file is run with mx, with three functions, and with core, which has what is Go's.
// define makes a function of the module from a description: its name, its parameters (sig, as in luabind's rows), its
// help, and the Lua function that is called with them; where that makes objects of a class, the class too, which is
// then the module's entry. define returns what it made. fail(name, text) raises an error in the name of a function.
// use(name) runs another file of the folder, once, and returns what that one returns; use("mx.utils") is a module,
// whatever a script has set mx.utils to. A module is run when a script first uses something of it.
//
// All files here have globals of their own, as Lua 5.1 has them: what scripts set theirs to, or the methods of strings,
// does not concern them. In all of them a method that is written function C:f(...) checks that it is
// called on an object of C, or of a class with a parent in common, before it begins: see luabind/methods.go.
package scripts

import "embed"

// Files holds the modules: the files under nn are mx.nn, and so on.
//
//go:embed data nn train *.lua
var Files embed.FS

// Packages holds what require finds beside the modules of mx: ordinary Lua files, which users may copy, and which
// require each other. Package lm is model scripts: see docs/lm.md.
//
//go:embed lm
var Packages embed.FS
