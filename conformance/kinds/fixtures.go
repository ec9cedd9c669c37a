package main

import (
	"bytes"
	"encoding/json"
	"log"
	"math/rand"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// protobufFixture: what the Go encoder wrote, and the JSON of what the Go decoder reads from it.
type protobufFixture struct {
	Type  string          `json:"type"`
	Bytes []byte          `json:"bytes"`
	JSON  json.RawMessage `json:"json"`
}

type protoMessage interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

func protobufFixtures(rs []root) []protobufFixture {
	var out []protobufFixture
	for i, r := range rs {
		if _, ok := reflect.New(r.goType).Interface().(protoMessage); !ok {
			continue
		}
		count := 8
		if strings.HasSuffix(r.Kind, "List") {
			count = 2
		}
		for n := range count {
			f := &filler{rand.New(rand.NewSource(int64(i*1000 + n))), []float64{0, 0.4, 0.6, 0.9}[n%4]}
			v := reflect.New(r.goType)
			f.fill(v.Elem(), 0)
			out = append(out, encodeProtobuf(r, v))
		}
	}
	return out
}

func encodeProtobuf(r root, v reflect.Value) protobufFixture {
	raw, err := v.Interface().(protoMessage).Marshal()
	if err != nil {
		log.Fatalf("%s: %v", r.Type, err)
	}
	api := schema.GroupVersion{Group: r.Group, Version: r.Version}.String()
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: api, Kind: r.Kind}, Raw: raw}
	body, err := envelope.Marshal()
	if err != nil {
		log.Fatal(err)
	}
	back := reflect.New(r.goType)
	if err := back.Interface().(protoMessage).Unmarshal(raw); err != nil {
		log.Fatal(err)
	}
	if meta := back.Elem().FieldByName("TypeMeta"); meta.IsValid() {
		meta.Set(reflect.ValueOf(metav1.TypeMeta{APIVersion: api, Kind: r.Kind}))
	}
	return protobufFixture{r.Type, append([]byte("k8s\x00"), body...), marshal(back.Interface())}
}

// roundTripFixture: a JSON document, and what a strict decode into the Go type makes of it.
type roundTripFixture struct {
	Type    string          `json:"type"`
	In      json.RawMessage `json:"in"`
	Out     json.RawMessage `json:"out,omitempty"`
	Unknown []string        `json:"unknown,omitempty"`
	Error   string          `json:"error,omitempty"`
}

func roundTripFixtures(rs []root) []roundTripFixture {
	var out []roundTripFixture
	for i, r := range rs {
		count := 14
		switch r.Kind {
		case "CustomResourceDefinition", "Pod", "Deployment":
			count = 40
		}
		if strings.HasSuffix(r.Kind, "List") {
			count = 2
		}
		for n := range count {
			rnd := rand.New(rand.NewSource(int64(i*1000 + n)))
			f := &filler{rnd, []float64{0.1, 0.5, 0.7}[n%3]}
			v := reflect.New(r.goType)
			f.fill(v.Elem(), 0)
			var tree any
			if err := json.Unmarshal(marshal(v.Interface()), &tree); err != nil {
				log.Fatal(err)
			}
			m := &mutator{r: rnd, wrong: n%2 == 1}
			tree = m.mutate(tree, 0)
			out = append(out, decodeStrict(r, marshal(tree)))
		}
	}
	return out
}

func decodeStrict(r root, in []byte) roundTripFixture {
	f := roundTripFixture{Type: r.Type, In: bytes.TrimSpace(in)}
	v := reflect.New(r.goType)
	strict, err := kjson.UnmarshalStrict(in, v.Interface())
	if err != nil {
		f.Error = err.Error()
		return f
	}
	for _, s := range strict {
		f.Unknown = append(f.Unknown, s.Error())
	}
	sort.Strings(f.Unknown)
	f.Out = marshal(v.Interface())
	return f
}

