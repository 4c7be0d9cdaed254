package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// A scanner is a known split pattern, written by hand: the end of the match that begins at s[i:], or i if there is
// none.
type scanner func(c *classTable, s string, i int) int

const (
	gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

	contractions = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	blanks       = `\s*[\r\n]+|\s+(?!\S)|\s+`
	upperCase    = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
	lowerCase    = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	upperWord    = `[^\r\n\p{L}\p{N}]?` + upperCase + `*` + lowerCase + `+`
	capsWord     = `[^\r\n\p{L}\p{N}]?` + upperCase + `+` + lowerCase + `*`
	notHan       = `&&[^\p{Han}]]`
	kimiUpper    = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}` + notHan
	kimiLower    = `[\p{Ll}\p{Lm}\p{Lo}\p{M}` + notHan
	kimiPattern  = `[\p{Han}]+|[^\r\n\p{L}\p{N}]?` + kimiUpper + `*` + kimiLower + `+` + contractions +
		`?|[^\r\n\p{L}\p{N}]?` + kimiUpper + `+` + kimiLower + `*` + contractions +
		`?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|` + blanks
	cjkPattern   = "[一-龥\u3040-ゟ゠-ヿ]+" // the first one of Hiragana has no character
	bloomPattern = ` ?[^(\s|[.,!?…。，、।۔،])]+`
	asciiPunct   = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
)

// scanners are the patterns of published tokenizers that have a scanner.
var scanners = map[string]scanner{
	gpt2Pattern: scanGPT2,
	// cl100k, Llama 3
	contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|` + blanks: scanWords(3, 0),
	// Qwen 2
	contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|` + blanks: scanWords(1, 0),
	// Qwen 3.5
	contractions + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|` +
		blanks: scanWords(1, mark),
	// o200k, gpt-oss
	upperWord + contractions + `?|` + capsWord + contractions +
		`?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|` + blanks: scanCase(caseRules{digits: 3, suffix: true, slash: true}),
	// Mistral
	upperWord + `|` + capsWord + `|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|` + blanks: scanCase(caseRules{digits: 1,
		slash: true}),
	// Kimi K2
	kimiPattern: scanCase(caseRules{digits: 3, suffix: true, han: true}),
	// Bloom
	bloomPattern: scanBloom,
	// DeepSeek 3
	"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|" +
		`[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|` + blanks: scanDeepSeek,
	`'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+`:                                   scanCLIP,
	`<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+`: scanCLIP,
	`\p{N}{1,3}`: scanNumbers(3),
	`\p{N}`:      scanNumbers(1),
	cjkPattern:   scanCJK,
}

// contraction is the end of 's and its like at s[i:], or i.
func contraction(s string, i int, anyCase bool) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return i
	}
	fold := func(k int) byte {
		b := s[k]
		if anyCase && b >= 'A' && b <= 'Z' {
			b += 'a' - 'A'
		}
		return b
	}
	switch fold(i + 1) {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v':
		if i+2 < len(s) && fold(i+2) == 'e' {
			return i + 3
		}
	case 'l':
		if i+2 < len(s) && fold(i+2) == 'l' {
			return i + 3
		}
	}
	if anyCase && strings.HasPrefix(s[i+1:], "ſ") { // the long s folds to s
		return i + 1 + len("ſ")
	}
	return i
}

// blank is the end of \s+(?!\S)|\s+ at s[i:]: white space, but for the last one before something else.
func blank(c *classTable, s string, i int) int {
	end := c.run(s, i, space)
	if end == i || end == len(s) {
		return end
	}
	_, n := utf8.DecodeLastRuneInString(s[:end])
	if end-n > i {
		return end - n
	}
	return end
}

// blankLines is the end of \s*[\r\n]+|\s+(?!\S)|\s+ at s[i:].
func blankLines(c *classTable, s string, i int) int {
	end := c.run(s, i, space)
	if k := strings.LastIndexAny(s[i:end], "\r\n"); k >= 0 {
		return i + k + 1
	}
	return blank(c, s, i)
}

// numbers is the end of at most limit characters of \p{N} at s[i:].
func numbers(c *classTable, s string, i, limit int) int {
	for ; limit > 0 && i < len(s); limit-- {
		is, n := c.at(s, i)
		if is&number == 0 {
			break
		}
		i += n
	}
	return i
}

func scanNumbers(limit int) scanner {
	return func(c *classTable, s string, i int) int { return numbers(c, s, i, limit) }
}

func scanCJK(_ *classTable, s string, i int) int {
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if (r < 0x3040 || r > 0x30FF) && (r < '一' || r > '龥') {
			break
		}
		i += n
	}
	return i
}

func scanGPT2(c *classTable, s string, i int) int {
	if end := contraction(s, i, false); end > i {
		return end
	}
	j := i
	if s[i] == ' ' {
		j++
	}
	if j < len(s) {
		switch is, n := c.at(s, j); {
		case is&letter != 0:
			return c.run(s, j+n, letter)
		case is&number != 0:
			return c.run(s, j+n, number)
		case is&space == 0:
			return c.runNot(s, j+n, space|letter|number)
		}
	}
	return blank(c, s, i)
}

