//go:build !linux

package redistest

import "os/exec"

// dieWithParent has no equivalent outside Linux: there, [Main] and test cleanups
// end the servers, and a killed test process leaves them behind.
func dieWithParent(*exec.Cmd) {}
