// inlined [SECONDS] - the hot loop is two inlined calls below a function. The comments name the lines
// that the test expects.
package main

import (
	"os"
	"strconv"
	"time"
)

type wheel struct{ n uint64 }

func (w *wheel) innermost(units int) {
	for i := 0; i < units; i++ {
		w.n = w.n*31 + uint64(i)/3 // innermost
	}
}

func middle(w *wheel, units int) {
	w.innermost(units + 1) // middle
}

//go:noinline
func outer(w *wheel, units int) uint64 {
	middle(w, units) // outer
	return w.n
}

func main() {
	seconds := 1.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	var w wheel
	for start := time.Now(); time.Since(start).Seconds() < seconds; {
		w.n += outer(&w, 20000) // main
	}
}
