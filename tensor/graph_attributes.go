package tensor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unique"
)

// AttrWriter is implemented by attribute types that cannot be written field by field: what they hold is interned, or
// means something else in another version. Their pointers are AttrReaders.
type AttrWriter interface {
	// AttrSchema says what AppendAttr writes. It changes when that does: a file that says another one is refused.
	AttrSchema() string
	// AppendAttr appends the value's encoding to b. The inputs' specs are those of a call that it belongs to.
	AppendAttr(b []byte, in []Spec) ([]byte, error)
}

// AttrReader reads what an AttrWriter wrote, and gives what follows it. It refuses what no AttrWriter writes.
type AttrReader interface {
	ParseAttr(b []byte) (rest []byte, err error)
}

// StandIn is implemented by attributes of ops whose output is one of their inputs, and whose other inputs matter to
// transforms alone: where the call is exported, that input stands in its place.
type StandIn interface {
	// StandsFor is the input's index.
	StandsFor() int
}

var (
	attrWriter = reflect.TypeFor[AttrWriter]()
	attrReader = reflect.TypeFor[AttrReader]()
)

// errAttrs is what is wrong with attributes that end too early.
var errAttrs = errors.New("the attributes are cut off")

// AttrSchema describes how the op's attributes are written: fields, their names and types. It is an error if they
// cannot be written.
func (p *Op) AttrSchema() (string, error) {
	if p.attrs == nil {
		return "", fmt.Errorf("%s is no call of an op", p.name)
	}
	var b strings.Builder
	if err := attrSchema(&b, p.attrs); err != nil {
		return "", fmt.Errorf("%s cannot be exported: %w", p.name, err)
	}
	return b.String(), nil
}

func attrSchema(b *strings.Builder, t reflect.Type) error {
	if t.Implements(attrWriter) && reflect.PointerTo(t).Implements(attrReader) {
		b.WriteString(reflect.Zero(t).Interface().(AttrWriter).AttrSchema())
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		b.WriteByte('{')
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.IsExported() && !f.Anonymous {
				return fmt.Errorf("its attributes have the private field %s", f.Name)
			}
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(f.Name + ":")
			if err := attrSchema(b, f.Type); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case reflect.Bool, reflect.String:
		b.WriteString(t.Kind().String())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		b.WriteString("int")
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		b.WriteString("uint")
	default:
		return fmt.Errorf("its attributes hold a %v", t)
	}
	return nil
}

// AppendAttrs appends the encoding of a call's attributes to b; in are the specs of the call's inputs.
func (p *Op) AppendAttrs(b []byte, attrs any, in []Spec) ([]byte, error) {
	if _, err := p.AttrSchema(); err != nil {
		return nil, err
	}
	b, err := appendAttr(b, reflect.ValueOf(attrs), in)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be exported: %w", p.name, err)
	}
	return b, nil
}

func appendAttr(b []byte, v reflect.Value, in []Spec) ([]byte, error) {
	if v.CanInterface() && v.Type().Implements(attrWriter) {
		return v.Interface().(AttrWriter).AppendAttr(b, in)
	}
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1), nil
		}
		return append(b, 0), nil
	case reflect.String:
		return AppendText(b, v.String()), nil
	case reflect.Struct:
		var err error
		for i := 0; i < v.NumField() && err == nil; i++ {
			b, err = appendAttr(b, v.Field(i), in)
		}
		return b, err
	}
	if v.CanInt() {
		return binary.AppendVarint(b, v.Int()), nil
	}
	return binary.AppendUvarint(b, v.Uint()), nil
}

// ParseAttrs is the attributes of which AppendAttrs made b: all of it.
func (p *Op) ParseAttrs(b []byte) (any, error) {
	if _, err := p.AttrSchema(); err != nil {
		return nil, err
	}
	v := reflect.New(p.attrs).Elem()
	rest, err := parseAttr(b, v)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%s follow the attributes", Count(len(rest), "byte"))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	return v.Interface(), nil
}

func parseAttr(b []byte, v reflect.Value) ([]byte, error) {
	if v.CanInterface() { // an embedded private type is none, but its fields are
		if r, ok := v.Addr().Interface().(AttrReader); ok {
			return r.ParseAttr(b)
		}
	}
	switch v.Kind() {
	case reflect.Bool:
		if len(b) == 0 || b[0] > 1 {
			return nil, errAttrs
		}
		v.SetBool(b[0] == 1)
		return b[1:], nil
	case reflect.String:
		text, rest, err := ParseText(b)
		v.SetString(text)
		return rest, err
	case reflect.Struct:
		var err error
		for i := 0; i < v.NumField() && err == nil; i++ {
			b, err = parseAttr(b, v.Field(i))
		}
		return b, err
	}
	if v.CanInt() {
		n, rest, err := ParseInt(b)
		if err == nil && v.OverflowInt(int64(n)) {
			err = fmt.Errorf("the attribute %d is no %v", n, v.Type())
		}
		v.SetInt(int64(n))
		return rest, err
	}
	n, size := binary.Uvarint(b)
	if size <= 0 {
		return nil, errAttrs
	}
	if v.OverflowUint(n) {
		return nil, fmt.Errorf("the attribute %d is no %v", n, v.Type())
	}
	v.SetUint(n)
	return b[size:], nil
}

