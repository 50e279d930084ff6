package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Dump writes every key that matches pattern (as in SCAN; "*" is all) as text:
// type, whether it expires, and all contents, streams with their groups,
// consumers and pending entries. Two dumps of the same state are equal: keys,
// fields and members are sorted, and times that only pass are left out. Compare
// two of them with go-cmp.
//
// client may be a cluster client; then the masters' keys are dumped together.
// The dump is no snapshot: nothing else may write meanwhile.
func Dump(t testing.TB, client redis.UniversalClient, pattern string) string {
	t.Helper()
	text, err := dump(t.Context(), client, pattern)
	if err != nil {
		t.Fatalf("redistest: dump %q: %v", pattern, err)
	}
	return text
}

func dump(ctx context.Context, client redis.UniversalClient, pattern string) (string, error) {
	keys, err := scan(ctx, client, pattern)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, key := range keys {
		if err := dumpKey(ctx, client, &b, key); err != nil {
			return "", fmt.Errorf("key %q: %w", key, err)
		}
	}
	return b.String(), nil
}

// scan lists the keys of every master, sorted, each once.
func scan(ctx context.Context, client redis.UniversalClient, pattern string) ([]string, error) {
	var (
		mu   sync.Mutex
		keys []string
	)
	one := func(ctx context.Context, c *redis.Client) error {
		it := c.Scan(ctx, 0, pattern, 1000).Iterator()
		for it.Next(ctx) {
			mu.Lock()
			keys = append(keys, it.Val())
			mu.Unlock()
		}
		return it.Err()
	}
	var err error
	switch c := client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, one)
	case *redis.Client:
		err = one(ctx, c)
	default:
		return nil, fmt.Errorf("cannot scan with a %T", client)
	}
	sort.Strings(keys)
	return slices.Compact(keys), err
}

func dumpKey(ctx context.Context, c redis.Cmdable, b *strings.Builder, key string) error {
	kind, err := c.Type(ctx, key).Result()
	if err != nil {
		return err
	}
	if kind == "none" {
		return nil // expired since the scan
	}
	ttl, err := c.PTTL(ctx, key).Result()
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "%s %s", kind, quote(key))
	if ttl > 0 {
		b.WriteString(" expires")
	}
	b.WriteByte('\n')
	lines, err := contents(ctx, c, kind, key)
	for _, line := range lines {
		b.WriteString("  " + line + "\n")
	}
	return err
}

// contents are the lines of one key.
func contents(ctx context.Context, c redis.Cmdable, kind, key string) ([]string, error) {
	switch kind {
	case "string":
		v, err := c.Get(ctx, key).Result()
		return []string{quote(v)}, err
	case "hash":
		m, err := c.HGetAll(ctx, key).Result()
		var lines []string
		for f, v := range m {
			lines = append(lines, quote(f)+" = "+quote(v))
		}
		sort.Strings(lines)
		return lines, err
	case "list":
		items, err := c.LRange(ctx, key, 0, -1).Result()
		return quoteAll(items), err
	case "set":
		items, err := c.SMembers(ctx, key).Result()
		sort.Strings(items)
		return quoteAll(items), err
	case "zset":
		items, err := c.ZRangeWithScores(ctx, key, 0, -1).Result()
		var lines []string
		for _, z := range items {
			lines = append(lines, strconv.FormatFloat(z.Score, 'f', -1, 64)+" "+quote(fmt.Sprint(z.Member)))
		}
		return lines, err
	case "stream":
		return dumpStream(ctx, c, key)
	default:
		return nil, errors.New("no dump for type " + kind)
	}
}

func quoteAll(items []string) []string {
	lines := make([]string, len(items))
	for i, item := range items {
		lines[i] = quote(item)
	}
	return lines
}

// quote leaves plain words as they are, so that a dump stays readable.
func quote(s string) string {
	if q := strconv.Quote(s); len(q) != len(s)+2 || s == "" || strings.ContainsRune(s, ' ') {
		return q
	}
	return s
}
