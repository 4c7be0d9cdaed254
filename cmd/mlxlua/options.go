package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxlua/mlxlua/luabind"
)

const usage = `usage: mlxlua [options] [script [args]]
       mlxlua lm COMMAND [options]   runs language models: mlxlua lm --help
       mlxlua doctor [--device NAME]   say what works here, and check it
       mlxlua bench [ROW...]   print what the machine reaches on one thread to all, in about a minute
       mlxlua new FILE     write a script to begin with
  -e STAT        execute string STAT
  -l NAME        require library NAME
  -i             enter the REPL after the script
  -E             ignore LUA_INIT and the REPL's start-up file
  -v             print the version
  -              execute standard input
  --             stop handling options
  --device NAME  auto (default), cpu, cuda, metal; a device that is missing is an error
  --seed N       seed of the random numbers
  --sandbox      run scripts without files, processes and the debug library, in 256 MiB of Lua's memory
                 and 1 GiB of arrays
  --allow-read PATH, --allow-write PATH, --modules DIR
                 what scripts in the sandbox may mx.load, mx.save and require
  --max-memory SIZE, --max-arrays SIZE, --max-source SIZE, --max-written SIZE,
  --max-instructions N, --max-time DURATION, --max-kernel-time DURATION
                 limits of a script, such as 64M, 1000000, 2.5s
  --trace FILE   write a timeline for Chrome's about:tracing when the run ends
  --strict       a condition that is an array, which is always true, is an error instead of a warning
  --profile      print where the time went, by op, kernel and line, when the run ends
  --emit-types DIR
                 write mx.lua, annotations for the Lua language server, to a folder and exit
  --check-nan    stop at the first operation that makes a NaN or an infinity
  --version      print the version and exit
  --help         print this and exit
Without a script, options or input from elsewhere, mlxlua is a REPL.
The exit status is that of os.exit; 0: all went well; 1: an error of the script, of an option or of a file, or
of work that the script handed over and never looked at; 143: SIGTERM, after which no file stays half written.
`

// options are the program's arguments.
type options struct {
	actions     []action // -e and -l, in order
	interactive bool
	version     bool
	help        bool
	device      string
	seed        uint64
	trace       string
	checkNaN    bool
	profile     bool
	emitTypes   string
	sandbox     bool
	limits      limits
	strict      bool
	doctor      bool
	bench       bool   // args are the rows
	newScript   string // the file that "new" writes
	// ignoreEnvironment is -E: neither LUA_INIT nor the start-up file are run.
	ignoreEnvironment bool
	hasScript         bool
	script            string
	args              []string
	exitVersion       bool // --version
}

type action struct {
	require bool
	text    string
}

// onlyVersion reports whether printing the version was all.
func (o *options) onlyVersion() bool {
	return o.exitVersion || !o.interactive && !o.hasScript && len(o.actions) == 0
}

// parseArgs reads the arguments after the program's name.
func parseArgs(argv []string) (*options, error) {
	o := &options{device: "auto"}
	if done, err := o.command(argv); done || err != nil {
		return o, err
	}
	for len(argv) > 0 {
		a := argv[0]
		if a == "-" || !strings.HasPrefix(a, "-") {
			o.hasScript, o.script, o.args = true, a, argv[1:]
			return o, nil
		}
		argv = argv[1:]
		if a == "--" {
			if len(argv) > 0 {
				o.hasScript, o.script, o.args = true, argv[0], argv[1:]
			}
			return o, nil
		}
		var err error
		if argv, err = o.flag(a, argv); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// command reads one of the commands that are no scripts. A script of that name is run as ./doctor.
func (o *options) command(argv []string) (bool, error) {
	switch {
	case len(argv) > 0 && argv[0] == "doctor":
		if argv = argv[1:]; len(argv) > 0 { // --device NAME, or --device=NAME
			name := argv[0]
			rest, err := o.flag(name, argv[1:])
			if err != nil {
				return false, err
			}
			if len(rest) > 0 || !strings.HasPrefix(name, "--device") {
				return false, errors.New("doctor takes --device and no more")
			}
		}
		o.doctor = true
		return true, nil
	case len(argv) > 0 && argv[0] == "bench":
		o.bench, o.args, o.device = true, argv[1:], "cpu"
		return true, nil
	case len(argv) > 0 && argv[0] == "new":
		if len(argv) != 2 || argv[1] == "" {
			return false, errors.New("new needs the name of a file to write")
		}
		o.newScript = argv[1]
		return true, nil
	}
	return false, nil
}

// flag reads one option and gives the arguments that are left.
func (o *options) flag(a string, rest []string) ([]string, error) {
	name, value, attached := strings.Cut(a, "=")
	if !strings.HasPrefix(a, "--") && len(a) > 2 { // -eSTAT, -lNAME
		name, value, attached = a[:2], a[2:], true
	}
	take := func() error {
		if attached {
			return nil
		}
		if len(rest) == 0 {
			return fmt.Errorf("%s needs an argument", name)
		}
		value, rest = rest[0], rest[1:]
		return nil
	}
	var err error
	if set := o.limits.option(name); set != nil {
		if err = take(); err == nil {
			err = set(value)
		}
		return rest, err
	}
	switch name {
	case "-e", "-l":
		if err = take(); err == nil {
			o.actions = append(o.actions, action{require: name == "-l", text: value})
		}
		return rest, err
	case "--device":
		if err = take(); err == nil {
			o.device = value
		}
		return rest, err
	case "--emit-types":
		if err = take(); err == nil {
			if o.emitTypes = value; value == "" {
				err = fmt.Errorf("--emit-types needs the name of a folder")
			}
		}
		return rest, err
	case "--trace":
		if err = take(); err == nil {
			if o.trace = value; value == "" {
				err = fmt.Errorf("--trace needs a file name")
			}
		}
		return rest, err
	case "--seed":
		if err = take(); err == nil {
			if o.seed, err = strconv.ParseUint(value, 10, 64); err != nil {
				err = fmt.Errorf("--seed %s: want an integer from 0 to 2^64-1", value)
			}
		}
		return rest, err
	}
	if attached {
		return nil, unrecognized(a, name)
	}
	switch name {
	case "-i":
		o.interactive = true
	case "--sandbox":
		o.sandbox = true
	case "-E":
		o.ignoreEnvironment = true
	case "--strict":
		o.strict = true
	case "--profile":
		o.profile = true
	case "--check-nan":
		o.checkNaN = true
	case "-v":
		o.version = true
	case "--version":
		o.version, o.exitVersion = true, true
	case "--help", "-h":
		o.help = true
	default:
		return nil, unrecognized(a, name)
	}
	return rest, nil
}

// unrecognized is the error of an argument that begins with an unknown option: it names the one that is nearest.
func unrecognized(argument, name string) error {
	if best := luabind.Nearest(name, optionNames()); best != "" && best != name {
		return fmt.Errorf("unrecognized option '%s'\nmlxlua: did you mean %s?", argument, best)
	}
	return fmt.Errorf("unrecognized option '%s'", argument)
}

// optionNames are the options that --help lists.
func optionNames() []string {
	return slices.Compact(slices.Sorted(slices.Values(regexp.MustCompile(`--[a-z-]+`).FindAllString(usage, -1))))
}
