//go:build go1.18
// +build go1.18

package main

import "fmt"

type numeric interface{ ~int | ~float64 }

type box[T numeric] struct{ v []T }

func (b *box[T]) add(x T) { b.v = append(b.v, x) }

func (b *box[T]) sum() (s T) {
	for _, x := range b.v {
		s += x
	}
	return s
}

func apply[T, U any](in []T, f func(T) U) []U {
	var out []U
	for _, x := range in {
		out = append(out, f(x))
	}
	return out
}

func generic(n int) string {
	ints, floats := &box[int]{}, &box[float64]{}
	for i := 0; i < n; i++ {
		ints.add(small(i))
		floats.add(float64(i) / 3)
	}
	texts := apply(ints.v, func(i int) string { return fmt.Sprint(i) })
	return fmt.Sprint(texts, ints.sum(), floats.sum())
}
