package kit

import "github.com/mlxlua/mlxlua/tensor"

// FewRows is the most rows of a product that are few: of all those that one matrix is multiplied by, also a batch of
// them. The order in which a product is added up depends on its shape without the rows, its dtype, how its operands
// lie, and whether its rows are few. So a result has the same bytes on any device, with any number of threads, and
// beside any other rows, as long as these do not make its rows many. GPUs, which add up in pieces, have one order of
// their own: see NewPieces.
const FewRows = 16

// Few reports whether a product of so many rows is one of few. Under [tensor.SetBatchInvariant] all are.
func Few(r *tensor.Run, rows int) bool { return rows <= FewRows || r.BatchInvariant() }
