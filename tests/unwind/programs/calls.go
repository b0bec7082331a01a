// calls.go - goroutines, interfaces, closures, maps, sorting, the garbage collector; the argument is the
// number of seconds. Copied beside cgo.go it also calls C.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"
)

type shape interface{ area() float64 }
type square struct{ side float64 }

func (s *square) area() float64 { return s.side * s.side }

var extra = func(int) int { return 0 }

//go:noinline
func fibonacci(n int) int {
	if n < 2 {
		return n
	}
	return fibonacci(n-1) + fibonacci(n-2)
}

func round(n int) int {
	m := map[string]shape{}
	for i := 0; i < 200; i++ {
		m[strconv.Itoa(i*n)] = &square{float64(i)}
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return m[keys[i]].area() < m[keys[j]].area() })
	return fibonacci(18) + len(strings.Join(keys, ",")) + len(fmt.Sprint(keys[:5])) + extra(n)
}

func main() {
	seconds := 1
	if len(os.Args) > 1 {
		seconds, _ = strconv.Atoi(os.Args[1])
	}
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	done := make(chan int)
	for g := 0; g < 3; g++ {
		go func() {
			sum := 0
			for time.Now().Before(end) {
				sum += round(sum%7 + 1)
			}
			done <- sum
		}()
	}
	for g := 0; g < 3; g++ {
		<-done
	}
}
