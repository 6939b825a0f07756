//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// endWithGroup makes the command end together with what it has started: go test
// runs test binaries, which run programs.
func endWithGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}
