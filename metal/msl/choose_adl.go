package msl

// functionObject turns the name of one function into a value that can be handed on and called: what a pointer to it is
// elsewhere.
func (ch *chooser) functionObject(v value) value {
	if v.k != vFuncs || v.fn.builtin != nil || v.fn.this != nil {
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
	if f.class != nil || f.tmpl != nil && !v.fn.hasArgs {
		return v
	}
	t := ch.c.funcTypes[f]
	if t == nil || v.fn.hasArgs {
		cls := &classInfo{name: "function " + v.fn.name, lambda: &lambdaInfo{over: v.fn}, state: 2, declared: true}
		t = &ctype{kind: tClass, class: cls, size: 1, align: 1}
		cls.typ = t
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
		if t.kind != tClass || t.class.scope == nil || t.class.lambda != nil {
			continue
		}
		funcs = ch.addFriends(funcs, name, t.class)
		ns := t.class.scope.namespaceOf()
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
func (ch *chooser) addFriends(funcs []*funcEnt, name string, cls *classInfo) []*funcEnt {
	ch.c.declareMembers(cls)
next:
	for _, f := range cls.friends[name] {
		for _, o := range funcs {
			if o == f {
				continue next
			}
		}
		funcs = append(funcs[:len(funcs):len(funcs)], f)
	}
	for _, b := range cls.bases {
		if b.kind == tClass {
			funcs = ch.addFriends(funcs, name, b.class)
		}
	}
	return funcs
}

// operatorCands collects the operator functions that may apply: methods of the first operand, functions in scope
// and in the namespaces of the operands' classes.
func (ch *chooser) operatorCands(op Operator, args []value) []*funcEnt {
	key := operatorKey(op)
	var funcs []*funcEnt
	if ent := ch.lookupOperator(key); ent != nil {
		for _, f := range ent.funcs {
			if f.class == nil {
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
			all = mergeEntities(all, x)
		}
	}
	return all
}

// convertsToArith reports whether every operand is a number or converts to one.
func (ch *chooser) convertsToArith(args []value) bool {
	for i := range args {
		t := args[i].q.T
		if t.kind == tClass && len(ch.c.methods(t, "(conversion)")) == 0 {
			return false
		}
	}
	return true
}
