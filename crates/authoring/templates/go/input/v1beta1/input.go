// Package v1beta1 is what a step of a Composition says to this function. Its schema is package/input/inputs.yaml.
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Input is the input.
type Input struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Message is the greeting that is put into the ConfigMap.
	Message string `json:"message"`
}

// DeepCopyObject makes Input a runtime.Object.
func (in *Input) DeepCopyObject() runtime.Object {
	out := &Input{TypeMeta: in.TypeMeta, Message: in.Message}
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}
