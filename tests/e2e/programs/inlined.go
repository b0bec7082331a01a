// inlined [SECONDS] - the hot loop is two inlined calls below a function. The comments name the lines
// that the test expects.
package main

import (
	"os"
	"strconv"
	"syscall"
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
	var frame [64]uint64 // with a frame, whoever walks by frame pointers finds its caller
	middle(w, units)     // outer
	frame[w.n%64] = w.n
	return frame[units%64]
}

// CPU time that the process has used.
func worked() float64 {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

func main() {
	seconds := 1.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	var w wheel
	for worked() < seconds {
		w.n += outer(&w, 20000) // main
	}
}
