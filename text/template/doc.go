// Package template renders the chat templates that models are published with. They are written in Jinja; this package
// gives the text that Python's transformers (5.24) gives, which renders them with jinja2 in its sandbox for immutable
// values, with trim_blocks, lstrip_blocks, break and continue, generation blocks, its own tojson, raise_exception and
// strftime_now.
//
// A template is a stranger's program. It sees nothing but the values that it is given, and Limits bound its time, its
// memory and its output.
//
// What no chat template can use is an error with its place: extends, include, import and block, because there are no
// other templates, and the filters pprint, random, urlize and wordwrap. What safe and escape make is ready for a web
// page: as in jinja2 it escapes what is put to it by + and %.
//
//	file                           what
//	lex.go, parse*.go              text to syntax tree
//	stmt.go, expr.go, scope.go     running the tree
//	value.go, order.go, ops.go     Python's values and operators
//	repr.go, json.go, format.go    Python's str, repr, json.dumps, % and format
//	methods*.go, filters*.go, tests.go, markup.go, globals.go   what templates can call
package template
