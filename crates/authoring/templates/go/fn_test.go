package main

import (
	"context"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// Requests and their responses, in the protocol's JSON form.
var cases = map[string]struct{ request, response string }{
	"FirstCall": {
		request: `{"meta": {"tag": "a"}, "input": {"message": "Hello"},
			"observed": {"composite": {"resource": {"metadata": {"name": "world"}}}}}`,
		response: `{"meta": {"tag": "a", "ttl": "60s"}, "desired": {"resources": {"greeting": {"ready": "READY_FALSE",
			"resource": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"message": "Hello, world"}}}}}}`,
	},
	"Exists": {
		request: `{"meta": {"tag": "a"}, "input": {"message": "Hello"},
			"observed": {"composite": {"resource": {"metadata": {"name": "world"}}},
				"resources": {"greeting": {"resource": {"apiVersion": "v1", "kind": "ConfigMap"}}}}}`,
		response: `{"meta": {"tag": "a", "ttl": "60s"}, "desired": {"resources": {"greeting": {"ready": "READY_TRUE",
			"resource": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"message": "Hello, world"}}}}}}`,
	},
	"NoMessage": {
		request: `{"meta": {"tag": "a"}, "input": {}}`,
		response: `{"meta": {"tag": "a", "ttl": "60s"}, "results": [{"severity": "SEVERITY_FATAL",
			"message": "the input has no message", "target": "TARGET_COMPOSITE"}]}`,
	},
}

func TestRunFunction(t *testing.T) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req, want := &fnv1.RunFunctionRequest{}, &fnv1.RunFunctionResponse{}
			if err := protojson.Unmarshal([]byte(c.request), req); err != nil {
				t.Fatal(err)
			}
			if err := protojson.Unmarshal([]byte(c.response), want); err != nil {
				t.Fatal(err)
			}
			f := &Function{log: logging.NewNopLogger()}
			got, err := f.RunFunction(context.Background(), req)
			if err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(want, got) {
				t.Errorf("wanted\n%s\ngot\n%s", protojson.Format(want), protojson.Format(got))
			}
		})
	}
}
