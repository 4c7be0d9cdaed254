//go:build unix && !linux

package soft

// adviseLarge does nothing: this system chooses its pages by itself.
func adviseLarge([]byte) {}
