// Command golang answers questions with the Go libraries that Kubernetes and Crossplane are made of.
//
// Input: one JSON object per line, with the field `area`. Output: one JSON object per line, `{"answers": [ … ]}`: what the
// library answers, or all that it may answer where it goes through a map of Go's.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
)

type question struct {
	Area string `json:"area"`
	// How often to ask, where the answer depends on the order of a map.
	Times int `json:"times"`

	// patch
	Original json.RawMessage `json:"original"`
	Patch    json.RawMessage `json:"patch"`

	// quantity
	A string `json:"a"`
	B string `json:"b"`
	N int64  `json:"n,string"`

	// bytes, cel
	Text string `json:"text"`

	// schema
	Schema json.RawMessage `json:"schema"`
	Value  json.RawMessage `json:"value"`

	// template
	Data    json.RawMessage `json:"data"`
	Options *[]string       `json:"options"`
}

var areas = map[string]func(question) string{
	"patch":    answerPatch,
	"quantity": answerQuantity,
	"bytes":    answerBytes,
	"cel":      answerCEL,
	"schema":   answerSchema,
	"template": answerTemplate,
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	buffered := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer buffered.Flush()
	out := json.NewEncoder(buffered)
	out.SetEscapeHTML(false)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var q question
			if err := json.Unmarshal(line, &q); err != nil {
				fmt.Fprintln(os.Stderr, err, string(line))
				os.Exit(1)
			}
			out.Encode(map[string]any{"answers": answers(q)})
		}
		if err != nil {
			return
		}
	}
}

func answers(q question) []string {
	answer, ok := areas[q.Area]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such area:", q.Area)
		os.Exit(1)
	}
	distinct := map[string]bool{}
	for range max(q.Times, 1) {
		distinct[guarded(answer, q)] = true
	}
	all := make([]string, 0, len(distinct))
	for text := range distinct {
		all = append(all, text)
	}
	sort.Strings(all)
	return all
}

// guarded turns a panic into an error, as an API server does.
func guarded(answer func(question) string, q question) (text string) {
	defer func() {
		if reason := recover(); reason != nil {
			text = fmt.Sprintf("panic: %v", reason)
		}
	}()
	return answer(q)
}

// canonical is JSON with sorted keys.
func canonical(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "cannot be written: " + err.Error()
	}
	return string(text)
}
