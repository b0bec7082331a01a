// gotable - a Go program that says what Go's own table knows of its code, as its tracebacks show it. It answers for
// addresses of its file in the form of llvm-symbolizer --inlines: for each frame its name and file:line:0, the
// innermost first, an empty line after each address.
//
//	gotable BASE < addresses > answers	BASE: the lowest address of the file's segments
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/ioutil"
	"os"
	"regexp"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"text/template"

	"gotable/expand"
)

func number(s string) uintptr {
	n, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(s), "0x"), 16, 64)
	if err != nil {
		panic(err)
	}
	return uintptr(n)
}

// slide is how far from its addresses the file was loaded.
func slide(base uintptr) uintptr {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		panic(err)
	}
	maps, err := ioutil.ReadFile("/proc/self/maps")
	if err != nil {
		panic(err)
	}
	for _, line := range strings.Split(string(maps), "\n") {
		if strings.HasSuffix(line, self) {
			return number(line[:strings.IndexByte(line, '-')]) - base
		}
	}
	panic("the program isn't mapped")
}

// answer: what is inlined at an address is asked for by the return address of a call there. Behind a function's last
// byte another one begins, which the runtime would mean.
func answer(w *bufio.Writer, pc uintptr) {
	next := runtime.FuncForPC(pc + 1)
	if runtime.FuncForPC(pc) != nil && next != nil && next.Entry() != pc+1 {
		frames := runtime.CallersFrames(expand.Final([]uintptr{pc + 1}))
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			if f.Function == "" {
				f.Function = "??"
			}
			fmt.Fprintf(w, "%s\n%s:%d:0\n", f.Function, f.File, f.Line)
			if !more && f.Func == nil && f.Entry != 0 { // inlined in a wrapper, which tracebacks leave out
				fmt.Fprintf(w, "%s\n??:0:0\n", runtime.FuncForPC(f.Entry).Name())
			}
		}
	} else {
		fmt.Fprintf(w, "??\n??:0:0\n")
	}
	fmt.Fprintln(w)
}

type byLength []string

func (b byLength) Len() int           { return len(b) }
func (b byLength) Less(i, j int) bool { return len(b[i]) < len(b[j]) }
func (b byLength) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }

type named interface{ name() string }

type inner struct{ text string }

func (i inner) name() string { return strings.ToUpper(i.text) }

type outer struct{ *inner }

func tiny(x int) int  { return x*3 + 1 }
func small(x int) int { return tiny(x) ^ tiny(x+1) }

// work is never called: it brings code of Go's library, wrappers and closures.
func work() {
	var words []string
	var n named = outer{&inner{"x"}}
	for i := 0; i < 100; i++ {
		words = append(words, strings.Repeat(n.name(), small(i)%7))
	}
	sort.Sort(byLength(words))
	func() { defer func() { recover() }(); words = append(words, generic(len(words))) }()
	j, _ := json.Marshal(map[string]interface{}{"words": words})
	found := regexp.MustCompile(`x+(\d+)`).FindAllString(string(j), -1)
	template.Must(template.New("t").Parse("{{range .}}{{.}} {{end}}")).Execute(os.Stdout, found)
}

func main() {
	if len(os.Args) != 2 {
		work()
		foreign()
		return
	}
	by := slide(number(os.Args[1]))
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		answer(w, number(in.Text())+by)
	}
}
