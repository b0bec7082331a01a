// names [SECONDS] - a Go method is hot, below a function, in a goroutine.
package main

import (
	"os"
	"strconv"
	"time"
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

func main() {
	seconds := 1.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	done := make(chan uint64)
	go func() {
		var w wheel
		var sum uint64
		for start := time.Now(); time.Since(start).Seconds() < seconds; {
			sum += drive(&w)
		}
		done <- sum
	}()
	<-done
}
