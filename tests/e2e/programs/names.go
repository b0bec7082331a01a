// names [SECONDS] - a Go method is hot, below a function, in a goroutine.
package main

import (
	"os"
	"strconv"
	"syscall"
)

type wheel struct{ n uint64 }

// The array gives it a frame: a leaf function without one keeps no frame pointer, and whoever walks
// by those misses its caller.
//
//go:noinline
func (w *wheel) turn(units int) {
	var spokes [64]uint64
	for i := 0; i < units; i++ {
		spokes[i%len(spokes)] += w.n
		w.n = w.n*31 + spokes[(i*7)%len(spokes)]
	}
}

//go:noinline
func drive(w *wheel) uint64 {
	w.turn(20000)
	return w.n
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
	done := make(chan uint64)
	go func() {
		var w wheel
		var sum uint64
		for worked() < seconds {
			sum += drive(&w)
		}
		done <- sum
	}()
	<-done
}
