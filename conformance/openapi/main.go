// Checks the API's discovery and OpenAPI documents with the code that real clients use: client-go's discovery,
// gnostic's parsers, the schema readers of kubectl and Argo CD. Prints `openapi: N passed, M failed`.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"sort"
	"strings"
	"time"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	smdproto "k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

const protobufMedia = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

type suite struct {
	config         *rest.Config
	client         *discovery.DiscoveryClient
	passed, failed int
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == "record" {
		if err := record(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: openapi KUBECONFIG, or: openapi record DOCUMENT.json DOCUMENT.pb")
		os.Exit(2)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	config.QPS, config.Burst = 1000, 1000
	s := &suite{config: config, client: discovery.NewDiscoveryClientForConfigOrDie(config)}
	s.check("a custom kind is defined", s.define(widgets("string")))
	s.check("protobuf says what JSON says", s.sameDocument())
	s.check("client-go reads the protobuf", s.schemaReaders())
	s.check("Go's own v2 types read the protobuf", s.goTypes())
	s.check("every v3 document is closed", s.thirdDocuments())
	s.check("discovery agrees with itself", s.discoveries())
	s.check("hashes change with content and only then", s.hashes())
	fmt.Printf("openapi: %d passed, %d failed\n", s.passed, s.failed)
	if s.failed > 0 {
		os.Exit(1)
	}
}

// record writes a JSON document in protobuf as kube-apiserver does, for tests that run without Go.
func record(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	document, err := openapi_v2.ParseDocument(text)
	if err != nil {
		return err
	}
	binary, err := proto.MarshalOptions{Deterministic: true}.Marshal(document)
	if err != nil {
		return err
	}
	return os.WriteFile(to, binary, 0o644)
}

func (s *suite) check(what string, err error) {
	if err != nil {
		s.failed++
		fmt.Printf("FAIL %s: %v\n", what, err)
		return
	}
	s.passed++
}

// get sends a request as it is: no retries, no redirects.
func (s *suite) get(path, accept string, header http.Header) (*http.Response, []byte, error) {
	transport, err := rest.TransportFor(s.config)
	if err != nil {
		return nil, nil, err
	}
	request, err := http.NewRequest(http.MethodGet, s.config.Host+path, nil)
	if err != nil {
		return nil, nil, err
	}
	for key, values := range header {
		request.Header[key] = values
	}
	request.Header.Set("Accept", accept)
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	var body bytes.Buffer
	_, err = body.ReadFrom(response.Body)
	return response, body.Bytes(), err
}

func widgets(kind string) map[string]any {
	field := func(s string) map[string]any { return map[string]any{"type": s} }
	spec := map[string]any{"type": "object", "required": []any{"size"}, "properties": map[string]any{
		"size":     field(kind),
		"maybe":    map[string]any{"type": "object", "nullable": true, "properties": map[string]any{"a": field("string")}},
		"port":     map[string]any{"x-kubernetes-int-or-string": true},
		"open":     map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		"template": map[string]any{"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
		"numbers":  map[string]any{"type": "array", "maxItems": 5, "items": map[string]any{"type": "number", "minimum": -1.5, "enum": []any{1, 2.5}}},
		"labels":   map[string]any{"type": "object", "additionalProperties": field("string"), "description": "Any labels: \"é\"\n"},
		"free":     map[string]any{"type": "object", "additionalProperties": true},
	}}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets.conformance.example.org"},
		"spec": map[string]any{
			"group": "conformance.example.org", "scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}, "scale": map[string]any{
					"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": spec}}},
			}},
		},
	}
}

// define applies a definition and waits until discovery and OpenAPI show it.
func (s *suite) define(definition map[string]any) error {
	body, err := json.Marshal(definition)
	if err != nil {
		return err
	}
	err = s.client.RESTClient().Patch("application/apply-patch+yaml").
		AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.conformance.example.org").
		Param("fieldManager", "conformance").Param("force", "true").Body(body).Do(context.Background()).Error()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(60 * time.Second)
	for {
		_, document, err := s.get("/openapi/v3/apis/conformance.example.org/v1", "application/json", nil)
		if err == nil && bytes.Contains(document, []byte("org.example.conformance.v1.Widget")) {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not published after a minute: %v", err)
		}
		time.Sleep(200 * time.Millisecond)
	}
	for time.Now().Before(deadline) {
		_, document, err := s.get("/openapi/v2", "application/json", nil)
		if err == nil && bytes.Contains(document, []byte("org.example.conformance.v1.Widget")) {
			return nil
		}
		time.Sleep(200 * time.Millisecond)
	}
	return fmt.Errorf("not in /openapi/v2 after a minute")
}

