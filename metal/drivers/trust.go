package drivers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/mlxlua/mlxlua/metal"
)

// The driver of Apple's GPUs has been run by nobody who wrote it. So "auto" takes such a GPU only where the doctor's
// checks have passed: with this program, this system and this GPU, which a file says in the user's folder of caches.

// notePath is that file.
func notePath() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "mlxlua", "metal-checked"), nil
}

// note is what the file says of a device.
func note(i metal.Info) string {
	program := ""
	if b, ok := debug.ReadBuildInfo(); ok {
		program = b.Main.Version
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
				program += " " + s.Value
			}
		}
	}
	return fmt.Sprintf("%s\n%s\n%s\n", program, i.Name, i.Version)
}

// Trust notes that a device has passed the doctor's checks, so that "auto" takes it.
func Trust(i metal.Info) error { return trust(notePath, i) }

func trust(path func() (string, error), i metal.Info) error {
	file, err := path()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(note(i)), 0o600)
}

// Distrust takes back what Trust noted.
func Distrust() error {
	file, err := notePath()
	if err == nil {
		err = os.Remove(file)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// errUnchecked is why "auto" does not take a device.
var errUnchecked = errors.New(`"auto" takes it once mlxlua doctor --device metal has passed here`)

// trusted opens a device that has passed the doctor's checks.
func trusted(path func() (string, error), open func() (metal.Driver, error)) (metal.Driver, error) {
	file, err := path()
	if err != nil {
		return nil, errUnchecked
	}
	noted, err := os.ReadFile(file)
	if err != nil {
		return nil, errUnchecked
	}
	d, err := open()
	if err != nil {
		return nil, err
	}
	if string(noted) != note(d.Info()) {
		return nil, errors.Join(errUnchecked, d.Close())
	}
	return d, nil
}
