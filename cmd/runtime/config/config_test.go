package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/broker"
	"parley/host"
)

func TestSampleIsAccepted(t *testing.T) {
	f, err := Parse("sample.yaml", []byte(Sample))
	if err != nil {
		t.Fatal(err)
	}
	d, err := f.Definitions(nil)
	if err != nil {
		t.Fatal(err)
	}
	// The sample states the defaults, so it must come out as if it stated none.
	want := []broker.QueueSettings{broker.DefaultQueue("inventory", true), broker.DefaultQueue("hooks", true), broker.DefaultQueue("reports", false)}
	if diff := cmp.Diff(want, d.Queues); diff != "" {
		t.Errorf("the sample's queues are not the defaults (-want +got):\n%s", diff)
	}
	if f.Namespace != "shop" || time.Duration(*f.Host.Drain) != host.DefaultDrain || time.Duration(*f.Host.Lease) != broker.DefaultLease {
		t.Errorf("namespace %q, host %+v are not the sample's", f.Namespace, f.Host)
	}
	if got := *f.Plugins[0].Limits.Memory; got != 64<<20 {
		t.Errorf("memory limit is %d, want 64 MiB", got)
	}
}

// TestSampleNamesEveryKey keeps the manual complete: a key nobody can read about does not exist.
func TestSampleNamesEveryKey(t *testing.T) {
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ.PkgPath() != reflect.TypeFor[File]().PkgPath() {
			return
		}
		for i := range typ.NumField() {
			key := typ.Field(i).Tag.Get("yaml")
			if key == "" {
				continue
			}
			if !strings.Contains(Sample, key+":") {
				t.Errorf("the sample does not mention %s of %s", key, typ.Name())
			}
			walk(typ.Field(i).Type)
		}
	}
	walk(reflect.TypeFor[File]())
}

