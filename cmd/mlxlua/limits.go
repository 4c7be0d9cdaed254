package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mlxlua/mlxlua/luabind"
)

// limits are the options that say what scripts may take and use.
type limits struct {
	read, write, modules   []string
	memory, arrays, source int64
	written                int64
	instructions           int64
	time, kernelTime       time.Duration
	onlySandbox            string // an option that needs --sandbox
}

// option is what reads the value of an option, nil of one that is no limit.
func (l *limits) option(name string) func(value string) error {
	path := func(into *[]string) func(string) error {
		return func(value string) error {
			if _, err := os.Stat(value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			*into, l.onlySandbox = append(*into, value), name
			return nil
		}
	}
	size := func(into *int64) func(string) error {
		return func(value string) (err error) {
			*into, err = parseSize(name, value)
			return err
		}
	}
	duration := func(into *time.Duration) func(string) error {
		return func(value string) (err error) {
			if *into, err = time.ParseDuration(value); err != nil || *into <= 0 {
				return fmt.Errorf("%s %s: want a time such as 500ms or 2.5s", name, value)
			}
			return nil
		}
	}
	switch name {
	case "--allow-read":
		return path(&l.read)
	case "--allow-write":
		return path(&l.write)
	case "--modules":
		return path(&l.modules)
	case "--max-memory":
		return size(&l.memory)
	case "--max-arrays":
		return size(&l.arrays)
	case "--max-written":
		l.onlySandbox = name
		return size(&l.written)
	case "--max-source":
		return size(&l.source)
	case "--max-instructions":
		return size(&l.instructions)
	case "--max-time":
		return duration(&l.time)
	case "--max-kernel-time":
		return duration(&l.kernelTime)
	}
	return nil
}

// parseSize reads a positive number, with K, M or G behind it for 2^10, 2^20 and 2^30.
func parseSize(name, value string) (int64, error) {
	digits, shift := value, 0
	if last := len(value) - 1; last >= 0 {
		if i := strings.IndexByte("KMG", value[last]); i >= 0 {
			digits, shift = value[:last], 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%s %s: want a positive number, such as 65536 or 64M", name, value)
	}
	return n << shift, nil
}

// apply enters the limits into a state's options.
func (l *limits) apply(opt *luabind.Options, sandbox bool) error {
	if !sandbox && l.onlySandbox != "" {
		return fmt.Errorf("%s is for --sandbox: without it scripts may use all files", l.onlySandbox)
	}
	if sandbox {
		l.memory, l.arrays = cmp.Or(l.memory, 256<<20), cmp.Or(l.arrays, 1<<30)
		l.source, l.written = cmp.Or(l.source, 1<<20), cmp.Or(l.written, 1<<30)
	}
	opt.Sandbox, opt.Read, opt.Write = sandbox, l.read, l.write
	opt.WriteBytes = l.written
	opt.Limits.Memory, opt.Limits.Instructions, opt.Limits.Source = l.memory, l.instructions, l.source
	opt.Limits.Arrays, opt.Limits.Time, opt.Limits.Kernels = l.arrays, l.time, l.kernelTime
	if n := len(l.modules); n > 0 {
		root, err := os.OpenRoot(l.modules[n-1]) // whose links do not lead out of it
		if err != nil {
			return fmt.Errorf("--modules: %w", err)
		}
		opt.Modules = root.FS()
	}
	return nil
}