// mutator spoils a document: unknown fields, nulls, empty values, and at most one value of a wrong type.
type mutator struct {
	r     *rand.Rand
	wrong bool
}

func (m *mutator) mutate(v any, depth int) any {
	switch t := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(t))
		for k := range t {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			t[k] = m.child(t[k], depth)
		}
		if m.r.Intn(6) == 0 {
			t["zzz"] = map[string]any{"inner": 1}
		}
	case []any:
		for i := range t {
			t[i] = m.child(t[i], depth)
		}
	}
	return v
}

func (m *mutator) child(v any, depth int) any {
	switch {
	case m.r.Intn(25) == 0:
		return nil
	case m.wrong && m.r.Intn(12) == 0:
		m.wrong = false
		samples := []any{"text", 7, 2.5, true, map[string]any{"q": 1}, []any{"x"}, 5_000_000_000, ""}
		return samples[m.r.Intn(len(samples))]
	}
	return m.mutate(v, depth+1)
}

// scalarFixture: how a quantity or a time prints again, or why it does not parse.
type scalarFixture struct {
	Kind  string `json:"kind"`
	In    string `json:"in"`
	Out   string `json:"out,omitempty"`
	Error string `json:"error,omitempty"`
}

func scalarFixtures() []scalarFixture {
	var out []scalarFixture
	add := func(kind, in string, v json.Unmarshaler) {
		quoted := marshal(in)
		f := scalarFixture{Kind: kind, In: in}
		if err := v.UnmarshalJSON(bytes.TrimSpace(quoted)); err != nil {
			f.Error = err.Error()
		} else if err := json.Unmarshal(marshal(v), &f.Out); err != nil {
			log.Fatal(err)
		}
		out = append(out, f)
	}
	numbers := []string{"0", "1", "-1", "+2", "10", "100", "1000", "1024", "1500", "123456", "0.5", ".5", "5.", "1.25",
		"0.001", "0.0001", "1000000", "999999999999", "9223372036854775807", "9223372036854775808", "12345678901234567890123",
		"00012", "0.0000000001", "1.000000001", "-0.5", "1048576", "2048", "1023", "1025", "000", "-0", "1.10"}
	suffixes := []string{"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E3", "e-3", "e2", "e-12", "e+1"}
	for _, n := range numbers {
		for _, s := range suffixes {
			add("quantity", n+s, &resource.Quantity{})
		}
	}
	for _, s := range []string{"", "x", "1x", "1 ", " 1", "--1", "1..2", "1.2.3", "Ki", "m", "1Kib", "1e", "1e99", "1mm", "1_000", "١", "e3", ".", "+", "-", "1i", "1K"} {
		add("quantity", s, &resource.Quantity{})
	}
	times := []string{"2024-01-02T03:04:05Z", "2024-01-02T03:04:05.5Z", "2024-01-02T03:04:05.123456789Z", "2024-01-02T03:04:05+02:00",
		"2024-01-02T03:04:05-07:30", "2024-02-30T00:00:00Z", "2024-02-29T23:59:59Z", "2023-02-29T00:00:00Z", "2024-13-01T00:00:00Z",
		"2024-01-02", "2024-01-02T03:04", "2024-01-02T24:00:00Z", "2024-01-02T03:60:00Z", "2024-01-02T03:04:61Z", "yesterday", "",
		"2024-01-02 03:04:05Z", "2024-01-02T03:04:05", "2024-01-02T03:04:05z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
		"2024-01-02T03:04:05Zx", "2024-1-2T03:04:05Z", "2024-01-02T3:04:05Z", "2024-01-02T03:04:05,5Z", "1970-01-01T00:00:00Z",
		"2024-01-02T03:04:05.000001Z", "2024-01-02T03:04:05.1234567Z", "2024-01-02T03:04:05+25:00", "2024-00-10T00:00:00Z", "2024-01-00T00:00:00Z"}
	for _, s := range times {
		add("time", s, &metav1.Time{})
		add("microtime", s, &metav1.MicroTime{})
	}
	return out
}
