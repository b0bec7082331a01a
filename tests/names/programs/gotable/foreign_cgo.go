//go:build cgo
// +build cgo

package main

// #include <stdlib.h>
// static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
// static void sort_numbers(int *v, int n) { qsort(v, n, sizeof(*v), by_number); }
import "C"

func foreign() {
	v := []C.int{3, 1, 2}
	C.sort_numbers(&v[0], C.int(len(v)))
}
