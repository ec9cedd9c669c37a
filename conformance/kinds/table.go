package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"path"
	"reflect"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// table is what types.json holds.
type table struct {
	Source string             `json:"source"`
	Kinds  []root             `json:"kinds"`
	Types  map[string]*object `json:"types"`
	docs   map[string]map[string]string
	source *source
}

// object is one struct type.
type object struct {
	Go     string  `json:"go"`
	Atomic bool    `json:"atomic,omitempty"`
	Fields []field `json:"fields"`
}

// field is one struct field. The type grammar: a word is a scalar or a special type, @name a struct,
// *T a pointer, [T] a list, {T} a map, (T) a list that protobuf wraps in a message;
// "=go.Name" follows a type whose Go name cannot be derived.
type field struct {
	Name     string          `json:"n,omitempty"`
	Type     string          `json:"t"`
	Inline   bool            `json:"i,omitempty"`
	Omit     string          `json:"o,omitempty"` // e: omitempty, z: omitzero, ez: both
	Number   int             `json:"p,omitempty"`
	Required bool            `json:"r,omitempty"`
	List     string          `json:"l,omitempty"`
	Keys     []string        `json:"k,omitempty"`
	Atomic   bool            `json:"a,omitempty"`
	Patch    string          `json:"s,omitempty"`
	MergeKey string          `json:"m,omitempty"`
	Default  json.RawMessage `json:"d,omitempty"`
	Enum     []string        `json:"e,omitempty"`
}

// special types have their own JSON form.
var special = map[reflect.Type]string{
	reflect.TypeOf(metav1.Time{}):                                  "time",
	reflect.TypeOf(metav1.MicroTime{}):                             "microtime",
	reflect.TypeOf(metav1.Duration{}):                              "duration",
	reflect.TypeOf(metav1.FieldsV1{}):                              "fieldsv1",
	reflect.TypeOf(resource.Quantity{}):                            "quantity",
	reflect.TypeOf(intstr.IntOrString{}):                           "intorstring",
	reflect.TypeOf(runtime.RawExtension{}):                         "raw",
	reflect.TypeOf(apiextensionsv1.JSON{}):                         "json",
	reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrArray{}):       "propsorarray",
	reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrBool{}):        "propsorbool",
	reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrStringArray{}): "propsorstrings",
}

func newTable() *table {
	return &table{
		Source: "k8s.io/api " + moduleVersion("k8s.io/api"),
		Types:  map[string]*object{},
		docs:   map[string]map[string]string{},
		source: newSource(),
	}
}

// typeName is the OpenAPI name: k8s.io/api/core/v1.Pod → io.k8s.api.core.v1.Pod.
func typeName(t reflect.Type) string {
	host, rest, _ := strings.Cut(t.PkgPath(), "/")
	parts := strings.Split(host, ".")
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return strings.Join(parts, ".") + "." + strings.ReplaceAll(rest, "/", ".") + "." + t.Name()
}

func (t *table) add(g reflect.Type) {
	name := typeName(g)
	if _, done := t.Types[name]; done {
		return
	}
	o := &object{Go: g.String(), Fields: []field{}}
	t.Types[name] = o
	decl := t.source.typeOf(g)
	o.Atomic = decl.markers["structType"] == "atomic" || decl.markers["mapType"] == "atomic"
	docs := map[string]string{}
	if d := describe(decl.doc); d != "" {
		docs[""] = d
	}
	for i := range g.NumField() {
		f := g.Field(i)
		if !f.IsExported() || strings.Split(f.Tag.Get("json"), ",")[0] == "-" {
			continue
		}
		fd := decl.fields[f.Name]
		o.Fields = append(o.Fields, t.field(f, fd, g.PkgPath()))
		if d := describe(fd.doc + t.source.enumDoc(f.Type)); d != "" && o.Fields[len(o.Fields)-1].Name != "" {
			docs[o.Fields[len(o.Fields)-1].Name] = d
		}
	}
	t.docs[name] = docs
}

func (t *table) field(f reflect.StructField, d declaration, pkg string) field {
	tag := strings.Split(f.Tag.Get("json"), ",")
	out := field{Name: tag[0], Type: t.expr(f.Type)}
	_, optional := d.markers["optional"]
	for _, option := range tag[1:] {
		switch option {
		case "omitempty":
			out.Omit, optional = "e"+out.Omit, true
		case "omitzero":
			out.Omit, optional = out.Omit+"z", true
		case "inline":
			out.Inline = true
		}
	}
	if out.Name == "" && f.Anonymous {
		out.Inline = true
	}
	if out.Name == "" && !out.Inline {
		out.Name = f.Name
	}
	out.Required = !optional && !out.Inline
	if pb := strings.Split(f.Tag.Get("protobuf"), ","); len(pb) > 1 {
		n, err := strconv.Atoi(pb[1])
		if err != nil {
			log.Fatalf("%s: %v", f.Name, err)
		}
		out.Number = n
	}
	out.List = d.markers["listType"]
	out.Keys = d.keys
	out.Atomic = d.markers["mapType"] == "atomic" || d.markers["structType"] == "atomic"
	out.Patch = f.Tag.Get("patchStrategy")
	out.MergeKey = f.Tag.Get("patchMergeKey")
	if v, ok := d.markers["default"]; ok {
		out.Default = t.defaultOf(v, pkg)
	}
	out.Enum = t.source.enumOf(f.Type)
	return out
}

// defaultOf reads a "+default=" marker: JSON, or "ref(Name)" for a constant of the package.
func (t *table) defaultOf(marker, pkg string) json.RawMessage {
	if json.Valid([]byte(marker)) {
		return json.RawMessage(marker)
	}
	name := strings.TrimSuffix(strings.TrimPrefix(marker, "ref("), ")")
	text, ok := t.source.load(pkg).texts[name]
	if !ok {
		log.Fatalf("default %q is not a constant of %s", marker, pkg)
	}
	return bytes.TrimSpace(marshal(text))
}

func (t *table) expr(g reflect.Type) string {
	derived, s := t.bare(g)
	if derived != g.String() {
		s += "=" + g.String()
	}
	return s
}

// bare gives the Go name that a reader can derive from the expression, and the expression.
func (t *table) bare(g reflect.Type) (string, string) {
	if s, ok := special[g]; ok {
		if strings.HasPrefix(s, "props") {
			t.add(reflect.TypeOf(apiextensionsv1.JSONSchemaProps{}))
		}
		return g.String(), s
	}
	switch g.Kind() {
	case reflect.Pointer:
		return g.String(), "*" + t.expr(g.Elem())
	case reflect.Slice:
		if g.Elem().Kind() == reflect.Uint8 {
			return "[]uint8", "bytes"
		}
		elem := t.expr(g.Elem())
		if _, wrapped := reflect.PointerTo(g).MethodByName("Unmarshal"); wrapped {
			return "[]" + g.Elem().String(), "(" + elem + ")"
		}
		return "[]" + g.Elem().String(), "[" + elem + "]"
	case reflect.Map:
		return "map[string]" + g.Elem().String(), "{" + t.expr(g.Elem()) + "}"
	case reflect.Struct:
		t.add(g)
		return g.String(), "@" + typeName(g)
	case reflect.Interface:
		return g.String(), "any"
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64, reflect.Float64, reflect.Uint32, reflect.Uint64, reflect.Int:
		return g.Kind().String(), g.Kind().String()
	}
	log.Fatalf("no expression for %v", g)
	return "", ""
}

func moduleVersion(module string) string {
	return path.Base(fmt.Sprint(goList("-m", "-f", "{{.Version}}", module)))
}
