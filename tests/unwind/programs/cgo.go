package main

/*
#include <stdlib.h>

extern int goCompare(int a, int b);

static int sum_up(int n) { return n < 2 ? n : sum_up(n - 1) + sum_up(n - 2); }
static int ask(const void *a, const void *b) { return goCompare(*(const int *)a, *(const int *)b); }

// C that computes, and C that calls Go back.
static int in_c(int n)
{
	int v[16];

	for (int i = 0; i < 16; i++)
		v[i] = (i * 7919 + n) % 23;
	qsort(v, 16, sizeof(*v), ask);
	return sum_up(20) + v[0];
}
*/
import "C"

//export goCompare
func goCompare(a, b C.int) C.int {
	return C.int(int(a)-int(b)) + C.int(fibonacci(8)-fibonacci(8))
}

func init() {
	extra = func(n int) int { return int(C.in_c(C.int(n))) }
}
