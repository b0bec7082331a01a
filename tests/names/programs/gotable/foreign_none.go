//go:build !cgo
// +build !cgo

package main

func foreign() {}