// sameDocument parses the JSON document strictly, as upstream does to make protobuf, and compares the messages.
func (s *suite) sameDocument() error {
	_, text, err := s.get("/openapi/v2", "application/json", nil)
	if err != nil {
		return err
	}
	want, err := openapi_v2.ParseDocument(text)
	if err != nil {
		return fmt.Errorf("the JSON document: %w", err)
	}
	response, binary, err := s.get("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", nil)
	if err != nil {
		return err
	}
	if media := response.Header.Get("Content-Type"); media != protobufMedia {
		return fmt.Errorf("content type %q", media)
	}
	got := &openapi_v2.Document{}
	if err := proto.Unmarshal(binary, got); err != nil {
		return err
	}
	wanted, err := plain(want)
	if err != nil {
		return err
	}
	gotten, err := plain(got)
	if err != nil {
		return err
	}
	if where := difference(wanted, gotten, "$"); where != "" {
		return fmt.Errorf("%s", where)
	}
	if wanted.(map[string]any)["definitions"] == nil || gotten.(map[string]any)["paths"] == nil {
		return fmt.Errorf("the document is empty")
	}
	return nil
}

// plain is a message as JSON values, with YAML texts replaced by what they mean.
func plain(message proto.Message) (any, error) {
	text, err := protojson.Marshal(message)
	if err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	return meant(value)
}

func meant(value any) (any, error) {
	var err error
	switch value := value.(type) {
	case map[string]any:
		if text, ok := value["yaml"].(string); ok && len(value) == 1 {
			var inner any
			err = yaml.Unmarshal([]byte(text), &inner)
			return map[string]any{"meant": inner}, err
		}
		for key := range value {
			if value[key], err = meant(value[key]); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range value {
			if value[i], err = meant(value[i]); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

func difference(want, got any, where string) string {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			return where + " is no object"
		}
		keys := map[string]bool{}
		for key := range want {
			keys[key] = true
		}
		for key := range got {
			keys[key] = true
		}
		for key := range keys {
			if found := difference(want[key], got[key], where+"."+key); found != "" {
				return found
			}
		}
		return ""
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			return fmt.Sprintf("%s has another length: %v, %v", where, want, got)
		}
		for i := range want {
			if found := difference(want[i], got[i], fmt.Sprintf("%s[%d]", where, i)); found != "" {
				return found
			}
		}
		return ""
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Sprintf("%s: JSON says %v, protobuf %v", where, want, got)
	}
	return ""
}

// schemaReaders are kubectl's and Argo CD's ways to a schema.
func (s *suite) schemaReaders() error {
	document, err := s.client.OpenAPISchema()
	if err != nil {
		return err
	}
	models, err := smdproto.NewOpenAPIData(document)
	if err != nil {
		return err
	}
	widget := models.LookupModel("org.example.conformance.v1.Widget")
	if widget == nil {
		return fmt.Errorf("no model of the custom kind among %d", len(models.ListModels()))
	}
	if _, ok := widget.(*smdproto.Kind); !ok {
		return fmt.Errorf("the custom kind is a %T", widget)
	}
	parser, err := managedfields.NewGVKParser(models, false)
	if err != nil {
		return err
	}
	_, lists, err := s.client.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") || !has(resource.Verbs, "list") {
				continue
			}
			if parser.Type(version.WithKind(resource.Kind)) == nil {
				return fmt.Errorf("no type of %s in %s", resource.Kind, version)
			}
		}
	}
	return nil
}

func has(all []string, one string) bool {
	for _, each := range all {
		if each == one {
			return true
		}
	}
	return false
}

func (s *suite) goTypes() error {
	document, err := s.client.OpenAPISchema()
	if err != nil {
		return err
	}
	swagger := &spec.Swagger{}
	if ok, err := swagger.FromGnostic(document); err != nil || !ok {
		return fmt.Errorf("lossless %t: %v", ok, err)
	}
	widget, found := swagger.Definitions["org.example.conformance.v1.Widget"]
	if !found {
		return fmt.Errorf("the custom kind is not among %d definitions", len(swagger.Definitions))
	}
	properties := widget.Properties["spec"].Properties
	for name, open := range map[string]bool{"size": false, "maybe": true, "port": true, "open": true, "template": true} {
		if (len(properties[name].Type) == 0) != open {
			return fmt.Errorf("%s has type %v", name, properties[name].Type)
		}
	}
	if len(properties["template"].Properties) > 0 || properties["numbers"].Items.Schema.Type[0] != "number" {
		return fmt.Errorf("template or numbers: %v", properties)
	}
	return nil
}

