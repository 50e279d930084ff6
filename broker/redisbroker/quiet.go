package redisbroker

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// noLog drops what the client library would write to stderr by itself: every failure it tells of comes back as an error
// too, and a command's stderr holds one line.
type noLog struct{}

// Printf implements the library's logger.
func (noLog) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(noLog{}) }
