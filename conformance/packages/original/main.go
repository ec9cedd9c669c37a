// Command original answers questions about packages with Crossplane's own code.
//
// It is compiled inside of a copy of Crossplane's module, because what it asks is internal there, and so with the very
// versions of all libraries that Crossplane uses. Input: one JSON object per line, with the field `area`. Output: one
// JSON object per line, `{"answers": [ … ]}`: all answers that it gave, where it goes through a map of Go's.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"

	"github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"
)

type question struct {
	Area string `json:"area"`

	// constraints
	Constraint string `json:"constraint"`
	Version    string `json:"version"`

	// names, references
	Text       string  `json:"text"`
	Hash       *string `json:"hash"`
	Dependency bool    `json:"dependency"`

	// images
	Configs []v1beta1.ImageConfig `json:"configs"`
	Image   string                `json:"image"`

	// solver, install, resolution
	Mode     string                          `json:"mode"`
	Lock     []v1beta1.LockPackage           `json:"lock"`
	Objects  []object                        `json:"objects"`
	Tags     map[string][]string             `json:"tags"`
	Universe map[string][]v1beta1.Dependency `json:"universe"`
	Of       int                             `json:"of"`

	// runtime
	Revision       json.RawMessage                     `json:"revision"`
	RuntimeConfig  v1beta1.DeploymentRuntimeConfigSpec `json:"runtimeConfig"`
	PullSecret     string                              `json:"pullSecret"`
	AccountSecrets []string                            `json:"accountSecrets"`
}

// An object is a package that is installed.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Package    string `json:"package"`
	Resolved   string `json:"resolved"`
}

var areas = map[string]func(question) string{
	"constraints": answerConstraint,
	"names":       answerName,
	"references":  answerReference,
	"images":      answerImage,
	"solver":      answerSolver,
	"install":     answerInstall,
	"resolution":  answerResolution,
	"runtime":     answerRuntime,
}

// The original finds cycles by going through a map.
var times = map[string]int{"solver": 3, "install": 1}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	var questions []question
	for {
		line, end := in.ReadBytes('\n')
		if len(line) > 0 {
			var q question
			if err := json.Unmarshal(line, &q); err != nil {
				fmt.Fprintf(os.Stderr, "%v: %s", err, line)
				os.Exit(1)
			}
			questions = append(questions, q)
		}
		if end != nil {
			break
		}
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
	for _, answers := range all {
		fmt.Fprintln(buffered, canonical(map[string]any{"answers": answers}))
	}
}

func answers(q question) []string {
	answer, ok := areas[q.Area]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such area:", q.Area)
		os.Exit(1)
	}
	distinct := map[string]bool{}
	for range max(times[q.Area], 1) {
		distinct[guarded(answer, q)] = true
	}
	all := make([]string, 0, len(distinct))
	for text := range distinct {
		all = append(all, text)
	}
	sort.Strings(all)
	return all
}

// guarded turns a panic into an answer.
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
