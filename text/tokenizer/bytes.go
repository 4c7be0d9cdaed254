package tokenizer

// What entries of Go's maps take beside their texts, at the usual share of used slots.
const (
	idEntryBytes    = 40 // string to int32
	nameEntryBytes  = 40 // int32 to string
	addedEntryBytes = 400
	pairSlotBytes   = 16
	besidesBytes    = 8 << 10 // normalizers, splitters and tables of bytes
)

// Bytes is about how much of Go's memory the tokenizer takes.
func (t *Tokenizer) Bytes() int64 {
	n := int64(besidesBytes) + t.model.bytes()
	for _, a := range t.added.byID {
		n += addedEntryBytes + 8*int64(len(a.Content))
	}
	for _, raw := range t.lengths {
		n += int64(len(raw))
	}
	return n
}

func (v *vocabulary) bytes() int64 {
	n := int64(len(v.ids))*idEntryBytes + int64(len(v.names))*nameEntryBytes
	for token := range v.ids {
		n += int64(len(token))
	}
	return n
}

func (m *bpe) bytes() int64 {
	n := m.vocabulary.bytes() + m.merges.bytes()
	if m.raw != nil {
		n += int64(len(m.raw.words)) * idEntryBytes
		for token := range m.raw.words {
			n += int64(len(token))
		}
	}
	return n
}

func (m *unigram) bytes() int64 {
	return m.vocabulary.bytes() + 8*int64(cap(m.scores)) + m.trie.bytes()
}

func (m *wordPiece) bytes() int64 { return m.vocabulary.bytes() + m.trie.bytes() }

func (p *pairs) bytes() int64 { return pairSlotBytes * int64(len(p.slots)) }
