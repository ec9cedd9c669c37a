// Command oracle answers, for templates given as JSON lines, what Go's text/template with sprig makes of them.
//
// Input:  {"template": …, "data": …, "option": …} per line. Output: {"output": …, "error": …} per line.
// With -bench FILE it times how one template is parsed, and rendered over empty data, in microseconds.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
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
	flag.Parse()
	// Printing data that contains itself overflows any stack; let it happen soon.
	debug.SetMaxStack(64 << 20)
	if *bench != "" {
		measure(*bench)
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
	t := template.New("manifests")
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
	t, err := parse(string(text), "")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	const rounds = 2000
	each := func(run func()) float64 {
		for range rounds / 10 {
			run()
		}
		start := time.Now()
		for range rounds {
			run()
		}
		return float64(time.Since(start).Nanoseconds()) / rounds / 1000
	}
	parsing := each(func() { parse(string(text), "") })
	rendering := each(func() {
		var buf bytes.Buffer
		if err := t.Execute(&buf, map[string]any{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	})
	fmt.Printf("%.1f %.1f\n", parsing, rendering)
}