func TestDefaultsDependOnTheService(t *testing.T) {
	src := "queues: [{name: a}, {name: b}, {name: c}, {name: d, retry: {initial: 5s}}]\nservices: [{name: //s, queue: b}, {name: //t, queue: d}]\n"
	f, err := Parse("t.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	d, err := f.Definitions(func(q string) bool { return q == "c" })
	if err != nil {
		t.Fatal(err)
	}
	last := broker.DefaultQueue("d", true)
	last.Retry.Initial, last.Retry.Max = 5*time.Second, 5*time.Second
	want := []broker.QueueSettings{
		broker.DefaultQueue("a", false), broker.DefaultQueue("b", true), broker.DefaultQueue("c", true), last,
	}
	if diff := cmp.Diff(want, d.Queues); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
}

func TestBadFilesNameTheLine(t *testing.T) {
	for _, tc := range []struct{ name, src, want string }{
		{"an unknown key", "queues:\n  - name: a\n    colour: red\n", `t.yaml:3: unknown key "colour"`},
		{"an unknown key at the top", "namespace: x\nquues: []\n", `t.yaml:2: unknown key "quues"`},
		{"a key in capitals", "Namespace: x\n", `t.yaml:1: unknown key "Namespace"`},
		{"a key given twice", "namespace: x\nnamespace: y\n", `t.yaml:2: mapping key "namespace" already defined`},
		{"a second document", "namespace: x\n---\nnamespace: y\n", `t.yaml:3: a second document`},
		{"a reserved character", "queues:\n  - name: ok\n  - name: 'a#b'\n", `InvalidName: t.yaml:3: the name is refused: the queue name "a#b" holds "#"`},
		{"a reserved segment", "queues:\n  - name: a/$deadletterqueue\n", `t.yaml:2: the name is refused: the queue name "a/$deadletterqueue" holds the reserved segment`},
		{"a slash in front", "queues: [{name: /a}]\n", `t.yaml:1: the name is refused: the queue name "/a" starts or ends with a slash`},
		{"a name that is missing", "queues:\n  - name: a\n  - retention: on\n", `t.yaml:3: queue: name is missing`},
		{"a queue twice", "queues:\n  - name: a\n  - name: a\n", `t.yaml:3: queue "a" is defined twice`},
		{"a switch that is neither", "queues:\n  - name: a\n    retention: maybe\n", `t.yaml:3: wants on or off (true or false), has maybe`},
		{"a size with a wrong unit", "plugins:\n  - {name: p, source: p, queue: a,\n     limits: {memory: 64MB}}\n", `t.yaml:3: wants a size`},
		{"a negative duration", "host:\n  drain: -1s\n", `t.yaml:2: wants a duration`},
		{"a duration without a unit", "host: {drain: 30}\n", `t.yaml:1: wants a duration`},
		{"max_delivery_count 0", "queues:\n- name: a\n  max_delivery_count: 0\n", `t.yaml:3: max_delivery_count wants a number from 1 on, has 0`},
		{"a text for a number", "queues:\n- name: a\n  max_delivery_count: many\n", `t.yaml:3: wants a number, has a text`},
		{"a lease too short", "host:\n  lease: 999ms\n", `t.yaml:2: lease wants 1s to 5m0s, has 999ms`},
		{"no lease", "host: {lease: 0s}\n", `t.yaml:1: lease wants 1s to 5m0s, has 0s`},
		{"a lease too long", "host: {lease: 301s}\n", `t.yaml:1: lease wants 1s to 5m0s, has 5m1s`},
		{"a lock too long", "queues:\n- {name: a, lock_duration: 6m}\n", `t.yaml:2: lock_duration wants 1s to 5m0s, has 6m0s`},
		{"a mapping for a list", "queues: {name: a}\n", `t.yaml:1: wants a sequence, has a mapping`},
		{"a contract for nobody", "contracts:\n  - name: //c\n    messages: {//x: target}\n", `8492: t.yaml:2: `},
		{"a type twice in one contract", "contracts:\n  - {name: //a, messages: {//x: any}}\n  - name: //c\n    messages:\n      //x: any\n      //y: any\n      //x: target\n", `8403: t.yaml:7: the message type occurs more than once in the contract: "//x"`},
		{"a type twice on one line", "contracts: [{name: //c, messages: {//x: any, '//x': any}}]\n", `8403: t.yaml:1: `},
		{"another key of a contract twice", "contracts:\n  - name: //c\n    name: //d\n    messages: {//x: any}\n", `t.yaml:3: mapping key "name" already defined`},
		{"a direction that is none", "contracts:\n  - name: //c\n    messages:\n      //x: any\n      //y: both\n", `t.yaml:5: //y wants one of initiator, target, any, has "both"`},
		{"a topic", "topics:\n  - name: github\n", `NotAvailable: t.yaml:2: `},
		{"a plugin without a source", "plugins:\n  - {name: p, queue: a}\n", `t.yaml:2: plugin: source is missing`},
		{"a capability that is none", "plugins:\n  - {name: p, source: p, queue: a,\n     capabilities: [queue_peek,\n     queue_delete]}\n", `t.yaml:4: capabilities wants some of queue_peek, conversation_end, queue_enable, has "queue_delete"`},
		{"a capability without a name", "plugins:\n  - {name: p, source: p, queue: a, capabilities: ['']}\n", `t.yaml:2: capabilities wants some of`},
		{"a capability alone", "plugins:\n  - {name: p, source: p, queue: a, capabilities: queue_peek}\n", `t.yaml:2: wants a sequence`},
		{"readers from inside and outside", "plugins:\n  - {name: p, source: p, queue: a}\nevent_notifications:\n  - {event: queue_activation, queue: a, to: s}\n", `9718: t.yaml:4: `},
		{"two plugins on one queue", "plugins:\n  - {name: p, source: p, queue: a}\n  - {name: q, source: p, queue: a}\n", `t.yaml:3: queue "a" has the plugin "p" already`},
		{"retry the wrong way round", "queues:\n  - name: a\n    retry:\n      initial: 5s\n      max: 1s\n", `t.yaml:5: retry: max (1s) is below initial (5s)`},
		{"jitter that is not a number", "queues:\n  - {name: a, retry: {jitter: .nan}}\n", `t.yaml:2: jitter wants 0 to 1, has NaN`},
		{"a namespace with a slash", "namespace: a/b\n", `t.yaml:1: the name is refused: the namespace "a/b" holds a slash`},
		{"an unclosed bracket", "queues: [\n", `t.yaml:1: `},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse("t.yaml", []byte(tc.src))
			if err == nil {
				t.Fatal("the file is accepted")
			}
			if broker.ExitCode(err) != broker.ExitUsage {
				t.Errorf("exit code %d, want %d", broker.ExitCode(err), broker.ExitUsage)
			}
			if !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one line with %q", err, tc.want)
			}
		})
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "262144": 262144, "1KiB": 1024, "64 MiB": 64 << 20, "2GiB": 2 << 30, "7B": 7} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "1.5MiB", "64MB", "MiB", "9223372036854775807KiB", "0x10", "1e3"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", text, got)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "5s": 5 * time.Second, "1m30s": 90 * time.Second, "7d": 168 * time.Hour, "0.5s": 500 * time.Millisecond} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "-5s", "1.5d", "-1d", "NaN", "99999999d", "1y"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", text, got)
		}
	}
}

// FuzzParse looks for bytes that crash or stall the reading of a file. Whatever is accepted must also turn into
// definitions, and whatever is refused must say so in one line.
func FuzzParse(f *testing.F) {
	f.Add([]byte(Sample))
	f.Add([]byte("queues: [{name: a, retry: {jitter: .5}}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("host: &h {drain: 5s}\nqueues: *h"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("fuzz.yaml", data)
		if err != nil {
			if broker.ExitCode(err) != broker.ExitUsage || strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %q with exit code %d, want one line and %d", err, broker.ExitCode(err), broker.ExitUsage)
			}
			return
		}
		for i := range file.MessageTypes {
			file.MessageTypes[i].Schemas = nil
		}
		if _, err := file.Definitions(nil); err != nil {
			t.Fatalf("accepted, but it has no definitions: %v", err)
		}
	})
}
