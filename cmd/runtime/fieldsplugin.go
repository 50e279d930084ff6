package main

import (
	"parley/host/guest"
)

// builtJSON is plugin build.
type builtJSON struct {
	Module string `json:"module"`
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
}

// inspectJSON is plugin inspect.
type inspectJSON struct {
	SHA256  string       `json:"sha256"`
	Bytes   int          `json:"bytes"`
	Kind    string       `json:"kind"` // handler or command
	Memory  memoryJSON   `json:"memory"`
	Imports []importJSON `json:"imports"`
	Exports []exportJSON `json:"exports"`
	Limits  limitsJSON   `json:"limits"`
	Needs   []string     `json:"needs_capabilities"`
}

type memoryJSON struct {
	MinBytes int64 `json:"min_bytes"`
	MaxBytes int64 `json:"max_bytes"`
}

type importJSON struct {
	Module string `json:"module"`
	Name   string `json:"name"`
	Kind   string `json:"kind"`
}

type exportJSON struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
}

type limitsJSON struct {
	Memory      int64  `json:"memory"`
	Time        string `json:"time"`
	Fuel        uint64 `json:"fuel"` // 0: not limited
	Output      int    `json:"output"`
	Reply       int    `json:"reply"`
	Effects     int    `json:"effects"`
	EffectBytes int    `json:"effect_bytes"`
	HostCalls   int    `json:"host_calls"`
}

const wasmPage = 64 << 10

func newInspectJSON(i *guest.Info) inspectJSON {
	j := inspectJSON{
		SHA256: i.Digest, Bytes: i.Size, Kind: "handler",
		Memory:  memoryJSON{int64(i.Memory.Min) * wasmPage, int64(i.Memory.Max) * wasmPage},
		Imports: []importJSON{}, Exports: []exportJSON{}, Needs: []string{},
		Limits: limitsJSON{
			i.Limits.Memory, i.Limits.Time.String(), i.Limits.Fuel, i.Limits.Output, i.Limits.Reply, i.Limits.Effects,
			i.Limits.EffectBytes, i.Limits.HostCalls,
		},
	}
	for _, c := range i.Needs {
		j.Needs = append(j.Needs, string(c))
	}
	if i.Command {
		j.Kind = "command"
	}
	for _, f := range i.Imports {
		j.Imports = append(j.Imports, importJSON{f.Module, f.Name, f.Kind.String()})
	}
	for _, f := range i.Exports {
		j.Exports = append(j.Exports, exportJSON{f.Name, f.Kind.String()})
	}
	return j
}
