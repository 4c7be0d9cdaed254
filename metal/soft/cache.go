package soft

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// fallbackCache is what a processor is taken to have where the system does not tell: a usual size.
const fallbackCache = 1 << 20

// processorCache is the bytes of the second-level cache of processor 0, which no other processor shares on most of
// those that there are.
var processorCache = sync.OnceValue(func() int64 { return secondLevel("/sys/devices/system/cpu/cpu0/cache") })

// secondLevel reads the size from the folder in which Linux describes a processor's caches, one below each index*.
func secondLevel(folder string) int64 {
	caches, _ := filepath.Glob(filepath.Join(folder, "index*"))
	for _, cache := range caches {
		read := func(name string) string {
			b, _ := os.ReadFile(filepath.Join(cache, name))
			return strings.TrimSpace(string(b))
		}
		if read("level") != "2" || read("type") == "Instruction" {
			continue
		}
		if k, ok := strings.CutSuffix(read("size"), "K"); ok {
			if n, err := strconv.ParseInt(k, 10, 32); err == nil && n > 0 {
				return n << 10
			}
		}
	}
	return fallbackCache
}
