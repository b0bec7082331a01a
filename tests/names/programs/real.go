// real.go - much of Go's library, generics, closures and wrappers, so that calls are inlined many deep.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"sort"
	"strings"
	"text/template"
)

type number interface{ ~int | ~float64 }

type box[T number] struct{ v []T }

func (b *box[T]) add(x T) { b.v = append(b.v, x) }

func (b *box[T]) sum() (s T) {
	for _, x := range b.v {
		s += x
	}
	return s
}

func tiny(x int) int  { return x*3 + 1 }
func small(x int) int { return tiny(x) ^ tiny(x+1) }

func apply[T, U any](in []T, f func(T) U) []U {
	var out []U
	for _, x := range in {
		out = append(out, f(x))
	}
	return out
}

type byLength []string

func (b byLength) Len() int           { return len(b) }
func (b byLength) Less(i, j int) bool { return len(b[i]) < len(b[j]) }
func (b byLength) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }

func main() {
	ints, floats := &box[int]{}, &box[float64]{}
	for i := 0; i < 100; i++ {
		ints.add(small(i))
		floats.add(float64(i) / 3)
	}
	words := apply(ints.v, func(i int) string { return strings.Repeat("x", i%7) + fmt.Sprint(i) })
	sort.Sort(byLength(words))
	j, _ := json.Marshal(map[string]any{"ints": ints.sum(), "floats": floats.sum(), "words": words})
	re := regexp.MustCompile(`x+(\d+)`)
	var buf bytes.Buffer
	template.Must(template.New("t").Parse("{{range .}}{{.}} {{end}}")).Execute(&buf, re.FindAllString(string(j), -1))
	http.Handle("/", http.NotFoundHandler())
	fmt.Fprintln(os.Stdout, buf.String())
}
