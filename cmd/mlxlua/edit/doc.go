// Package edit edits entries of one or more lines on a terminal, with a history that can be searched, completion and
// undo. It asks the terminal nothing, so that it serves those that give no answers.
package edit
