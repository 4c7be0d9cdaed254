// Package hub knows the cache in which the tools of the model hub keep what they have downloaded: where it is, and how
// a model in it is found. It asks nothing of the network; hub/fetch downloads.
//
// A repository org/name lies in the folder models--org--name of the cache:
//
//	blobs/HASH                   the files' bytes, by their hashes
//	refs/main                    the commit that a branch or tag stood for when it was last asked for
//	snapshots/COMMIT/config.json a link to ../../blobs/HASH, or the file itself where links cannot be made
//	trees/COMMIT.json            what the hub lists for a commit
package hub
