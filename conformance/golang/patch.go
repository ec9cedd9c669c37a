package main

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
)

// merged has a field of every kind that strategic merge patch distinguishes. The schema of the same name in
// crates/builtins/examples/golang/patch.rs must say the same.
type merged struct {
	Name     string            `json:"name,omitempty"`
	Value    any               `json:"value,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Items    []merged          `json:"items,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	Ports    []merged          `json:"ports,omitempty" patchStrategy:"merge" patchMergeKey:"port"`
	Port     any               `json:"port,omitempty"`
	Scalars  []any             `json:"scalars,omitempty" patchStrategy:"merge"`
	Atomic   []any             `json:"atomic,omitempty"`
	Inner    *merged           `json:"inner,omitempty"`
	Replaced *merged           `json:"replaced,omitempty" patchStrategy:"replace"`
	Retained *merged           `json:"retained,omitempty" patchStrategy:"retainKeys"`
	Both     []merged          `json:"both,omitempty" patchStrategy:"merge,retainKeys" patchMergeKey:"name"`
}

func answerPatch(q question) string {
	var original, patch map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(q.Original, &original); err != nil {
		return "error: malformed"
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(q.Patch, &patch); err != nil {
		return "error: malformed"
	}
	// Lists without spare room, as an API server's copies of objects are: merging appends in place where there is room.
	original, patch = runtime.DeepCopyJSON(original), runtime.DeepCopyJSON(patch)
	result, err := strategicpatch.StrategicMergeMapPatch(original, patch, merged{})
	switch {
	case err == nil:
		return canonical(result)
	case errors.Is(err, mergepatch.ErrBadJSONDoc), errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
		errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys), errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList):
		return "error: malformed"
	default:
		return "error: inapplicable"
	}
}