func (s *suite) thirdDocuments() error {
	root := openapi3.NewRoot(s.client.OpenAPIV3())
	versions, err := root.GroupVersions()
	if err != nil {
		return err
	}
	for _, version := range versions {
		document, err := root.GVSpec(version)
		if err != nil {
			return fmt.Errorf("%s: %w", version, err)
		}
		text, err := json.Marshal(document)
		if err != nil {
			return err
		}
		for _, part := range strings.Split(string(text), `"#/components/schemas/`)[1:] {
			name := part[:strings.IndexByte(part, '"')]
			if document.Components.Schemas[name] == nil {
				return fmt.Errorf("%s refers to %s, which it does not have", version, name)
			}
		}
	}
	widgets := schema.GroupVersion{Group: "conformance.example.org", Version: "v1"}
	document, err := root.GVSpec(widgets)
	if err != nil {
		return err
	}
	item := document.Paths.Paths["/apis/conformance.example.org/v1/namespaces/{namespace}/widgets/{name}"]
	if item == nil || item.Patch == nil {
		return fmt.Errorf("no patch of the custom kind")
	}
	var names []string
	for _, parameter := range item.Patch.Parameters {
		names = append(names, parameter.Name)
	}
	sort.Strings(names)
	if fmt.Sprint(names) != "[dryRun fieldManager fieldValidation force]" {
		return fmt.Errorf("patch takes %v", names)
	}
	return nil
}

// discoveries compares the aggregated documents with the old ones.
func (s *suite) discoveries() error {
	_, aggregated, err := s.client.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	old := discovery.NewDiscoveryClientForConfigOrDie(s.config)
	old.UseLegacyDiscovery = true
	_, legacy, err := old.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	one, two := lines(aggregated), lines(legacy)
	for i := range min(len(one), len(two)) {
		if one[i] != two[i] {
			return fmt.Errorf("aggregated: %s; legacy: %s", one[i], two[i])
		}
	}
	if len(one) == 0 || len(one) != len(two) {
		return fmt.Errorf("%d resources aggregated, %d otherwise", len(one), len(two))
	}
	return nil
}

// lines says one thing per resource. Only the legacy documents leave out a subresource's singular name.
func lines(lists []*metav1.APIResourceList) []string {
	var out []string
	for _, list := range lists {
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") {
				r.SingularName = ""
			}
			out = append(out, fmt.Sprintf("%s %s %s %t %q %v %v %v", list.GroupVersion, r.Name, r.Kind, r.Namespaced, r.SingularName, r.ShortNames, r.Categories, r.Verbs))
		}
	}
	sort.Strings(out)
	return out
}

func (s *suite) index() (map[string]string, error) {
	_, text, err := s.get("/openapi/v3", "application/json", nil)
	if err != nil {
		return nil, err
	}
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for path, at := range index.Paths {
		out[path] = at.ServerRelativeURL
	}
	return out, nil
}

func (s *suite) hashes() error {
	const path = "apis/conformance.example.org/v1"
	before, err := s.index()
	if err != nil {
		return err
	}
	response, _, err := s.get(before[path], "application/json", nil)
	if err != nil {
		return err
	}
	if response.StatusCode != 200 || !strings.Contains(response.Header.Get("Cache-Control"), "immutable") {
		return fmt.Errorf("%d with Cache-Control %q", response.StatusCode, response.Header.Get("Cache-Control"))
	}
	etag := response.Header.Get("Etag")
	for _, at := range []string{before[path], "/openapi/v3/" + path} {
		again, body, err := s.get(at, "application/json", http.Header{"If-None-Match": {etag}})
		if err != nil {
			return err
		}
		if again.StatusCode != 304 || len(body) > 0 {
			return fmt.Errorf("%s with its ETag answers %d and %d bytes", at, again.StatusCode, len(body))
		}
	}
	if err := s.define(widgets("integer")); err != nil {
		return err
	}
	var after map[string]string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if after, err = s.index(); err != nil {
			return err
		}
		if after[path] != before[path] {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the hash did not change with the schema")
		}
	}
	for other := range before {
		if other != path && after[other] != before[other] {
			return fmt.Errorf("%s changed with another group", other)
		}
	}
	stale, _, err := s.get(before[path], "application/json", nil)
	if err != nil {
		return err
	}
	if stale.StatusCode != 301 || stale.Header.Get("Location") != after[path] {
		return fmt.Errorf("a stale hash answers %d to %q", stale.StatusCode, stale.Header.Get("Location"))
	}
	if unknown, _, err := s.get("/openapi/v2", "text/html", nil); err != nil || unknown.StatusCode != 406 {
		return fmt.Errorf("text/html answers %v, %v", unknown, err)
	}
	return nil
}
