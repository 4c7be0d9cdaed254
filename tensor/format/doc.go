// Package format reads and writes arrays in the file formats of others: NumPy's .npy and .npz, .safetensors, and
// .gguf. It reads CSV and IDX.
//
// Files are mapped: what is read when a file is loaded is its header. The elements of an array are read when somebody
// needs them, and where the device allows it they are never copied: the array lies in the file's pages. So a file must
// not be changed in place while arrays of it are in use; to replace it by a rename, as the functions here do when they
// write, or to delete it, is harmless.
//
// Messages quote what a file says up to 99 characters.
//
// What a file says is checked before it is believed. A file that is cut short, or whose numbers do not fit each other,
// is an error that names the file and the place in it, and makes no allocation beyond a small multiple of its size.
package format
