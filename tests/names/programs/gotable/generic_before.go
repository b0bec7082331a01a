//go:build !go1.18
// +build !go1.18

package main

import "fmt"

func generic(n int) string { return fmt.Sprint(n) }
