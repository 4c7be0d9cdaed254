package template

// expr is an expression; it knows where it stands.
type expr interface {
	eval(r *run) any
	at() int
}

// stmt is a statement.
type stmt interface{ exec(r *run) }

type place int

func (p place) at() int { return int(p) }

type (
	constant struct {
		place
		value any
	}
	variable struct {
		place
		name string
	}
	listExpr struct {
		place
		items []expr
		tuple bool
	}
	dictExpr struct {
		place
		keys, values []expr
	}
	attribute struct {
		place
		of   expr
		name string
	}
	subscript struct {
		place
		of, index expr
	}
	sliceExpr struct {
		place
		from, to, step expr // nil where not written
	}
	callExpr struct {
		place
		f    expr
		args arguments
	}
	filterExpr struct {
		place
		of   expr // nil in filter blocks: what was written
		name string
		f    func(r *run, c call) any
		args arguments
	}
	testExpr struct {
		place
		of   expr
		name string
		f    func(r *run, c call) bool
		args arguments
	}
	condExpr struct {
		place
		test, then, other expr // other nil without else
	}
	logicExpr struct {
		place
		or          bool
		left, right expr
	}
	notExpr struct {
		place
		of expr
	}
	signExpr struct {
		place
		minus bool
		of    expr
	}
	binaryExpr struct {
		place
		op          string
		left, right expr
	}
	concatExpr struct {
		place
		parts []expr
	}
	compareExpr struct {
		place
		first expr
		ops   []string
		rest  []expr
	}
)

// arguments are those of a call as written.
type arguments struct {
	args        []expr
	names       []string
	values      []expr // of the names
	star, stars expr   // *args and **kwargs
}

type (
	textStmt   struct{ text string }
	outputStmt struct{ of expr }
	forStmt    struct {
		place
		target    expr
		over      expr
		test      expr
		recursive bool
		body      []stmt
		other     []stmt
	}
	ifStmt struct {
		tests  []expr
		bodies [][]stmt
		other  []stmt
	}
	setStmt struct {
		target expr
		value  expr
	}
	setBlock struct {
		target expr
		filter *filterExpr
		body   []stmt
	}
	withStmt struct {
		targets, values []expr
		body            []stmt
	}
	macroStmt struct {
		place
		name     string
		params   []string
		defaults []expr // of the last parameters
		body     []stmt
		caller   bool // the body says caller
		varargs  bool
		kwargs   bool
	}
	callBlock struct {
		place
		call  *callExpr
		block *macroStmt
	}
	filterBlock struct {
		filter *filterExpr
		body   []stmt
	}
	blockStmt struct {
		scoped bool
		body   []stmt
	}
	printStmt      struct{ of []expr }
	generationStmt struct{ body []stmt }
	loopControl    struct{ stop bool } // break or continue
	nsTarget       struct {
		place
		name, attr string
	}
)

func (t *nsTarget) eval(r *run) any { panic("BUG: the target of an assignment is no value") }
