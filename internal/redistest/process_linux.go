package redistest

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill cmd when its parent dies, and keeps it out
// of the terminal's process group, so that Ctrl-C reaches the tests first.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
