package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Config is what a model's directory says about its tokenizer beside tokenizer.json: tokenizer_config.json,
// special_tokens_map.json and the chat templates in files of their own.
type Config struct {
	BOS, EOS, PAD, UNK string // the tokens themselves, "" for none
	// AddBOS and AddEOS say whether Encode's special tokens are these, for files without post-processor; nil: not said.
	AddBOS, AddEOS *bool
	// ChatTemplate is the template for conversations, "" for none; Templates are further ones by name ("tool_use").
	ChatTemplate   string
	Templates      map[string]string
	ModelMaxLength int  // in tokens; 0: not said
	CleanUpSpaces  bool // the spaces before punctuation are to be taken out of decoded text
	Added          []AddedToken
	Class          string // tokenizer_class
}

// namedToken is a token in these files: a string, or an object with its content.
type namedToken string

// UnmarshalJSON reads both forms.
func (t *namedToken) UnmarshalJSON(raw []byte) error {
	var object struct {
		Content string `json:"content"`
	}
	if err := json.Unmarshal(raw, (*string)(t)); err == nil {
		return nil
	}
	if json.Unmarshal(raw, &object) != nil {
		return fmt.Errorf("a special token is %.20s, want a text or an object with its content", raw)
	}
	*t = namedToken(object.Content)
	return nil
}

// configFile is the part of tokenizer_config.json that matters here. The file has many keys for the programs that
// wrote it.
type configFile struct {
	BOS           *namedToken                `json:"bos_token"`
	EOS           *namedToken                `json:"eos_token"`
	PAD           *namedToken                `json:"pad_token"`
	UNK           *namedToken                `json:"unk_token"`
	AddBOS        *bool                      `json:"add_bos_token"`
	AddEOS        *bool                      `json:"add_eos_token"`
	ChatTemplate  json.RawMessage            `json:"chat_template"`
	MaxLength     *float64                   `json:"model_max_length"`
	CleanUpSpaces bool                       `json:"clean_up_tokenization_spaces"`
	Added         map[string]json.RawMessage `json:"added_tokens_decoder"`
	Class         string                     `json:"tokenizer_class"`
}

// ReadConfig reads the text of a tokenizer_config.json.
func ReadConfig(raw []byte) (*Config, error) {
	var f configFile
	if err := explained(raw, &f); err != nil {
		return nil, fmt.Errorf("[tokenizer] tokenizer_config.json: %w", err)
	}
	c := &Config{AddBOS: f.AddBOS, AddEOS: f.AddEOS, CleanUpSpaces: f.CleanUpSpaces, Class: f.Class}
	c.names(&f)
	if f.MaxLength != nil && *f.MaxLength > 0 && *f.MaxLength < 1e9 { // 1e30 stands for no limit
		c.ModelMaxLength = int(*f.MaxLength)
	}
	if err := c.readTemplates(f.ChatTemplate); err != nil {
		return nil, err
	}
	for key, raw := range f.Added {
		t := AddedToken{Normalized: true}
		if err := explained(raw, &t); err != nil {
			return nil, fmt.Errorf("[tokenizer] tokenizer_config.json: added_tokens_decoder[%s]: %w", key, err)
		}
		if _, err := fmt.Sscanf(key, "%d", &t.ID); err != nil {
			return nil, fmt.Errorf("[tokenizer] tokenizer_config.json: added_tokens_decoder: %q is no id", key)
		}
		c.Added = append(c.Added, t)
	}
	slices.SortFunc(c.Added, func(a, b AddedToken) int { return int(a.ID) - int(b.ID) })
	return c, nil
}

// names takes over the special tokens that a file names.
func (c *Config) names(f *configFile) {
	for to, from := range map[*string]*namedToken{&c.BOS: f.BOS, &c.EOS: f.EOS, &c.PAD: f.PAD, &c.UNK: f.UNK} {
		if from != nil {
			*to = string(*from)
		}
	}
}

// readTemplates reads chat_template: one template, or a list of them with names.
func (c *Config) readTemplates(raw json.RawMessage) error {
	if len(raw) == 0 || json.Unmarshal(raw, &c.ChatTemplate) == nil {
		return nil
	}
	var list []struct{ Name, Template string }
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("[tokenizer] tokenizer_config.json: chat_template is neither a text nor a list with names")
	}
	for _, t := range list {
		c.addTemplate(t.Name, t.Template)
	}
	return nil
}

func (c *Config) addTemplate(name, text string) {
	if name == "default" {
		c.ChatTemplate = text
		return
	}
	if c.Templates == nil {
		c.Templates = map[string]string{}
	}
	c.Templates[name] = text
}

// Open reads the tokenizer of a model's directory. Without tokenizer.json it fails; the other files can be missing.
// Tokens that only tokenizer_config.json lists are added to the tokenizer, as transformers does.
func Open(dir string) (*Tokenizer, *Config, error) {
	c := &Config{}
	read := func(name string, f func(raw []byte) error) error {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = f(raw)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
		}
		return nil
	}
	err := errors.Join(
		read("tokenizer_config.json", func(raw []byte) (err error) { c, err = ReadConfig(raw); return err }),
		read("special_tokens_map.json", func(raw []byte) error {
			if c == nil {
				return nil
			}
			said := *c
			var f configFile
			err := explained(raw, &f)
			c.names(&f)
			for to, from := range map[*string]string{&c.BOS: said.BOS, &c.EOS: said.EOS, &c.PAD: said.PAD, &c.UNK: said.UNK} {
				if from != "" { // tokenizer_config.json goes first
					*to = from
				}
			}
			return err
		}),
		read("chat_template.jinja", func(raw []byte) error { c.ChatTemplate = string(raw); return nil }),
	)
	if err != nil {
		return nil, nil, err
	}
	more, err := filepath.Glob(filepath.Join(dir, "additional_chat_templates", "*.jinja"))
	if err != nil {
		return nil, nil, fmt.Errorf("[tokenizer] %w", err)
	}
	for _, path := range more {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, fmt.Errorf("[tokenizer] %w", err)
		}
		c.addTemplate(strings.TrimSuffix(filepath.Base(path), ".jinja"), string(raw))
	}
	t, err := openWith(filepath.Join(dir, "tokenizer.json"), c.Added)
	return t, c, err
}

// openWith is Load with further added tokens, which must have the ids that they say.
func openWith(path string, more []AddedToken) (*Tokenizer, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("[tokenizer] %w", err)
	}
	t, err := newTokenizer(raw, more)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, a := range more {
		if id, _ := t.ID(a.Content); id != a.ID {
			return nil, fmt.Errorf("%s: [tokenizer] the token %q has the id %d, but %d in tokenizer_config.json", path,
				a.Content, id, a.ID)
		}
	}
	return t, nil
}
