//go:build !unix

package apple

// mapPages returns zeroed memory, n bytes at a multiple of Apple's page. Only the tests get here.
func mapPages(n int) (pages, mapping []byte, err error) {
	mapping = make([]byte, n+pageBytes)
	return aligned(mapping, n), mapping, nil
}

func unmapPages([]byte) error { return nil }
