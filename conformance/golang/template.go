package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
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

// answerOptions is answerTemplate with the default options of the function's main branch, which hold where an input has no
// options: these lines are RunFunction's. What is rendered is the last field of a manifest.
func answerOptions(q question) string {
	if q.Options == nil && q.Defaults != "" {
		options := strings.Split(q.Defaults, ",")
		q.Options = &options
	}
	answer := answerTemplate(q)
	if _, rendered, ok := strings.Cut(answer, "rendered: |-\n  "); ok {
		return "output: " + rendered
	}
	return answer
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
