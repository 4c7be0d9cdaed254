package msl

// functionObject turns the name of one function into a value that can be handed on and called: what a pointer to it is
// elsewhere.
func (ch *chooser) functionObject(v value) value {
	if v.k != vFuncs || v.fn.bi != nil || v.fn.this != nil {
		return v
	}
	switch {
	case len(v.fn.funcs) < 2:
	case v.fn.hasArgs:
		v.fn = ch.onlyInstance(v.fn)
	default:
		v.fn = ch.definition(v.fn)
	}
	if len(v.fn.funcs) != 1 {
		return v
	}
	f := v.fn.funcs[0]
	if f.cls != nil || f.tmpl != nil && !v.fn.hasArgs {
		return v
	}
	t := ch.c.funcTypes[f]
	if t == nil || v.fn.hasArgs {
		st := &structInfo{name: "function " + v.fn.name, lambda: &lambdaInfo{over: v.fn}, state: 2, declared: true}
		t = &ctype{kind: tStruct, st: st, size: 1, align: 1}
		st.typ = t
		if !v.fn.hasArgs {
			ch.c.funcTypes[f] = t
		}
	}
	return value{k: vRight, q: qt(t)}
}

// addADL adds the functions that argument-dependent lookup finds.
func (ch *chooser) addADL(fn *overload, fx Expr, args []value) {
	ne, ok := fx.(*NameExpr)
	if !ok || len(ne.Name.Quals) > 0 || fn.this != nil {
		return
	}
	fn.funcs = ch.adl(fn.funcs, fn.name, args)
}

func (ch *chooser) adl(funcs []*funcEnt, name string, args []value) []*funcEnt {
	for i := range args {
		t := args[i].q.T
		if t.kind == tPtr {
			t = t.elem.T
		}
		if t.kind != tStruct || t.st.scope == nil || t.st.lambda != nil {
			continue
		}
		funcs = ch.addFriends(funcs, name, t.st)
		ns := t.st.scope.namespaceOf()
		if ns == nil {
			continue
		}
		ent := ch.c.find(ns, name, 0)
		if ent == nil || ent.kind != eFunc || len(funcs) > 0 && len(funcs) == len(ent.funcs) && funcs[0] == ent.funcs[0] {
			continue
		}
		ch.c.spend(*ch.res.at, len(ent.funcs)*len(funcs)/16)
	next:
		for _, f := range ent.funcs {
			for _, o := range funcs {
				if o == f {
					continue next
				}
			}
			funcs = append(funcs[:len(funcs):len(funcs)], f)
		}
	}
	return funcs
}

// addFriends adds the friends of a class and of its bases.
func (ch *chooser) addFriends(funcs []*funcEnt, name string, st *structInfo) []*funcEnt {
	ch.c.declareMembers(st)
next:
	for _, f := range st.friends[name] {
		for _, o := range funcs {
			if o == f {
				continue next
			}
		}
		funcs = append(funcs[:len(funcs):len(funcs)], f)
	}
	for _, b := range st.bases {
		if b.kind == tStruct {
			funcs = ch.addFriends(funcs, name, b.st)
		}
	}
	return funcs
}

// operatorCands collects the operator functions that may apply: methods of the first operand, functions in scope
// and in the namespaces of the operands' classes.
func (ch *chooser) operatorCands(op Op, args []value) []*funcEnt {
	key := operatorKey(op)
	var funcs []*funcEnt
	if ent := ch.lookupOperator(key); ent != nil {
		for _, f := range ent.funcs {
			if f.cls == nil {
				funcs = append(funcs, f)
			}
		}
	}
	return ch.adl(funcs, key, args)
}

func (ch *chooser) lookupOperator(key string) *entity {
	var all *entity
	for e := ch.res.env; e != nil; e = e.up {
		if e.kind != envNamespace {
			continue
		}
		if x := ch.c.find(e, key, 0); x != nil && x.kind == eFunc {
			all = mergeEnts(all, x)
		}
	}
	return all
}

// convertsToArith reports whether every operand is a number or converts to one.
func (ch *chooser) convertsToArith(args []value) bool {
	for i := range args {
		t := args[i].q.T
		if t.kind == tStruct && len(ch.c.methods(t, "(conversion)")) == 0 {
			return false
		}
	}
	return true
}
