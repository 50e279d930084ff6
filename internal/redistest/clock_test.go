package redistest

import (
	"testing"
	"time"
)

func TestSetClockMovesTheServersClockAlone(t *testing.T) {
	t.Parallel()
	s := Start(t, Clocked())
	c := s.Client(t)
	for _, d := range []time.Duration{0, -300 * time.Second, 90 * time.Second, -2 * time.Hour, 0} {
		s.SetClock(t, d)
		now, err := c.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if off := time.Until(now) - d; off < -time.Second || off > time.Second {
			t.Errorf("set to %v: the server is %v off", d, off)
		}
		script, err := c.Eval(t.Context(), "return redis.call('TIME')[1]", nil).Int64()
		if err != nil || script-now.Unix() < 0 || script-now.Unix() > 1 {
			t.Errorf("set to %v: a script saw %d, a command %d (%v)", d, script, now.Unix(), err)
		}
	}
}
