// Package tensor is the spine: arrays, the graph behind them, and its evaluation. It knows no op by name: everything
// the engine does with one goes through its Rules.
//
// A file's name begins with the stage of a call that it is about. In the order of a call's way:
//
//	spec      what is known of an array before it is computed: dtype, shape
//	graph     building: arrays, nodes, ops and their rules, transforms' hold on the graph
//	device    where calls run: the opened devices and their streams
//	submit    handing arrays over to be computed
//	claim     going over the graph behind them and taking what nobody has taken
//	plan      deciding what is stored, what is computed in one kernel, and in which order
//	record    turning that into command buffers
//	step      the same again: a compiled function's commands, kept and encoded on other buffers
//	memory    the buffers behind arrays, from the record stage until nobody can read them
//	complete  what becomes of nodes when the commands have run
//	read      the bytes of an array, for Go programs and Lua
//	watch     looking on: the timeline and the search for NaNs
//
// The words, in the same order:
//
//   - An array (Array) is what programs hold: a handle on one output of a node.
//   - A handle is an Array seen from the graph. Nodes never refer to it; that it is gone says that nobody reads the
//     output.
//   - A node (Node) is a call of an op with the values that it reads.
//   - An output is what a node computes: shape and dtype from the start, a view of memory once it is recorded.
//   - A value (Value) is an output as other nodes name it: the node and the output's number.
//   - A constant is a node that was made from data and is ready at once.
//   - A trace (Trace) is a transform's hold on the graph: nodes that depend on its inputs keep what they read.
//   - A placeholder is an input of a trace that has no value.
//   - A stream (Stream) is a queue of work on a device, with one goroutine that claims, plans and records.
//   - A root is a value that somebody asked for.
//   - A job is one call of Eval or AsyncEval: its roots, and all that it took for them.
//   - Claiming is to go over the graph behind a job's roots and to take every node that no job has taken.
//   - A task is a node that was claimed, with the values that it reads.
//   - A slot is a task's place in its segment.
//   - A segment is a run of a job's tasks on one stream, inputs first.
//   - An output is live if somebody may read it after its segment: it must be stored.
//   - A cluster is a set of element-wise tasks, perhaps with the reduction that reads them, that one kernel computes.
//   - A unit is what is recorded in one go: a cluster, or one task of any other kind.
//   - A recorder turns a stream's segments into command buffers, unit by unit. Its placer knows in which memory values
//     lie, its executor encodes what needs no rule of an op's own: kernels that are printed, copies and views.
//   - A chain (metal.Chain) is the command buffers of a job on a stream: interrupted together.
//   - A batcher collects what is recorded into batches; a batch is a command buffer with the nodes that it computes.
//   - An allocator finds the memory of what is recorded: from the units before, or from the device.
//   - A temporary is a buffer that one unit needs and gives back.
//   - A recording (Recording) is a compiled function's graph for inputs of certain shapes: a call of it is one node.
//   - A take is the commands of a recording for inputs that lie in certain ways. A seat is a buffer's place in it.
//   - A storage is a buffer that outputs lie in; several may lie in one, as views.
//   - A replica is a copy of a part of a storage in another device's memory.
//   - A storage group is a few small storages that one clean-up of Go's collector serves.
//   - A holder (Holder) is a program that can tell which of its arrays it still reaches: a Lua state. An array escapes
//     it when another program may hold it too.
//   - A look (Look) is a holder's telling: what it does not reach is unreachable from then on.
//   - An epoch is a look's number. An output has that of the last look that reached it.
//   - To donate is to give an output the storage of an operand that nothing reads after it.
//   - An output is spent when its last reader is recorded: its storage serves later calls. It is gone when that reader
//     has run.
//   - Settling makes a batch's nodes ready, or failed with their error.
//   - A change (Change) is new values that take the place of old ones in what a program holds. The old ones are kept
//     until the new ones cannot fail.
//   - A gate is a place in a chain: the commands behind it run if nothing has failed that would make a change undone.
//   - Undoing takes back that a node was claimed, since its job was stopped before the node's commands had run.
package tensor