// scanWords is the pattern of cl100k: numbers of at most so many digits, and letters, which marks may count among.
func scanWords(digits int, marks class) scanner {
	letters := letter | marks
	return func(c *classTable, s string, i int) int {
		if end := contraction(s, i, true); end > i {
			return end
		}
		is, n := c.at(s, i)
		switch {
		case is&letters != 0:
			return c.run(s, i+n, letters)
		case is&number != 0:
			return numbers(c, s, i, digits)
		case is&newline == 0 && c.is(s, i+n, letters):
			return c.run(s, i+n, letters)
		}
		if end := others(c, s, i, space|letters|number); end > i {
			return c.run(s, end, newline)
		}
		return blankLines(c, s, i)
	}
}

// others is the end of " ?[^...]+" at s[i:], or i.
func others(c *classTable, s string, i int, not class) int {
	j := i
	if s[i] == ' ' {
		j++
	}
	if end := c.runNot(s, j, not); end > j {
		return end
	}
	return i
}

// caseRules are what the patterns that begin a word at a capital letter differ in.
type caseRules struct {
	digits int  // of a number, at most
	suffix bool // a word may end in 's and its like
	slash  bool // belongs to the other characters before it, as line ends do
	han    bool // Chinese characters are words of their own
}

// scanCase is the pattern of o200k, which begins a word at a capital letter.
func scanCase(rules caseRules) scanner {
	var not class
	if rules.han {
		not = han
	}
	return func(c *classTable, s string, i int) int {
		if end := c.run(s, i, not); end > i {
			return end
		}
		if end := caseWord(c, s, i, not); end > i {
			if rules.suffix {
				return contraction(s, end, true)
			}
			return end
		}
		if c.is(s, i, number) {
			return numbers(c, s, i, rules.digits)
		}
		if end := others(c, s, i, space|letter|number); end > i {
			for end < len(s) && (s[end] == '\r' || s[end] == '\n' || rules.slash && s[end] == '/') {
				end++
			}
			return end
		}
		return blankLines(c, s, i)
	}
}

const (
	capital = upper | title | modifier | otherLetter | mark
	small   = lower | modifier | otherLetter | mark
)

// caseWord is the end of upperWord|capsWord at s[i:], or i: a word has no characters of not.
func caseWord(c *classTable, s string, i int, not class) int {
	is, n := c.at(s, i)
	starts := []int{i}
	if is&(letter|number|newline) == 0 { // the character before the word is tried first, then without it
		starts = []int{i + n, i}
	}
	for _, j := range starts {
		if end := capitalsThenSmall(c, s, j, not); end > j {
			return end
		}
	}
	for _, j := range starts {
		if k := c.runBut(s, j, capital, not); k > j {
			return c.runBut(s, k, small, not)
		}
	}
	return i
}

// capitalsThenSmall is the end of upperCase*lowerCase+ at s[j:], or j.
func capitalsThenSmall(c *classTable, s string, j int, not class) int {
	k := c.runBut(s, j, capital, not)
	if end := c.runBut(s, k, small, not); end > k {
		return end
	}
	for k > j { // give back capitals, until one counts as a small letter too
		r, n := utf8.DecodeLastRuneInString(s[j:k])
		if c.of(r)&small != 0 {
			return k
		}
		k -= n
	}
	return j
}

// scanBloom is the end of bloomPattern at s[i:]: the parentheses and the bar are members of its class, too.
func scanBloom(c *classTable, s string, i int) int {
	j := i
	if s[j] == ' ' {
		j++
	}
	end := j
	for end < len(s) {
		is, n := c.at(s, end)
		if is&space != 0 || strings.Contains("(|).,!?…。，、।۔،", s[end:end+n]) {
			break
		}
		end += n
	}
	if end == j {
		return i
	}
	return end
}

func scanDeepSeek(c *classTable, s string, i int) int {
	if strings.IndexByte(asciiPunct, s[i]) >= 0 {
		end := i + 1
		for end < len(s) && (s[end]|0x20) >= 'a' && (s[end]|0x20) <= 'z' {
			end++
		}
		if end > i+1 {
			return end
		}
	}
	is, n := c.at(s, i)
	if is&(letter|mark) != 0 {
		return c.run(s, i+n, letter|mark)
	}
	if is&(newline|punctuation|symbol) == 0 && c.is(s, i+n, letter|mark) {
		return c.run(s, i+n, letter|mark)
	}
	j := i
	if s[i] == ' ' {
		j++
	}
	if end := c.run(s, j, punctuation|symbol); end > j {
		return c.run(s, end, newline)
	}
	return blankLines(c, s, i)
}

// scanCLIP leaves white space out. Its two special tokens are added tokens, so that they do not come here.
func scanCLIP(c *classTable, s string, i int) int {
	for _, t := range []string{"<|startoftext|>", "<|endoftext|>"} {
		if strings.HasPrefix(s[i:], t) {
			return i + len(t)
		}
	}
	if end := contraction(s, i, false); end > i {
		return end
	}
	switch is, n := c.at(s, i); {
	case is&letter != 0:
		return c.run(s, i+n, letter)
	case is&number != 0:
		return i + n
	}
	return c.runNot(s, i, space|letter|number)
}
