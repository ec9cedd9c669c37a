package main

import (
	"context"
	"encoding/json"
	"sort"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	kjson "sigs.k8s.io/json"
)

// answerSchema validates a value with the schema of a custom resource as an API server does on create: what the schema
// says, list sets and maps, rules, and what pruning removes.
func answerSchema(q question) string {
	props, err := internal(q.Schema)
	if err != nil {
		return "schema: malformed"
	}
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		return "schema: malformed"
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return "schema: malformed"
	}
	read := func() map[string]any {
		var value map[string]any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(q.Value, &value); err != nil {
			panic(err)
		}
		return value
	}
	pruned := read()
	unknown := pruning.PruneWithOptions(pruned, structural, false, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	sort.Strings(unknown)
	problems := validation.ValidateCustomResource(nil, read(), validator)
	answer := map[string]any{
		"unknown": append([]string{}, unknown...),
		"pruned":  pruned,
		"schema":  texts(problems),
		"lists":   texts(listtype.ValidateListSetsAndMaps(nil, structural, read())),
	}
	if rules := schemacel.NewValidator(structural, false, celconfig.PerCallLimit); len(problems) == 0 && rules != nil {
		errors, _ := rules.Validate(context.Background(), nil, structural, read(), nil, celconfig.RuntimeCELCostBudget)
		answer["rules"] = texts(errors)
	}
	return canonical(answer)
}

// internal is the schema as an API server works with it.
func internal(schema json.RawMessage) (*apiextensions.JSONSchemaProps, error) {
	var external apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(schema, &external); err != nil {
		return nil, err
	}
	var props apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &props, nil)
	return &props, err
}

func texts(errors field.ErrorList) []string {
	all := make([]string, 0, len(errors))
	for _, err := range errors {
		all = append(all, err.Error())
	}
	sort.Strings(all)
	return all
}
