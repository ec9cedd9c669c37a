package main

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// answerQuantity reads two quantities and does with them all that can be done. Each step reads them anew, since
// comparing and adding change how a quantity is held.
func answerQuantity(q question) string {
	var out strings.Builder
	read := func(text string) *resource.Quantity {
		parsed, err := resource.ParseQuantity(text)
		if err != nil {
			return nil
		}
		return &parsed
	}
	describe := func(name string, make func() *resource.Quantity) {
		if make() == nil {
			fmt.Fprintf(&out, "%s: none; ", name)
			return
		}
		whole, fits := make().AsInt64()
		if !fits {
			whole = 0
		}
		fmt.Fprintf(&out, "%s: %s %s %d %d %d %v %d %016x", name, make().String(), make().Format, make().Sign(), make().Value(),
			make().MilliValue(), fits, whole, math.Float64bits(make().AsApproximateFloat64()))
		canonical := make()
		number, suffix := canonical.CanonicalizeBytes(nil)
		fmt.Fprintf(&out, " %s%s; ", number, suffix)
	}
	if _, err := resource.ParseQuantity(q.A); err != nil {
		return "error: " + err.Error()
	}
	describe("a", func() *resource.Quantity { return read(q.A) })
	describe("a+n", func() *resource.Quantity {
		a := read(q.A)
		a.Add(*resource.NewQuantity(q.N, resource.DecimalExponent))
		return a
	})
	describe("a-n", func() *resource.Quantity {
		a := read(q.A)
		a.Sub(*resource.NewQuantity(q.N, resource.DecimalExponent))
		return a
	})
	describe("-a", func() *resource.Quantity { a := read(q.A); a.Neg(); return a })
	if read(q.B) == nil {
		return out.String()
	}
	fmt.Fprintf(&out, "a?b: %d %d; ", read(q.A).Cmp(*read(q.B)), read(q.B).Cmp(*read(q.A)))
	sum := func() *resource.Quantity { a := read(q.A); a.Add(*read(q.B)); return a }
	difference := func() *resource.Quantity { a := read(q.A); a.Sub(*read(q.B)); return a }
	describe("a+b", sum)
	describe("a-b", difference)
	// Sums have forms that no text has.
	fmt.Fprintf(&out, "a+b?a: %d; ", sum().Cmp(*read(q.A)))
	describe("(a+b)-n", func() *resource.Quantity {
		a := sum()
		a.Sub(*resource.NewQuantity(q.N, resource.DecimalExponent))
		return a
	})
	describe("n-(a-b)", func() *resource.Quantity {
		n := resource.NewQuantity(q.N, resource.DecimalSI)
		n.Sub(*difference())
		return n
	})
	return out.String()
}
