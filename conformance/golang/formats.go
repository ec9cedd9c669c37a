package main

import (
	"sort"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	servervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// answerFormats lists the formats that an API server warns of when a definition has this schema, each once: it asks for each
// node as getUnrecognizedFormatsInSchema of the registry does, which is not exported.
func answerFormats(q question) string {
	props, err := internal(q.Schema)
	if err != nil {
		return "schema: malformed"
	}
	found := sets.New[string]()
	validation.SchemaHas(props, func(node *apiextensions.JSONSchemaProps) bool {
		if len(node.Format) > 0 {
			schema := &spec.Schema{SchemaProps: spec.SchemaProps{Format: node.Format, Type: []string{node.Type}}}
			found.Insert(servervalidation.GetUnrecognizedFormats(schema, version.MajorMinor(1, q.Minor))...)
		}
		return false
	})
	all := found.UnsortedList()
	sort.Strings(all)
	return canonical(all)
}
