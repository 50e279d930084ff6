package host

import "sync"

// crew is the one place of this package that starts goroutines, so that Run can wait for all of them.
type crew struct {
	wg sync.WaitGroup
}

// start runs f on a goroutine of its own.
func (c *crew) start(f func()) { c.wg.Go(f) }

// wait returns when everything that was started has ended. Nothing may be started while it waits, except by something
// that runs itself.
func (c *crew) wait() { c.wg.Wait() }
