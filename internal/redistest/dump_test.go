package redistest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

// fill writes one key of each type under ns.
func fill(t *testing.T, c redis.UniversalClient, ns string) {
	t.Helper()
	for _, cmd := range [][]any{
		{"SET", ns + ":text", "two words", "PX", 100000},
		{"SET", ns + ":binary", "\x00\xff"},
		{"SET", ns + ":empty", ""},
		{"HSET", ns + ":hash", "b", 2, "a", 1},
		{"RPUSH", ns + ":list", "y", "x"},
		{"SADD", ns + ":set", "n", "m"},
		{"ZADD", ns + ":zset", 1.5, "late", -1, "early"},
		{"XADD", ns + ":stream", "1-1", "z", "1", "a", "2"},
		{"XADD", ns + ":stream", "2-1", "body", "x"},
		{"XADD", ns + ":stream", "3-1", "body", "y"},
		{"XGROUP", "CREATE", ns + ":stream", "g", "0"},
		{"XGROUP", "CREATECONSUMER", ns + ":stream", "g", "idle"},
		{"XREADGROUP", "GROUP", "g", "reader", "COUNT", 2, "STREAMS", ns + ":stream", ">"},
		{"XACK", ns + ":stream", "g", "1-1"},
		{"XDEL", ns + ":stream", "1-1"},
	} {
		if err := c.Do(context.Background(), cmd...).Err(); err != nil {
			t.Fatalf("%v: %v", cmd, err)
		}
	}
}

func TestDumpShowsEveryTypeAlikeOnEveryServer(t *testing.T) {
	const want = `string {n}:binary
  "\x00\xff"
string {n}:empty
  ""
hash {n}:hash
  a = 1
  b = 2
list {n}:list
  y
  x
set {n}:set
  m
  n
stream {n}:stream
  last-generated-id 3-1
  2-1 body=x
  3-1 body=y
  group g last-delivered-id 2-1
    consumer idle holds 0
    consumer reader holds 1
    pending 2-1 with reader delivered 1
string {n}:text expires
  "two words"
zset {n}:zset
  -1 early
  1.5 late
`
	for name, client := range map[string]func(*testing.T) redis.UniversalClient{
		"real server":       func(t *testing.T) redis.UniversalClient { return Start(t).Client(t) },
		"in-process server": func(t *testing.T) redis.UniversalClient { return StartEmbedded(t).Client(t) },
		"cluster":           func(t *testing.T) redis.UniversalClient { return StartCluster(t).Client(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := client(t)
			fill(t, c, "{n}")
			if diff := cmp.Diff(want, Dump(t, c, "*")); diff != "" {
				t.Errorf("dump (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDumpKeepsToItsPattern(t *testing.T) {
	t.Parallel()
	c := Shared(t).Client(t)
	mine, other := Namespace(t), Namespace(t)
	if mine == other {
		t.Fatalf("Namespace gave %q twice", mine)
	}
	for _, ns := range []string{mine, other} {
		if err := c.Set(t.Context(), ns+":k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	want := "string " + mine + ":k\n  v\n"
	if diff := cmp.Diff(want, Dump(t, c, mine+":*")); diff != "" {
		t.Errorf("dump (-want +got):\n%s", diff)
	}
}
