package tokenizer

// readSplitters reads the pre_tokenizer of the file; a Sequence becomes its members.
func readSplitters(s *section) ([]splitter, error) {
	var out []splitter
	switch kind := s.kind(); kind {
	case "Sequence":
		for _, member := range s.list("pretokenizers") {
			more, err := readSplitters(member)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
	case "ByteLevel":
		b := byteWords{cut: true}
		s.need("add_prefix_space", &b.prefix)
		s.value("use_regex", &b.cut)
		s.ignore("trim_offsets")
		out = []splitter{b, byteMap{}}
	case "Split":
		sp := &splitPattern{pattern: readPattern(s), how: readBehavior(s, "")}
		s.need("invert", &sp.invert)
		out = []splitter{sp}
	case "Metaspace":
		out = []splitter{readMetaspace(s)}
	case "Whitespace":
		out = []splitter{splitWords{}}
	case "WhitespaceSplit":
		out = []splitter{&splitChars{of: space, how: removed}}
	case "BertPreTokenizer":
		out = []splitter{&splitChars{of: space, how: removed}, &splitChars{of: bertPunct, how: isolated}}
	case "Punctuation":
		out = []splitter{&splitChars{of: bertPunct, how: readBehavior(s, "Isolated")}}
	case "Digits":
		individual := false
		s.need("individual_digits", &individual)
		how := contiguous
		if individual {
			how = isolated
		}
		out = []splitter{&splitChars{of: numeric, how: how}}
	case "CharDelimiterSplit", "Delimiter":
		sc := &splitChars{how: removed}
		s.char("delimiter", &sc.char)
		out = []splitter{sc}
	case "FixedLength":
		f := fixedLength{chars: 5}
		s.value("length", &f.chars)
		if f.chars < 1 {
			s.fail("length is %d, at least 1", f.chars)
		}
		out = []splitter{f}
	case "UnicodeScripts":
		out = []splitter{splitScripts{}}
	default:
		s.fail("does not know the pre-tokenizer %q", kind)
	}
	return out, s.finish()
}

func readBehavior(s *section, name string) behavior {
	if name == "" {
		s.need("behavior", &name)
	} else {
		s.value("behavior", &name)
	}
	how, known := behaviors[name]
	if !known {
		s.fail("does not know the behavior %q", name)
	}
	return how
}

// readMetaspace reads the settings that the pre-tokenizer and the decoder share.
func readMetaspace(s *section) *metaspace {
	m := &metaspace{prepend: "always", cut: true}
	prefix := true
	s.char("replacement", &m.char)
	m.text = string(m.char)
	s.value("prepend_scheme", &m.prepend)
	s.value("split", &m.cut)
	s.value("add_prefix_space", &prefix)
	s.ignore("str_rep")
	switch {
	case m.prepend != "always" && m.prepend != "first" && m.prepend != "never":
		s.fail("does not know the prepend_scheme %q", m.prepend)
	case !prefix && m.prepend != "never" && s.has("prepend_scheme"):
		s.fail("add_prefix_space is false, but prepend_scheme is %q", m.prepend)
	case !prefix:
		m.prepend = "never"
	}
	return m
}
