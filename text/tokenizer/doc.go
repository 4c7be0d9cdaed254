// Package tokenizer turns text into the numbers that a language model reads, and back. It reads the tokenizer.json that
// models are published with, and gives the same ids as the Python package tokenizers (0.23.3) for every text.
//
// A text passes through these stages, each described by one part of the file; added.go cuts out added tokens before the
// second and before the third.
//
//	file                                stage                                    files
//	normalizer                          changes characters                       normal*.go
//	pre_tokenizer                       splits into words                        split*.go, scan*.go, pattern*.go
//	model                               splits a word into tokens                bpe*.go, unigram.go, wordpiece.go
//	truncation, post_processor, padding cuts, adds [CLS] and its like, fills up  process.go, fit.go
//	decoder                             makes text of tokens                     decode.go, decoders.go
//
// What the file says of truncation and padding is done by a tokenizer that was asked for it, by Fitted, and no other.
//
// gguf.go makes such a file of what a .gguf file says of its tokenizer.
//
// A part of the file that this package does not know, or a key in a part, is an error that names it: a tokenizer that
// is almost right is worse than none.
package tokenizer
