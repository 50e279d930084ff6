package redistest

import (
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// clientOptions are those of every client made here: no retries, so that a lost
// reply shows, and contexts that really cut a call.
func clientOptions(addr, password string) *redis.Options {
	return &redis.Options{
		Addr:                  addr,
		Password:              password,
		MaxRetries:            -1,
		DialerRetries:         1,
		ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
	}
}
