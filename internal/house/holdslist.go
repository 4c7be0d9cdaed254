package house

// heldCode is code that may hold Lua values or arrays: folder and variable; folder, type and field, or * for all fields
// of a type; or folder, function, and a variable that a function in it captures.
var heldCode = map[string]heldValue{
	// What there is from the start, and holds no array but by what looks walk or compare (looks.libraries).
	"luabind.State.dtypes":                      {isRoot, "a look asks each for what a script has given it"},
	"luabind.State.metas":                       {isRoot, "scripts come to that of shapes only, which is walked"},
	"luabind.State.tracer":                      {isRoot, "a function of Go's without upvalues"},
	"luabind.arrayType.*":                       {isRoot, "scripts cannot come to them"},
	"luabind.module.*":                          {isRoot, "mx and its modules: fixed tables, which looks compare"},
	"luabind.module.refuseUnknownIn.module":     {isRoot, "one of mx's modules"},
	"luabind.looks.dtypes":                      {isRoot, "State.dtypes"},
	"luabind/lua51.State.L":                     {isRoot, "the running thread: State.Threads"},
	"luabind/lua51.State.handler":               {isRoot, "a function of Go's without upvalues"},
	"luabind/lua51.State.spares":                {isRoot, "threads without frames; State.Roots visits their environments"},
	"luabind/lua51.State.basic":                 {isRoot, "State.Roots visits it"},
	"luabind/lua51.State.folds":                 {isRoot, "libraries: a look compares them"},
	"luabind/lua51.State.folding":               {isRoot, "scripts cannot come to it"},
	"luabind/lua51.fold.*":                      {isRoot, "entries of libraries that no script has come to yet"},
	"luabind/lua51.protection.*":                {isRoot, "State.Threads and State.Roots visit them"},
	"luabind/lua51.State.openCoroutines.create": {isRoot, "gopher-lua's own function"},
	"luabind/lua51.State.openCoroutines.resume": {isRoot, "gopher-lua's own function"},
	"luabind.param.value":                       {isRoot, "a default, which is a number, a text or a list of such"},
	"luabind.someAxes":                          {isRoot, "lists of numbers"},
	"luabind/reach.numbers":                     {isRoot, "numbers"},
	"luabind/reach.Walker.Global":               {isRoot, "the table of globals"},
	"luabind/reach.Walker.Plain":                {isRoot, "a metatable that scripts cannot come to"},
	"luabind/reach.Walker.skipped":              {isRoot, "tables that scripts cannot come to"},
	"luabind/reach.Fixed.*":                     {isRoot, "every look compares it"},
	"luabind.compiledFunction.held":             {isRoot, "kept for their addresses: nobody looks into them"},

	// What is used while nobody looks.
	"luabind.args.*":            {passing, "what a row is called with is on its stack"},
	"luabind.capture.ud":        {passing, "compiledFunction.captured tells of those of a call under way"},
	"luabind.trail.key":         {passing, "a key on the way of a walk, and after that for messages"},
	"luabind.capturer.*":        {passing, "a walk of what a function reaches, during which no Lua code runs"},
	"luabind.choice.*":          {passing, "arguments of a gradient, below which nobody looks"},
	"luabind.replacement.*":     {passing, "trees are filled without a call of Lua"},
	"luabind.outline.*":         {passing, "outlines are made without a call of Lua"},
	"luabind.treeWalk.*":        {passing, "trees are walked without a call of Lua"},
	"luabind.shown.within":      {passing, "values are shown by the host, or by functions below which nobody looks"},
	"luabind.looks.threads":     {isRoot, "a look's list, empty when it is over"},
	"luabind/reach.Walker.todo": {isRoot, "what a walk has yet to look at, empty when it is over"},
}
