package importrule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// dependency is a module, or a part of one, that only its owners import.
type dependency struct {
	path   string
	owners []string // folders, with what is below
	tests  []string // folders whose tests may import it too; "" is every folder
	reason string
}

// dependencies names every import from outside the standard library. A longer
// path goes before a shorter one that contains it.
var dependencies = []dependency{
	{
		"github.com/tetratelabs/wazero",
		[]string{"host/guest"},
		[]string{"plugins/examples", "sdk"},
		"one package knows the sandbox; the meter's tests run what it rewrote",
	},
	{
		"github.com/redis/go-redis/v9",
		[]string{"broker/redisbroker", "internal"},
		[]string{"cmd/runtime"},
		"one package speaks to Redis; tests of the whole look at the keyspace",
	},
	{
		"github.com/alicebob/miniredis/v2",
		[]string{"broker/redisbroker", "cmd/runtime", "internal"},
		nil,
		"only the embedded broker runs a server in its process",
	},
	{
		"github.com/yuin/gopher-lua",
		nil,
		[]string{"broker/redisbroker"},
		"tests parse the scripts with the language of the embedded server",
	},
	{
		"go.opentelemetry.io/",
		[]string{"tracing"},
		[]string{"cmd/runtime"},
		"one package knows telemetry; tests of the binary decode what it exports",
	},
	{
		"github.com/prometheus/",
		[]string{"tracing"},
		[]string{"cmd/runtime"},
		"one package knows metrics",
	},
	{"google.golang.org/", []string{"tracing"}, []string{"cmd/runtime"}, "it carries OTLP and nothing else"},
	{"github.com/robfig/cron/v3", []string{"broker/cronspec"}, nil, "its odd specs are checked before they reach it"},
	{"github.com/santhosh-tekuri/jsonschema/v6", []string{"broker/validate"}, nil, "one package validates bodies"},
	{"github.com/terminalstatic/go-xsd-validate", []string{"broker/validate"}, nil, "one package validates bodies; in builds with libxml2 only"},
	{"github.com/spf13/", []string{"cmd/runtime"}, nil, "flags are the binary's"},
	{"github.com/goccy/go-yaml", []string{"cmd/runtime"}, nil, "libraries read no configuration files"},
	{"github.com/google/uuid", []string{"broker/redisbroker", "cmd/runtime"}, nil, "ids are made where they are stored"},
	{"github.com/google/go-cmp", []string{"broker/brokertest", "internal"}, []string{""}, "comparing is for tests"},
	{"pgregory.net/rapid", []string{"broker/brokertest", "internal"}, []string{""}, "random tests are tests"},
	{"golang.org/x/", []string{"broker/redisbroker", "cmd/runtime", "host/guest", "tracing"}, []string{""}, "vocabulary and pure rules use the standard library"},
}

// pure are folders below an owner that have no share in what it owns.
var pure = []string{"host/guest/meter"}

// foreignImports are the imports of dependencies by others than their owners.
func foreignImports(files []source) []string {
	var bad []string
	for _, f := range files {
		for _, imported := range f.imports() {
			if problem := foreign(f, imported); problem != "" {
				bad = append(bad, f.path+" imports "+imported+problem)
			}
		}
	}
	return bad
}

func foreign(f source, imported string) string {
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") {
		return "" // the standard library, or this module
	}
	for _, d := range dependencies {
		if !strings.HasPrefix(imported, d.path) {
			continue
		}
		holds := func(dir string) bool { return dir == "" || under(f.dir, dir) }
		owned := slices.ContainsFunc(d.owners, holds)
		if f.test && (owned || slices.ContainsFunc(d.tests, holds)) {
			return ""
		}
		if owned && !slices.ContainsFunc(pure, holds) {
			return ""
		}
		return fmt.Sprintf(", which belongs to %s: %s", strings.Join(d.owners, ", "), d.reason)
	}
	return ": give it an owner in dependencies, with the reason"
}

func TestDependenciesHaveOwners(t *testing.T) {
	for _, problem := range foreignImports(tree(t)) {
		t.Error(problem)
	}
}

func TestForeignImportsAreFound(t *testing.T) {
	const wazero, goredis = "github.com/tetratelabs/wazero", "github.com/redis/go-redis/v9"
	for _, tc := range []struct {
		name, path, imports string
		bad                 bool
	}{
		{"the guest runs wazero", "host/guest/x.go", wazero + "/api", false},
		{"the meter is pure", "host/guest/meter/x.go", wazero, true},
		{"the meter's tests run modules", "host/guest/meter/x_test.go", wazero, false},
		{"the host runs no wasm", "host/x.go", wazero, true},
		{"nor do its tests", "host/x_test.go", wazero, true},
		{"the implementation speaks to Redis", "broker/redisbroker/x.go", goredis, false},
		{"test helpers speak to Redis", "internal/redistest/x.go", goredis, false},
		{"the conformance suite does not", "broker/brokertest/x.go", goredis, true},
		{"the binary does not", "cmd/runtime/x.go", goredis, true},
		{"the OpenTelemetry SDK is tracing's", "cmd/runtime/x.go", "go.opentelemetry.io/otel/sdk/trace", true},
		{"cron is cronspec's", "broker/redisbroker/x.go", "github.com/robfig/cron/v3", true},
		{"any test compares", "host/x_test.go", "github.com/google/go-cmp/cmp", false},
		{"no product code compares", "host/x.go", "github.com/google/go-cmp/cmp", true},
		{"a new dependency needs an owner", "cmd/runtime/x.go", "example.org/new", true},
		{"the standard library is free", "broker/x.go", "crypto/sha256", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := foreignImports([]source{example(t, tc.path, "package p\nimport _ \""+tc.imports+"\"\n")})
			if (len(got) > 0) != tc.bad {
				t.Errorf("%s importing %s: got %q, want bad %v", tc.path, tc.imports, got, tc.bad)
			}
		})
	}
}
