package kit

import "github.com/mlxlua/mlxlua/tensor"

// FewRows is the most rows of a product that are few. The order in which a product is added up depends on its depth,
// its dtype, how its matrix lies, and whether its rows are few: on nothing else. So a result has the same bytes on any
// device, with any number of threads, and beside any other rows, as long as these do not make its rows many.
const FewRows = 16

// Few reports whether a product of so many rows is one of few. Under [tensor.SetBatchInvariant] all are.
func Few(r *tensor.Run, rows int) bool { return rows <= FewRows || r.BatchInvariant() }
