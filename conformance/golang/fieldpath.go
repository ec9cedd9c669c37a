package main

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
)

// answerFieldPath follows a path from the root of a schema: the field's path in an object, and the title of its schema.
func answerFieldPath(q question) string {
	props, err := internal(q.Schema)
	if err != nil {
		return "schema: malformed"
	}
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		return "schema: malformed"
	}
	path, found, err := schemacel.ValidFieldPath(q.Text, structural, schemacel.WithFieldPathAllowArrayNotation(q.Brackets))
	if err != nil {
		return "error: " + err.Error()
	}
	answer := map[string]any{"path": "", "schema": nil}
	if path != nil {
		answer["path"] = path.String()
	}
	if found != nil {
		answer["schema"] = found.Title
	}
	return canonical(answer)
}
