package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// File is a parsed unit. It is immutable: it may be the parent of any number of other units at once.
type File struct {
	// Decls are the unit's declarations in their order, without those of its parents.
	Decls []Decl
	// Parent is the file below this one, nil for none. Its declarations come first.
	Parent *File

	base     Pos // place handles of the parents
	toks     []token
	srcs     []*source
	srcBase  int
	files    []string
	fileBase int
	macros   []*macro // of the parents too; token.mac is an index plus one
	macroOf  []*macro // by symbol
	syms     *symtab
	global   *scope
	// memberTpl are the symbols of member templates: a member of such a name followed by < has template arguments.
	memberTpl map[int32]bool
}

// Files returns the names that kir.Pos.File indexes: those of the parents, then the unit's.
func (f *File) Files() []string {
	if f.Parent == nil {
		return append([]string(nil), f.files...)
	}
	return append(f.Parent.Files(), f.files...)
}

func (f *File) fileName(i uint16) string {
	for ; f != nil; f = f.Parent {
		if int(i) >= f.fileBase {
			if k := int(i) - f.fileBase; k < len(f.files) {
				return f.files[k]
			}
			return ""
		}
	}
	return ""
}

// fileIndex returns the index of a name, adding it if it is new. There are at most maxFiles names.
func (f *File) fileIndex(name string) (uint16, bool) {
	for q := f; q != nil; q = q.Parent {
		for i, s := range q.files {
			if s == name {
				return uint16(q.fileBase + i), true
			}
		}
	}
	n := f.fileBase + len(f.files)
	if n >= maxFiles {
		return 0, false
	}
	f.files = append(f.files, name)
	return uint16(n), true
}

func (f *File) source(i uint16) *source {
	for ; f != nil; f = f.Parent {
		if int(i) >= f.srcBase {
			return f.srcs[int(i)-f.srcBase]
		}
	}
	return nil
}

// token returns the token of a place, nil if the place is unknown.
func (f *File) token(at Pos) *token {
	for ; f != nil; f = f.Parent {
		if at > f.base {
			if i := int(at - f.base - 1); i < len(f.toks) {
				return &f.toks[i]
			}
			return nil
		}
	}
	return nil
}

// KirPos returns a place after #line, for kir and for messages.
func (f *File) KirPos(at Pos) kir.Pos {
	t := f.token(at)
	if t == nil {
		return kir.Pos{}
	}
	return f.source(t.src).position(t.off)
}

// Location returns a place with everything a message needs.
func (f *File) Location(at Pos) Location {
	t := f.token(at)
	if t == nil {
		return Location{}
	}
	return f.locate(t)
}

func (f *File) locate(t *token) Location {
	s := f.source(t.src)
	line, col := s.physical(t.off)
	pos := s.mapped(line, col)
	l := Location{
		Pos: pos, File: f.fileName(pos.File), Source: s.name, Line: line, Col: col, Text: s.lineText(line),
	}
	if t.mac > 0 {
		l.Note = f.macros[t.mac-1].note(f)
	}
	return l
}
