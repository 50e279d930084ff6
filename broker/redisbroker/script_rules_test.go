package redisbroker

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/broker"
	"parley/internal/redistest"
)

// TestTheScriptsDecideAsGoDoes runs the pure rules of lib/attempt.lua over a table of values, on both servers.
func TestTheScriptsDecideAsGoDoes(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		rule := libFunction(t, `return verdict(tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4] == '1', tonumber(ARGV[5]), tonumber(ARGV[6]))`)
		for _, d := range []int{1, 4, 5, 9, 10, 11} {
			for _, p := range []int{1, 4, 5, 6} {
				for _, limits := range [][2]int{{0, 0}, {10, 0}, {0, 5}, {10, 5}, {5, 5}, {1, 1}} {
					for _, is := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
						want := broker.DecideFailure(d, p, is[0], is[1], limits[0], limits[1])
						got := evalText(t, c, rule, d, p, flag(is[0]), flag(is[1]), limits[0], limits[1])
						if got != string(want) {
							t.Errorf("deliveries %d, rollbacks %d, expired and several %v, limits %v: the script says %q, Go %q", d, p, is, limits, got, want)
						}
					}
				}
			}
		}
	})
}

func TestTheScriptsPauseAsGoDoes(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		rule := libFunction(t, `return int(pause(tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])))`)
		for _, r := range []broker.Retry{
			{},
			{Max: time.Minute, Multiplier: 2},
			{Initial: time.Second, Max: time.Minute, Multiplier: 2},
			{Initial: time.Second, Multiplier: 2},
			{Initial: 7 * time.Millisecond, Max: time.Second, Multiplier: 1.5, Jitter: 0.3},
			{Initial: time.Minute, Max: time.Second, Multiplier: 3, Jitter: 1},
			{Initial: 333 * time.Millisecond, Max: time.Hour, Multiplier: 1, Jitter: 0.1},
		} {
			for _, d := range []int{1, 2, 3, 7, 10, 40} {
				for _, random := range []string{"0.0000", "0.1234", "0.5000", "0.9999"} {
					x, err := strconv.ParseFloat(random, 64)
					if err != nil {
						t.Fatal(err)
					}
					want := broker.RetryPause(d, r, x).Milliseconds()
					got := evalText(t, c, rule, d, r.Initial.Milliseconds(), r.Max.Milliseconds(), r.Multiplier, r.Jitter, random)
					if got != fmt.Sprint(want) {
						t.Errorf("delivery %d, %+v, random %s: the script says %s ms, Go %d ms", d, r, random, got, want)
					}
				}
			}
		}
	})
}

// TestTheScriptsBackOffAsGoDoes refuses the head of a transmission stream again and again.
func TestTheScriptsBackOffAsGoDoes(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		p := newPlay(t, "redis://"+c.Options().Addr)
		p.step(false, "apply a:A", nil)
		for n := 1; n <= 8; n++ {
			p.step(false, "redis HSET {ns/a}:txl B T1|9999999", nil)
			reply := p.step(true, "txfail a B T1 off", nil)[0]
			want := fmt.Sprint("reply ", 1_000_000+broker.TransmitBackoff(n).Milliseconds())
			if reply != want {
				t.Errorf("refusal %d: got %q, want %q", n, reply, want)
			}
		}
	})
}

// onBoth runs f on the real server and on the embedded one.
func onBoth(t *testing.T, f func(t *testing.T, c *redis.Client)) {
	t.Run("real", func(t *testing.T) { f(t, redistest.Shared(t).Client(t)) })
	t.Run("embedded", func(t *testing.T) { f(t, redistest.StartEmbedded(t).Client(t)) })
}

// libFunction returns a script that evaluates one statement behind the parts of the library that hold the rules.
func libFunction(t *testing.T, statement string) string {
	t.Helper()
	src, err := joinParts([]string{"names", "base", "entry", "lock", "attempt"}, statement)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func evalText(t *testing.T, c *redis.Client, script string, args ...any) string {
	t.Helper()
	v, err := c.Eval(t.Context(), script, nil, args...).Text()
	if err != nil {
		t.Fatal(err)
	}
	return v
}
