package format

import (
	"bufio"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mlxlua/mlxlua/tensor"
)

// CSVOptions say how a CSV file is read.
type CSVOptions struct {
	Header    bool     // the first record names the columns
	Delimiter rune     // between fields
	Missing   []string // what stands for a missing value
	// Types are the columns' types by name, or by number from 1 on where there is no header. A column that is not named
	// has the first of these that all its values fit: bool (true, false), int32, int64, float32, text.
	Types map[string]CSVType
	// Held, unless it is nil, is told now and then how many bytes more the texts take that were read; its error ends the
	// reading.
	Held func(bytes int64) error
}

// CSVType is a column's type: a dtype, or text.
type CSVType struct {
	Text  bool
	DType tensor.DType
}

// CSVColumn is a column of a CSV file: texts, or numbers as the elements of an array.
type CSVColumn struct {
	Name  string // "" without a header
	Texts []string
	DType tensor.DType
	Bytes []byte // nil: Texts
}

// LoadCSV reads the columns of a CSV file, of RFC 4180's form: fields may stand in quotes, with "" for a quote, and
// then have delimiters and line breaks. Empty lines are passed over. A missing value is NaN, and makes a column of
// integers float32; among texts it stands as it is. Errors name line and column (in bytes, from 1 on): records of
// different lengths, quotes in the wrong place, values that the given type does not have, missing ones that it cannot
// express.
func LoadCSV(path string, o CSVOptions) ([]CSVColumn, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", path, cause(err))
	}
	defer f.Close()
	columns, err := ReadCSV(f, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, cause(err))
	}
	return columns, nil
}

// ReadCSV is LoadCSV of a stream.
func ReadCSV(r io.Reader, o CSVOptions) ([]CSVColumn, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	if mark, _ := in.Peek(3); string(mark) == "\ufeff" {
		_, _ = in.Discard(3) // it has been read
	}
	t := &csvTable{o: o, r: csv.NewReader(in)}
	if d := o.Delimiter; d == '"' || d == '\r' || d == '\n' || !utf8.ValidRune(d) || d == 0 || d == utf8.RuneError {
		return nil, fmt.Errorf("delimiter is %q, which cannot stand between fields", d)
	}
	t.r.Comma, t.r.ReuseRecord, t.r.FieldsPerRecord = o.Delimiter, true, -1
	for {
		record, err := t.r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, csvError(err)
		}
		if err := t.add(record); err != nil {
			return nil, err
		}
		if err := t.hold(record); err != nil {
			return nil, err
		}
	}
	if t.columns == nil {
		return nil, errors.New("the file is empty")
	}
	for i := range t.columns {
		if err := t.columns[i].finish(&o); err != nil {
			return nil, err
		}
	}
	out := make([]CSVColumn, len(t.columns))
	for i := range out {
		out[i] = t.columns[i].CSVColumn
	}
	return out, nil
}

// csvError is an error of the reader, with line and column.
func csvError(err error) error {
	var p *csv.ParseError
	if errors.As(err, &p) {
		return fmt.Errorf("line %d, column %d: %w", p.Line, p.Column, p.Err)
	}
	return err
}

// csvTable is a file that is read.
type csvTable struct {
	o       CSVOptions
	r       *csv.Reader
	columns []csvColumn
	held    int64 // bytes that Held was not told of yet
}

// csvColumn is a column as it is read: texts.
type csvColumn struct {
	CSVColumn
	given *CSVType
}

// add takes a record.
func (t *csvTable) add(record []string) error {
	if t.columns == nil {
		if err := t.begin(record); err != nil || t.o.Header {
			return err
		}
	}
	if len(record) != len(t.columns) {
		line, _ := t.r.FieldPos(0)
		_, column := t.r.FieldPos(len(record) - 1)
		return fmt.Errorf("line %d, column %d: the record has %s, want %d", line, column,
			tensor.Count(len(record), "field"), len(t.columns))
	}
	for i := range t.columns {
		c := &t.columns[i]
		if c.given != nil && !c.given.Text {
			if why := t.refuse(c.given.DType, record[i]); why != "" {
				line, column := t.r.FieldPos(i)
				return fmt.Errorf("line %d, column %d: %s", line, column, why)
			}
		}
		c.Texts = append(c.Texts, record[i]) // it shares its memory with its record's other fields
	}
	return nil
}

