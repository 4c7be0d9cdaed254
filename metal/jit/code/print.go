package code

import "strconv"

// String returns the register's class and number; virtual ones have a % in front.
func (r R) String() string {
	s := "?gvk"[r.Class()&3 : r.Class()&3+1]
	switch {
	case r == 0:
		return "none"
	case r.Virtual() || r.Class() >= NumClasses:
		return "%" + s + strconv.Itoa(r.Num()-FirstVirtual)
	}
	return s + strconv.Itoa(r.Num())
}
