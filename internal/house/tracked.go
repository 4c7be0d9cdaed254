package house

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxTracked bounds the size of a file that git tracks, in bytes.
const maxTracked = 1_000_000

// programs are the first bytes of executable files and libraries.
var programs = []struct{ format, magic string }{
	{"ELF", "\x7fELF"},
	{"Mach-O", "\xcf\xfa\xed\xfe"}, {"Mach-O", "\xce\xfa\xed\xfe"},
	{"Mach-O", "\xfe\xed\xfa\xce"}, {"Mach-O", "\xfe\xed\xfa\xcf"}, {"Mach-O", "\xca\xfe\xba\xbe"},
	{"PE", "MZ"},
}

// checkTracked finds programs and files larger than maxTracked among names, which are relative to root. A name that is
// missing in root is passed over: it has been removed but not committed.
func checkTracked(root string, names []string) (faults []string, err error) {
	for _, name := range names {
		full := filepath.Join(root, filepath.FromSlash(name))
		info, err := os.Lstat(full)
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		if info.Size() > maxTracked {
			faults = append(faults, fmt.Sprintf("%s: %d bytes, at most %d", name, info.Size(), maxTracked))
		}
		head, err := readHead(full)
		if err != nil {
			return nil, err
		}
		for _, p := range programs {
			if bytes.HasPrefix(head, []byte(p.magic)) {
				faults = append(faults, fmt.Sprintf("%s: a program (%s)", name, p.format))
			}
		}
	}
	return faults, nil
}

// readHead reads the first four bytes of a file, fewer where it is shorter.
func readHead(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 4)
	n, err := io.ReadFull(f, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return head[:n], err
}