// AppendText appends a text's length and bytes, for AttrWriters.
func AppendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// ParseText reads what AppendText wrote.
func ParseText(b []byte) (text string, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return "", nil, errAttrs
	}
	return string(b[size:][:n]), b[size:][n:], nil
}

// AppendInt appends an integer, for AttrWriters.
func AppendInt(b []byte, n int) []byte { return binary.AppendVarint(b, int64(n)) }

// ParseInt reads what AppendInt wrote.
func ParseInt(b []byte) (n int, rest []byte, err error) {
	v, size := binary.Varint(b)
	if size <= 0 || int64(int(v)) != v {
		return 0, nil, errAttrs
	}
	return int(v), b[size:], nil
}

// parseLength reads the length of a list of which each element takes a byte at least.
func parseLength(b []byte) (n int, rest []byte, err error) {
	n, rest, err = ParseInt(b)
	if err == nil && (n < 0 || n > len(rest)) {
		err = errAttrs
	}
	return n, rest, err
}

// AttrSchema implements AttrWriter: a dtype is written by name.
func (DType) AttrSchema() string { return "dtype" }

// AppendAttr implements AttrWriter.
func (d DType) AppendAttr(b []byte, _ []Spec) ([]byte, error) { return AppendText(b, d.String()), nil }

// ParseAttr implements AttrReader.
func (d *DType) ParseAttr(b []byte) ([]byte, error) {
	name, rest, err := ParseText(b)
	if err != nil {
		return nil, err
	}
	for _, known := range DTypes() {
		if known.String() == name {
			*d = known
			return rest, nil
		}
	}
	return nil, fmt.Errorf("there is no dtype %q", name)
}

// AttrSchema implements AttrWriter.
func (Ints) AttrSchema() string { return "ints" }

// AppendAttr implements AttrWriter. No list is written as one that is 1 too short.
func (i Ints) AppendAttr(b []byte, _ []Spec) ([]byte, error) {
	if i.IsNil() {
		return AppendInt(b, -1), nil
	}
	b = AppendInt(b, i.Len())
	for _, n := range i.Slice() {
		b = AppendInt(b, n)
	}
	return b, nil
}

// ParseAttr implements AttrReader.
func (i *Ints) ParseAttr(b []byte) ([]byte, error) {
	n, rest, err := ParseInt(b)
	if err != nil || n == -1 {
		*i = Ints{}
		return rest, err
	}
	if n, rest, err = parseLength(b); err != nil {
		return nil, err
	}
	list := make([]int, n)
	for k := range list {
		if list[k], rest, err = ParseInt(rest); err != nil {
			return nil, err
		}
	}
	*i = MakeInts(list)
	return rest, nil
}

// AttrSchema implements AttrWriter.
func (Dims) AttrSchema() string { return "dims" }

// AppendAttr implements AttrWriter.
func (d Dims) AppendAttr(b []byte, _ []Spec) ([]byte, error) {
	parts := d.parts(nil)
	if d == (Dims{}) {
		return AppendInt(b, -1), nil
	}
	b = AppendInt(b, len(parts))
	for _, p := range parts {
		b = AppendInt(AppendInt(b, p.n), p.input)
	}
	return b, nil
}

// ParseAttr implements AttrReader.
func (d *Dims) ParseAttr(b []byte) ([]byte, error) {
	n, rest, err := ParseInt(b)
	if err != nil || n == -1 {
		*d = Dims{}
		return rest, err
	}
	if n, rest, err = parseLength(b); err != nil {
		return nil, err
	}
	parts := make([]dim, n)
	for i := range parts {
		p := &parts[i]
		if p.n, rest, err = ParseInt(rest); err != nil {
			return nil, err
		}
		if p.input, rest, err = ParseInt(rest); err != nil || p.input < 0 {
			return nil, errors.Join(err, errAttrs)
		}
	}
	*d = makeDims(parts)
	return rest, nil
}

// makeDims interns the parts of a shape.
func makeDims(parts []dim) Dims {
	key := dims{n: len(parts)}
	var rest []byte
	for i, d := range parts {
		if i < len(key.few) {
			key.few[i] = d
			continue
		}
		rest = AppendInt(AppendInt(rest, d.n), d.input)
	}
	key.rest = string(rest)
	return Dims{unique.Make(key)}
}

// AttrSchema implements AttrWriter.
func (DimsList) AttrSchema() string { return "dimslist" }

// AppendAttr implements AttrWriter.
func (l DimsList) AppendAttr(b []byte, in []Spec) ([]byte, error) {
	list := l.Slice()
	b = AppendInt(b, len(list))
	var err error
	for _, d := range list {
		if b, err = d.AppendAttr(b, in); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// ParseAttr implements AttrReader.
func (l *DimsList) ParseAttr(b []byte) ([]byte, error) {
	n, rest, err := parseLength(b)
	if err != nil {
		return nil, err
	}
	list := make([]Dims, n)
	for i := range list {
		if rest, err = list[i].ParseAttr(rest); err != nil {
			return nil, err
		}
	}
	*l = MakeDimsList(list...)
	return rest, nil
}

// AttrType is the type of the op's attributes.
func (p *Op) AttrType() reflect.Type { return p.attrs }
