package main

import (
	"math/rand"
	"reflect"
	"strconv"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filler puts random values into an object. Deep down it grows reluctant, so that objects stay small.
type filler struct {
	r     *rand.Rand
	dense float64
}

var words = []string{"a", "web", "käse", "x-1", "\"quoted\" <b>", "line\nbreak", "0", "kubernetes.io/name"}

var quantities = []string{"0", "1", "100m", "0.5", "1500m", "1Gi", "1.5Gi", "1024Ki", "1e3", "12E", "2000", "0.1m", "123456789n", "-5", "1023", "1000Mi"}

func (f *filler) word() string { return words[f.r.Intn(len(words))] }

func (f *filler) fill(v reflect.Value, depth int) {
	if f.special(v, depth) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if f.r.Float64() < f.chance(depth) {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if f.r.Float64() >= f.chance(depth) {
			return
		}
		n := f.r.Intn(3)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		if f.r.Float64() >= f.chance(depth) {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for range f.r.Intn(3) {
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			k.SetString(f.word())
			f.fill(e, depth+1)
			v.SetMapIndex(k, e)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Type != reflect.TypeOf(metav1.TypeMeta{}) {
				f.fill(v.Field(i), depth+1)
			}
		}
	default:
		f.scalar(v, depth)
	}
}

func (f *filler) chance(depth int) float64 {
	if depth > 14 {
		return 0
	}
	return f.dense / (1 + float64(depth)/4)
}

func (f *filler) scalar(v reflect.Value, depth int) {
	if f.r.Float64() >= f.chance(depth)+0.1 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.word())
	case reflect.Bool:
		v.SetBool(f.r.Intn(2) == 0)
	case reflect.Uint8:
		v.SetUint(uint64(f.r.Intn(256)))
	case reflect.Int32:
		v.SetInt(int64(int32(f.r.Uint32())) >> f.r.Intn(32))
	case reflect.Int64, reflect.Int:
		v.SetInt(int64(f.r.Uint64()) >> f.r.Intn(64))
	case reflect.Float64:
		v.SetFloat([]float64{1, 2.5, -3, 1e6, 0.001}[f.r.Intn(5)])
	}
}

// special fills the types with a JSON form of their own, and says whether it did.
func (f *filler) special(v reflect.Value, depth int) bool {
	seconds := f.r.Int63n(4_000_000_000)
	switch p := v.Addr().Interface().(type) {
	case *metav1.Time:
		if f.r.Intn(3) > 0 {
			*p = metav1.Unix(seconds, 0)
		}
	case *metav1.MicroTime:
		if f.r.Intn(3) > 0 {
			*p = metav1.NewMicroTime(time.Unix(seconds, int64(f.r.Intn(1_000_000))*1000))
		}
	case *resource.Quantity:
		*p = resource.MustParse(quantities[f.r.Intn(len(quantities))])
	case *intstr.IntOrString:
		*p = intstr.FromInt32(f.r.Int31n(70000))
		if f.r.Intn(2) == 0 {
			*p = intstr.FromString(f.word())
		}
	case *runtime.RawExtension:
		p.Raw = f.json()
	case *metav1.FieldsV1:
		*p = *metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)
	case *apiextensionsv1.JSON:
		p.Raw = f.json()
	case *apiextensionsv1.JSONSchemaPropsOrBool:
		p.Allows = f.r.Intn(2) == 0
		if f.r.Float64() < f.chance(depth) {
			p.Allows, p.Schema = true, f.props(depth)
		}
	case *apiextensionsv1.JSONSchemaPropsOrArray:
		p.Schema = f.props(depth)
		if f.r.Intn(3) == 0 {
			p.Schema, p.JSONSchemas = nil, []apiextensionsv1.JSONSchemaProps{*f.props(depth), {}}
		}
	case *apiextensionsv1.JSONSchemaPropsOrStringArray:
		p.Schema = f.props(depth)
		if f.r.Intn(2) == 0 {
			p.Schema, p.Property = nil, []string{f.word(), "b"}
		}
	default:
		return false
	}
	return true
}

func (f *filler) props(depth int) *apiextensionsv1.JSONSchemaProps {
	p := &apiextensionsv1.JSONSchemaProps{}
	if depth < 12 {
		f.fill(reflect.ValueOf(p).Elem(), depth+3)
	}
	return p
}

func (f *filler) json() []byte {
	samples := []string{`{"a":[1,2.5,null],"b":{"c":"d"}}`, `"text"`, `7`, `true`, `[]`, `{}`,
		`{"n":` + strconv.Itoa(f.r.Intn(1000)) + `}`, `{"deep":` + strings.Repeat(`[`, 5) + strings.Repeat(`]`, 5) + `}`}
	return []byte(samples[f.r.Intn(len(samples))])
}
