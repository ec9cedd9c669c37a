package main

import (
	"encoding/hex"
	"fmt"
	"math"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	schemamodel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

var celEnv = sync.OnceValue(func() *cel.Env {
	env, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Env(environment.StoredExpressions)
	if err != nil {
		panic(err)
	}
	return env
})

// answerCEL compiles and evaluates an expression without variables: the result or the error, what it cost and what it
// could have cost.
func answerCEL(q question) string {
	env := celEnv()
	ast, issues := env.Compile(q.Text)
	if issues.Err() != nil {
		return "does not compile: " + issues.Err().Error()
	}
	estimate, err := env.EstimateCost(ast, &library.CostEstimator{})
	if err != nil {
		return "estimate: " + err.Error()
	}
	program, err := env.Program(ast, cel.CostLimit(1_000_000))
	if err != nil {
		return "program: " + err.Error()
	}
	value, details, err := program.Eval(map[string]any{})
	prefix := fmt.Sprintf("[%d..%d] ", estimate.Min, estimate.Max)
	if err != nil {
		return prefix + "error: " + err.Error()
	}
	return prefix + fmt.Sprintf("%d ", *details.ActualCost()) + shown(value)
}

// answerOptMap is answerCEL; with a schema, it is what its rules could cost.
func answerOptMap(q question) string {
	if q.Schema == nil {
		return answerCEL(q)
	}
	props, err := internal(q.Schema)
	if err != nil {
		return "schema: malformed"
	}
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		return "schema: malformed"
	}
	rules, err := schemacel.Compile(structural, schemamodel.SchemaDeclType(structural, false), celconfig.PerCallLimit,
		environment.MustBaseEnvSet(version.MajorMinor(1, 36)), schemacel.StoredExpressionsEnvLoader())
	if err != nil {
		return "rules: " + err.Error()
	}
	costs := make([]string, 0, len(rules))
	for _, rule := range rules {
		if rule.Error != nil {
			return "does not compile: " + rule.Error.Error()
		}
		costs = append(costs, fmt.Sprint(rule.MaxCost))
	}
	return strings.Join(costs, " ")
}

func shown(v ref.Val) string {
	switch v := v.(type) {
	case types.Null:
		return "null"
	case types.Bool:
		return fmt.Sprint(bool(v))
	case types.Int:
		return fmt.Sprint(int64(v))
	case types.Uint:
		return fmt.Sprintf("%du", uint64(v))
	case types.Double:
		if math.IsNaN(float64(v)) {
			return "double NaN"
		}
		return fmt.Sprintf("double %016x", math.Float64bits(float64(v)))
	case types.String:
		return canonical(string(v))
	case types.Bytes:
		return "bytes " + hex.EncodeToString(v)
	case types.Duration:
		return fmt.Sprintf("duration %d", v.Nanoseconds())
	case types.Timestamp:
		return "timestamp " + v.Format(time.RFC3339Nano)
	case *types.Optional:
		if !v.HasValue() {
			return "none"
		}
		return "some " + shown(v.GetValue())
	case traits.Lister:
		var items []string
		for it := v.Iterator(); it.HasNext() == types.True; {
			items = append(items, shown(it.Next()))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case traits.Mapper:
		var entries []string
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			entries = append(entries, shown(key)+": "+shown(v.Get(key)))
		}
		sort.Strings(entries)
		return "{" + strings.Join(entries, ", ") + "}"
	case apiservercel.Quantity:
		return "quantity " + canonicalQuantity(v)
	case *apiservercel.Quantity:
		return "quantity " + canonicalQuantity(*v)
	case apiservercel.IP:
		return "ip " + v.Addr.String()
	case apiservercel.CIDR:
		return "cidr " + v.Prefix.String()
	default:
		return v.Type().TypeName()
	}
}

func canonicalQuantity(q apiservercel.Quantity) string {
	number, suffix := q.Quantity.CanonicalizeBytes(nil)
	return string(number) + string(suffix)
}
