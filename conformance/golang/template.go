package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"text/template"
)

// answerTemplate renders as function-go-templating v0.12.3 does: without options unless the input has some.
func answerTemplate(q question) string {
	parsed, err := template.New("manifests").Parse(q.Text)
	if err != nil {
		return "error: parse"
	}
	if q.Options != nil {
		if problem := apply(parsed, *q.Options); problem != "" {
			return "option: " + problem
		}
	}
	// The function renders what its protobuf request holds, in which all numbers are doubles.
	var data map[string]any
	if err := json.Unmarshal(q.Data, &data); err != nil {
		return "error: data"
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, data); err != nil {
		return "error: " + err.Error()
	}
	return "output: " + out.String()
}

func apply(parsed *template.Template, options []string) (problem string) {
	defer func() {
		if reason := recover(); reason != nil {
			problem = fmt.Sprint(reason)
		}
	}()
	parsed.Option(options...)
	return ""
}
