package config

import _ "embed"

// Sample is the commented sample file, the manual of the configuration.
//
//go:embed sample.yaml
var Sample string
