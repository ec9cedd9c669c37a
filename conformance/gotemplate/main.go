// Command oracle answers, for templates given as JSON lines, what Go's text/template with sprig makes of them.
//
// Input:  {"template": …, "data": …, "option": …} per line. Output: {"output": …, "error": …} per line.
// With -bench FILE it times how one template is parsed, and rendered over empty data, in microseconds of processor time.
// With -templates DIR it prints, as JSON lines, the inline templates of the Compositions in a folder.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	"gopkg.in/yaml.v3"
)

type question struct {
	Template string          `json:"template"`
	Data     json.RawMessage `json:"data"`
	Option   string          `json:"option"`
}

type answer struct {
	Output []byte `json:"output"`
	Error  string `json:"error"`
}

func main() {
	bench := flag.String("bench", "", "time the execution of this template file")
	templates := flag.String("templates", "", "print the templates of the Compositions in this folder")
	flag.Parse()
	// Printing data that contains itself overflows any stack; let it happen soon.
	debug.SetMaxStack(64 << 20)
	if *bench != "" {
		measure(*bench)
		return
	}
	if *templates != "" {
		collect(*templates)
		return
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var q question
			if err := json.Unmarshal(line, &q); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			// Go has no bounds of its own: a template that runs away ends this process, and the caller goes on.
			watchdog := time.AfterFunc(3*time.Second, func() { os.Exit(3) })
			a := respond(q)
			watchdog.Stop()
			out.Encode(a)
		}
		if err != nil {
			return
		}
	}
}

func respond(q question) (a answer) {
	// Bugs of the Go library surface as panics (in parsing, for one); for us they are errors.
	defer func() {
		if r := recover(); r != nil {
			a = answer{Error: fmt.Sprint(r)}
		}
	}()
	t, err := parse(q.Template, q.Option)
	if err != nil {
		return answer{Error: err.Error()}
	}
	var buf bytes.Buffer
	if err := t.Execute(&buf, decode(q.Data)); err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Output: buf.Bytes()}
}

func parse(text, option string) (*template.Template, error) {
	return parseWith(functions(), text, option)
}

func functions() template.FuncMap {
	funcs := sprig.TxtFuncMap()
	delete(funcs, "env")
	delete(funcs, "expandenv")
	funcs["toYaml"] = func(v any) (string, error) {
		out, err := yaml.Marshal(v)
		return string(out), err
	}
	funcs["fromYaml"] = func(s string) (v any, err error) {
		err = yaml.Unmarshal([]byte(s), &v)
		return v, err
	}
	standIns(funcs)
	return funcs
}

// standIns adds functions in place of those that function-go-templating has, so that its templates can be parsed.
func standIns(funcs template.FuncMap) {
	funcs["setResourceNameAnnotation"] = func(name string) string { return "resource-name: " + name }
	funcs["getComposedResource"] = func(req map[string]any, name string) map[string]any { return map[string]any{"kind": name} }
	funcs["getCompositeResource"] = func(req map[string]any) any {
		observed, _ := req["observed"].(map[string]any)
		composite, _ := observed["composite"].(map[string]any)
		return composite["resource"]
	}
	funcs["getResourceCondition"] = func(kind string, res map[string]any) map[string]any {
		return map[string]any{"Type": kind, "Status": "True"}
	}
	funcs["getExtraResources"] = func(req map[string]any, name string) []any { return []any{name} }
}

func parseWith(funcs template.FuncMap, text, option string) (*template.Template, error) {
	t := template.New("manifests")
	depth := map[string]int{}
	funcs["include"] = func(name string, data any) (string, error) {
		if depth[name] > 1000 {
			return "", errors.New("rendering template has a nested reference name: " + name + ": unable to execute template")
		}
		depth[name]++
		var buf strings.Builder
		err := t.ExecuteTemplate(&buf, name, data)
		depth[name]--
		return buf.String(), err
	}
	t.Funcs(funcs)
	if option != "" {
		t.Option(option)
	}
	return t.Parse(text)
}

// decode reads JSON as Kubernetes does: integers are int64, other numbers float64.
func decode(data json.RawMessage) any {
	if len(data) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil
	}
	return numbers(v)
}

func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	}
	return v
}

func measure(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	funcs := functions()
	t, err := parseWith(funcs, string(text), "")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	const rounds = 2000
	each := func(run func()) float64 {
		for range rounds / 10 {
			run()
		}
		start := processorTime()
		for range rounds {
			run()
		}
		return float64((processorTime() - start).Nanoseconds()) / rounds / 1000
	}
	parsing := each(func() { parseWith(funcs, string(text), "") })
	rendering := each(func() {
		var buf bytes.Buffer
		if err := t.Execute(&buf, map[string]any{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	})
	fmt.Printf("%.1f %.1f\n", parsing, rendering)
}

// processorTime is what all threads of this process have used, those that collect garbage included.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

type composition struct {
	Spec struct {
		Pipeline []struct {
			Input struct {
				Kind   string
				Inline struct {
					Template  string
					Templates []string
				}
			}
		}
	}
}

// collect prints every inline template below a folder. Files that are not YAML, or have another shape, are skipped.
func collect(folder string) {
	out := json.NewEncoder(os.Stdout)
	filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasPrefix(filepath.Ext(path), ".y") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		documents := yaml.NewDecoder(bytes.NewReader(text))
		for {
			var c composition
			if documents.Decode(&c) != nil {
				return nil
			}
			for _, step := range c.Spec.Pipeline {
				for _, template := range append(step.Input.Inline.Templates, step.Input.Inline.Template) {
					if step.Input.Kind == "GoTemplate" && template != "" {
						out.Encode(template)
					}
				}
			}
		}
	})
}
