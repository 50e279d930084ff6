package redistest

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/redis/go-redis/v9"
)

// dumpStream writes entries, groups, consumers (also those that hold nothing)
// and pending entries with their owner and Redis's own delivery count.
func dumpStream(ctx context.Context, c redis.Cmdable, key string) ([]string, error) {
	entries, err := entriesOf(ctx, c, key)
	if err != nil {
		return nil, err
	}
	last, err := lastID(ctx, c, key)
	if err != nil {
		return nil, err
	}
	lines := []string{"last-generated-id " + last}
	lines = append(lines, entries...)
	groups, err := c.XInfoGroups(ctx, key).Result()
	if err != nil {
		return nil, fmt.Errorf("groups: %w", err)
	}
	sort.Slice(groups, func(i, j int) bool { return groups[i].Name < groups[j].Name })
	for _, g := range groups {
		lines = append(lines, "group "+quote(g.Name)+" last-delivered-id "+g.LastDeliveredID)
		members, err := members(ctx, c, key, g.Name)
		if err != nil {
			return nil, fmt.Errorf("group %q: %w", g.Name, err)
		}
		lines = append(lines, members...)
	}
	return lines, nil
}

// entriesOf keeps the fields in the order they were written, which a Go map
// would lose.
func entriesOf(ctx context.Context, c redis.Cmdable, key string) ([]string, error) {
	raw, err := do(ctx, c, "XRANGE", key, "-", "+").Slice()
	if err != nil {
		return nil, fmt.Errorf("entries: %w", err)
	}
	var lines []string
	for _, r := range raw {
		entry, ok := r.([]any)
		if !ok || len(entry) != 2 {
			return nil, fmt.Errorf("entry of unknown shape: %v", r)
		}
		fields, _ := entry[1].([]any)
		line := []string{fmt.Sprint(entry[0])}
		for i := 0; i+1 < len(fields); i += 2 {
			line = append(line, quote(fmt.Sprint(fields[i]))+"="+quote(fmt.Sprint(fields[i+1])))
		}
		lines = append(lines, strings.Join(line, " "))
	}
	return lines, nil
}

// lastID reads only the field it needs: the in-process server answers XINFO
// STREAM with two of them, and the client wants all.
func lastID(ctx context.Context, c redis.Cmdable, key string) (string, error) {
	info, err := do(ctx, c, "XINFO", "STREAM", key).Result()
	if err != nil {
		return "", fmt.Errorf("info: %w", err)
	}
	switch m := info.(type) {
	case map[any]any:
		return fmt.Sprint(m["last-generated-id"]), nil
	case []any:
		for i := 0; i+1 < len(m); i += 2 {
			if m[i] == "last-generated-id" {
				return fmt.Sprint(m[i+1]), nil
			}
		}
	}
	return "", fmt.Errorf("info of unknown shape: %v", info)
}

func members(ctx context.Context, c redis.Cmdable, key, group string) ([]string, error) {
	consumers, err := c.XInfoConsumers(ctx, key, group).Result()
	if err != nil {
		return nil, fmt.Errorf("consumers: %w", err)
	}
	var lines []string
	for _, one := range consumers {
		lines = append(lines, fmt.Sprintf("  consumer %s holds %d", quote(one.Name), one.Pending))
	}
	sort.Strings(lines)
	pending, err := c.XPendingExt(ctx, &redis.XPendingExtArgs{
		Stream: key, Group: group, Start: "-", End: "+", Count: 1 << 30,
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("pending: %w", err)
	}
	for _, p := range pending {
		lines = append(lines, fmt.Sprintf("  pending %s with %s delivered %d", p.ID, quote(p.Consumer), p.RetryCount))
	}
	return lines, nil
}

// do sends a command that the client has no fitting method for.
func do(ctx context.Context, c redis.Cmdable, args ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, args...)
	pipe := c.Pipeline()
	_ = pipe.Process(ctx, cmd)
	_, _ = pipe.Exec(ctx) // the error is in cmd
	return cmd
}
