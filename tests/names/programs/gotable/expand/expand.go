// Package expand gives Go code what runtime/pprof has of the runtime: the calls inlined at an address.
package expand

import (
	_ "runtime/pprof"
	_ "unsafe"
)

// Final replaces the last return address of a stack by one for each call that was inlined there, the innermost
// first.
//
//go:linkname Final runtime/pprof.runtime_expandFinalInlineFrame
func Final(stack []uintptr) []uintptr
