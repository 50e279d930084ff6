// Package examples holds the source of example plugins and the webhook bodies one of them is tried with, so that the demo
// needs nothing but its binary and the Go toolchain.
package examples

import "embed"

// Files is the source of the plugins inventory and github-triage, and testdata of the latter.
//
//go:embed inventory/main.go github-triage/main.go github-triage/testdata/*.json
var Files embed.FS
