package msl

import "strings"

// pragmaWords are the pragmas about floating point: their name, and for each setting's spelling its value.
var pragmaWords = map[string]map[string]string{
	"contract":    {"off": "off", "on": "on", "fast": "fast"},
	"reassociate": {"off": "off", "on": "on"},
	"math_mode":   {"safe": "safe", "relaxed": "relaxed", "fast": "fast"},
}

// Wishes of a #pragma before a loop.
const (
	wishNone uint8 = iota
	wishUnroll
	wishLoop
)

// wishFlags mark the word that starts the loop of a wish.
var wishFlags = [...]uint8{wishUnroll: fUnroll, wishLoop: fKeepLoop}

// wishOf returns what the loop that a token starts is asked to become.
func (t *token) wishOf() uint8 {
	switch {
	case t.flags&fUnroll != 0:
		return wishUnroll
	case t.flags&fKeepLoop != 0:
		return wishLoop
	}
	return wishNone
}

// loopPragma understands unroll, unroll(4), nounroll and clang loop unroll(full).
func (p *preproc) loopPragma(list []token) bool {
	if len(list) > 2 && list[0].text == "clang" && list[1].text == "loop" {
		list = list[2:]
	}
	switch list[0].text {
	case "unroll":
		p.wish = wishUnroll
		for _, t := range list[1:] {
			if t.text == "disable" || t.text == "1" {
				p.wish = wishLoop
			}
		}
	case "nounroll":
		p.wish = wishLoop
	default:
		return false
	}
	return true
}

// pragma obeys #pragma. What changes meaning becomes a token, what asks to unroll a loop a flag of the loop's first
// one; all else says how to optimise, and is ignored.
func (p *preproc) pragma(at *token, list []token) {
	if len(list) == 0 || p.loopPragma(list) || len(list) < 2 {
		return
	}
	switch {
	case list[0].text == "STDC" && list[1].text == "FP_CONTRACT":
		value := ""
		if len(list) == 3 {
			value = strings.ToLower(list[2].text)
		}
		if value == "default" {
			value = "on"
		}
		p.pragmaSetting(at, "contract", value)
	case (list[0].text == "clang" || list[0].text == "METAL") && list[1].text == "fp":
		list = list[2:]
		if len(list) == 0 {
			p.errorf(BadPragma, at, "#pragma fp needs a setting, such as contract(off)")
		}
		for len(list) > 0 {
			if len(list) < 4 || list[0].kind != tIdent || list[1].kind != tLParen || list[3].kind != tRParen {
				p.errorf(BadPragma, at, "#pragma fp needs settings such as contract(off), not %s", list[0].name())
				return
			}
			if pragmaWords[list[0].text] != nil {
				p.pragmaSetting(at, list[0].text, list[2].text)
			}
			list = list[4:]
		}
	}
}

func (p *preproc) pragmaSetting(at *token, name, value string) {
	v, ok := pragmaWords[name][value]
	if !ok {
		p.errorf(BadPragma, at, "'%s' is no setting of the pragma %s", clip(value), name)
		return
	}
	t := *at
	t.kind, t.text, t.sym = tPragma, name+"="+v, 0
	p.emit(&t)
}

// pragmaOperator obeys _Pragma("text"), whose tokens are the last ones of the result, from n on.
func (p *preproc) pragmaOperator(n int) {
	at := p.out[n]
	b, msg := unescape(trimQuotes(p.out[n+2].text))
	p.out = p.out[:n]
	if msg != "" {
		p.errorf(BadPragma, &at, "_Pragma: %s", msg)
		return
	}
	sc := scanner{text: string(b), syms: p.syms}
	var list []token
	for t := sc.next(); t.kind != tEOF; t = sc.next() {
		t.src, t.off, t.mac = at.src, at.off, at.mac
		list = append(list, t)
	}
	at.text = "_Pragma"
	p.pragma(&at, list)
}