// csvPiece is how many bytes are read, or texts looked at, between two calls of Held.
const csvPiece = 1 << 16

// hold counts what the texts of a record take.
func (t *csvTable) hold(record []string) error {
	const text = 2 * 16 // a string, in a slice that has room for as many
	for _, field := range record {
		t.held += text + int64(len(field))
	}
	if t.held < csvPiece || t.o.Held == nil {
		return nil
	}
	held := t.held
	t.held = 0
	return t.o.Held(held)
}

// begin makes the columns of the first record.
func (t *csvTable) begin(record []string) error {
	t.columns = make([]csvColumn, len(record))
	named := map[string]bool{}
	for i, name := range record {
		c := &t.columns[i]
		if !t.o.Header {
			name = strconv.Itoa(i + 1)
		} else if c.Name = name; named[name] {
			line, column := t.r.FieldPos(i)
			return fmt.Errorf("line %d, column %d: two columns are named %.99q", line, column, name)
		}
		named[name] = true
		if given, ok := t.o.Types[name]; ok {
			c.given = &given
		}
	}
	for name := range t.o.Types {
		if !named[name] {
			return fmt.Errorf("types has %.99q, and there is no such column", name)
		}
	}
	return nil
}

// refuse says why a field is no value of a dtype, "" if it is one.
func (t *csvTable) refuse(d tensor.DType, field string) string {
	if slices.Contains(t.o.Missing, field) {
		if d.IsFloat() {
			return ""
		}
		return fmt.Sprintf("the value is missing, which no %v can express", d)
	}
	if _, ok := appendField(nil, d, field); !ok {
		return fmt.Sprintf("%.99q is no %v", field, d)
	}
	return ""
}

// finish makes numbers of the texts if they are such, or are to be.
func (c *csvColumn) finish(o *CSVOptions) error {
	if c.given != nil && c.given.Text {
		return nil
	}
	types := []tensor.DType{tensor.Bool, tensor.Int32, tensor.Int64, tensor.Float32}
	if c.given != nil {
		types = []tensor.DType{c.given.DType}
	}
	for _, d := range types {
		b, ok, err := c.encoded(d, o)
		if err != nil {
			return err
		}
		if ok {
			c.DType, c.Bytes, c.Texts = d, b, nil
			return nil
		}
	}
	return nil
}

// encoded is the texts as numbers of a dtype, if all are such.
func (c *csvColumn) encoded(d tensor.DType, o *CSVOptions) (out []byte, ok bool, err error) {
	out = make([]byte, 0, len(c.Texts)*d.Size())
	for i, text := range c.Texts {
		if i%csvPiece == 0 && o.Held != nil {
			if err := o.Held(0); err != nil {
				return nil, false, err
			}
		}
		if slices.Contains(o.Missing, text) {
			if !d.IsFloat() {
				return nil, false, nil
			}
			text = "nan"
		}
		if out, ok = appendField(out, d, text); !ok {
			return nil, false, nil
		}
	}
	return out, true, nil
}

// appendField appends a field as an element of a dtype, if it is one.
func appendField(out []byte, d tensor.DType, text string) ([]byte, bool) {
	text = strings.TrimSpace(text)
	bits := 8 * d.Size()
	switch {
	case d == tensor.Bool:
		switch strings.ToLower(text) {
		case "true":
			return append(out, 1), true
		case "false":
			return append(out, 0), true
		}
		return out, false
	case d.IsInteger():
		var n uint64
		var err error
		if d.IsSigned() {
			var signed int64
			signed, err = strconv.ParseInt(text, 10, bits)
			n = uint64(signed)
		} else {
			n, err = strconv.ParseUint(text, 10, bits)
		}
		var eight [8]byte
		binary.LittleEndian.PutUint64(eight[:], n)
		return append(out, eight[:d.Size()]...), err == nil
	}
	if strings.ContainsAny(text, "xXpP_") { // Go's own ways of writing numbers
		return out, false
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return out, false
	}
	switch d {
	case tensor.Float32:
		v32, _ := strconv.ParseFloat(text, 32) // rounded once; beyond the range it is an infinity
		return binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v32))), true
	case tensor.Float64:
		return binary.LittleEndian.AppendUint64(out, math.Float64bits(v)), true
	}
	return out, false
}
