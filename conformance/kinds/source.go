package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os/exec"
	"reflect"
	"sort"
	"strconv"
	"strings"
)

// source reads what reflection cannot see: comments, "+marker" lines and constants.
type source struct {
	packages map[string]*pkg
}

type pkg struct {
	types map[string]declaration
	enums map[string][]constant
	texts map[string]string // string constants by name
}

// constant is a value of an enum: its name in Go, its text and its comment.
type constant struct{ name, text, doc string }

// declaration is a type or a field as written: its comment and markers.
type declaration struct {
	doc     string
	markers map[string]string
	keys    []string
	fields  map[string]declaration
}

func newSource() *source { return &source{packages: map[string]*pkg{}} }

func goList(args ...string) string {
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		log.Fatalf("go list %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

func (s *source) load(path string) *pkg {
	if p, ok := s.packages[path]; ok {
		return p
	}
	p := &pkg{types: map[string]declaration{}, enums: map[string][]constant{}, texts: map[string]string{}}
	s.packages[path] = p
	if path == "" || !strings.Contains(path, ".") {
		return p
	}
	dir := goList("-f", "{{.Dir}}", path)
	notTest := func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }
	parsed, err := parser.ParseDir(token.NewFileSet(), dir, notTest, parser.ParseComments)
	if err != nil {
		log.Fatal(err)
	}
	for _, parsedPkg := range parsed {
		for _, file := range parsedPkg.Files {
			for _, d := range file.Decls {
				if g, ok := d.(*ast.GenDecl); ok {
					p.read(g)
				}
			}
		}
	}
	return p
}

func (p *pkg) read(g *ast.GenDecl) {
	for _, spec := range g.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			doc := spec.Doc
			if doc == nil {
				doc = g.Doc
			}
			p.types[spec.Name.Name] = declare(doc, spec.Type)
		case *ast.ValueSpec:
			name, ok := spec.Type.(*ast.Ident)
			if g.Tok != token.CONST || !ok || len(spec.Values) != 1 {
				continue
			}
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				v, _ := strconv.Unquote(lit.Value)
				p.enums[name.Name] = append(p.enums[name.Name], constant{spec.Names[0].Name, v, declare(spec.Doc, nil).doc})
				p.texts[spec.Names[0].Name] = v
			}
		}
	}
}

func declare(doc *ast.CommentGroup, expr ast.Expr) declaration {
	d := declaration{markers: map[string]string{}, fields: map[string]declaration{}}
	if doc != nil {
		for _, c := range doc.List {
			d.doc += strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), " ") + "\n"
		}
	}
	for line := range strings.SplitSeq(d.doc, "\n") {
		marker, ok := strings.CutPrefix(strings.TrimSpace(line), "+")
		if !ok {
			continue
		}
		name, value, _ := strings.Cut(marker, "=")
		if name == "listMapKey" {
			d.keys = append(d.keys, strings.Trim(value, `"`))
			continue
		}
		if _, taken := d.markers[name]; !taken {
			d.markers[name] = value
		}
	}
	if st, ok := expr.(*ast.StructType); ok {
		for _, f := range st.Fields.List {
			fd := declare(f.Doc, nil)
			for _, n := range f.Names {
				d.fields[n.Name] = fd
			}
		}
	}
	return d
}

func (s *source) typeOf(t reflect.Type) declaration {
	return s.load(t.PkgPath()).types[t.Name()]
}

// constantsOf lists the constants of a "+enum" type.
func (s *source) constantsOf(t reflect.Type) []constant {
	if t.Kind() != reflect.String || t.PkgPath() == "" {
		return nil
	}
	if _, ok := s.typeOf(t).markers["enum"]; !ok {
		return nil
	}
	return s.load(t.PkgPath()).enums[t.Name()]
}

// enumOf lists the values of a "+enum" type, sorted, also through pointers and lists.
func (s *source) enumOf(t reflect.Type) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	var values []string
	for _, c := range s.constantsOf(t) {
		values = append(values, c.text)
	}
	sort.Strings(values)
	return values
}

// enumDoc says what each value of a "+enum" type means, as lines that continue the comment of a field of it.
func (s *source) enumDoc(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var lines []string
	for _, c := range s.constantsOf(t) {
		meaning := strings.TrimPrefix(strings.TrimSpace(c.doc), c.name)
		lines = append(lines, " - `"+strconv.Quote(c.text)+"` "+strings.Join(strings.Fields(meaning), " "))
	}
	if lines == nil {
		return ""
	}
	sort.Strings(lines)
	return "\nPossible enum values:\n" + strings.Join(lines, "\n") + "\n"
}

// describe turns a comment into a description the way OpenAPI documents print it: markers and TODO
// lines go, the rest of a paragraph joins one line, indented lines keep their own, "---" ends it.
func describe(doc string) string {
	var b strings.Builder
	// What ended a line gives way to what begins the next.
	trimEnd := func() {
		s := b.String()
		b.Reset()
		b.WriteString(s[:max(0, len(s)-1)])
	}
	for line := range strings.SplitSeq(doc, "\n") {
		line = strings.TrimRight(line, " \t")
		bare := strings.TrimLeft(line, " \t")
		switch {
		case line == "---":
			return strings.TrimSpace(b.String())
		case line == "":
			trimEnd()
			b.WriteString("\n\n")
		case strings.HasPrefix(bare, "TODO"), strings.HasPrefix(bare, "+"):
		case line != bare:
			trimEnd()
			b.WriteString("\n" + line + "\n")
		default:
			b.WriteString(line + " ")
		}
	}
	return strings.TrimSpace(strings.ReplaceAll(b.String(), "\n\n\n", "\n\n"))
}
