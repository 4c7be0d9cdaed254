package soft

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// fallbackMemory is what a machine is taken to have that does not tell.
const fallbackMemory = 8 << 30

// machineMemory returns how many bytes of memory the process may use: the smaller of the RAM and any limit on its
// control group.
func machineMemory() int64 {
	n := physicalMemory()
	if n <= 0 {
		n = fallbackMemory
	}
	return limited(n, cgroupLimits())
}

// limited returns the smallest of n and the positive limits.
func limited(n int64, limits []int64) int64 {
	for _, l := range limits {
		if l > 0 && l < n {
			n = l
		}
	}
	return n
}

// cgroupLimits returns the memory limits of the control groups that the process is in, outermost last.
func cgroupLimits() []int64 {
	if runtime.GOOS != "linux" {
		return nil
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	var out []int64
	for _, file := range cgroupFiles(string(groups)) {
		if text, err := os.ReadFile(file); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
				out = append(out, n) // "max" is no number
			}
		}
	}
	return out
}

// cgroupFiles lists the files that may hold limits, given what /proc/self/cgroup says: the groups and all around them.
func cgroupFiles(groups string) []string {
	var out []string
	for line := range strings.Lines(groups) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		root, file := "/sys/fs/cgroup", "memory.max"
		switch f[1] {
		case "":
		case "memory":
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for dir := strings.TrimSuffix(f[2], "/"); ; dir = dir[:strings.LastIndexByte(dir, '/')] {
			out = append(out, root+dir+"/"+file)
			if !strings.Contains(dir, "/") {
				break
			}
		}
	}
	return out
}

// field returns the value of the first line of a text that begins with name, up to a colon.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
