// Package fetch downloads models from the hub into the cache of package hub. Nothing is downloaded but by a call of
// Pull, and only what a model needs.
//
//	file          what
//	pull.go       a pull from its request to the path of the model
//	choose.go     which files of a repository a model needs
//	tree.go       what the hub lists for a commit, and which names and hashes of it are refused
//	client.go     requests: redirects, the token, what an answer means, when to try again
//	blob.go       one file: resumed, counted, compared with its hash, put in its place
//	snapshot.go   a snapshot's links, made when all blobs are there
//	lock*.go      one program at a time writes a blob
//
// A file is written as blobs/HASH.incomplete and gets its name when its hash is right; the snapshot's links are made
// when all of its blobs are there, and the branch stands for the commit last. So whatever ends a pull, a reader of the
// cache sees a whole model or none, and the next pull goes on from what has come.
package fetch
