package redistest

import (
	"os/exec"
	"runtime"
	"sync"
)

// launcher is one goroutine on one thread that lives as long as the process.
// The kernel's parent-death signal follows the thread that started a child, not
// the process, and the Go runtime ends idle threads: a server started from any
// other goroutine could be killed in the middle of a test.
var launcher = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// launch starts cmd so that it is killed when this process dies.
func launch(cmd *exec.Cmd) error {
	dieWithParent(cmd)
	done := make(chan error, 1)
	launcher() <- func() { done <- cmd.Start() }
	return <-done
}
