package tensor

import "time"

// ExpectCollection has the default stream's planner believe that a collection takes that long, and proves much.
func ExpectCollection(took time.Duration) error {
	s, err := DefaultStream(DefaultDevice())
	if err != nil {
		return err
	}
	s.pace = pace{took: took, factor: 1}
	return nil
}
