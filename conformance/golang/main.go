// Command golang answers questions with the Go libraries that Kubernetes and Crossplane are made of.
//
// Input: one JSON object per line, with the field `area`. Output: one JSON object per line, `{"answers": [ … ]}`: what the
// library answers, or all that it may answer where it goes through a map of Go's.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
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

	// bytes, cel and its places, fieldpath, template, options
	Text string `json:"text"`

	// schema, formats, fieldpath, cel-optmap
	Schema json.RawMessage `json:"schema"`
	Value  json.RawMessage `json:"value"`

	// formats
	Minor uint `json:"minor"`

	// fieldpath
	Brackets bool `json:"brackets"`

	// template, options
	Data     json.RawMessage `json:"data"`
	Options  *[]string       `json:"options"`
	Defaults string          `json:"defaults"`
}

var areas = map[string]func(question) string{
	"patch":      answerPatch,
	"quantity":   answerQuantity,
	"bytes":      answerBytes,
	"cel":        answerCEL,
	"cel-zero":   answerCEL,
	"cel-string": answerCEL,
	"cel-optmap": answerOptMap,
	"cel-ip":     answerCEL,
	"schema":     answerSchema,
	"formats":    answerFormats,
	"fieldpath":  answerFieldPath,
	"template":   answerTemplate,
	"options":    answerOptions,
}

func main() {
	debug.SetGCPercent(400)
	questions, err := read(bufio.NewReaderSize(os.Stdin, 1<<20))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	all := make([][]string, len(questions))
	var workers sync.WaitGroup
	for first := range runtime.NumCPU() {
		workers.Go(func() {
			for i := first; i < len(questions); i += runtime.NumCPU() {
				all[i] = answers(questions[i])
			}
		})
	}
	workers.Wait()
	buffered := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer buffered.Flush()
	out := json.NewEncoder(buffered)
	out.SetEscapeHTML(false)
	for _, answers := range all {
		out.Encode(map[string]any{"answers": answers})
	}
}

func read(in *bufio.Reader) (questions []question, err error) {
	for {
		line, end := in.ReadBytes('\n')
		if len(line) > 0 {
			var q question
			if err := json.Unmarshal(line, &q); err != nil {
				return nil, fmt.Errorf("%w: %s", err, line)
			}
			questions = append(questions, q)
		}
		if end != nil {
			return questions, nil
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
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "cannot be written: " + err.Error()
	}
	return strings.TrimSuffix(out.String(), "\n")
}
