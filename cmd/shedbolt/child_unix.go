//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// forwarded are the signals that are passed on to the command's process group.
var forwarded = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// child is a command in a process group of its own.
type child struct {
	pid    int
	exited chan struct{}
	state  *os.ProcessState
}

// start starts the command as the leader of a new process group. If standard
// input is the terminal and ours, the group becomes the terminal's foreground
// group, so that the command can read and gets what is typed, Ctrl-C included.
func start(cmd *exec.Cmd) (*child, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	foreground := ownsTerminal()
	if foreground {
		cmd.SysProcAttr.Foreground = true
		cmd.SysProcAttr.Ctty = int(os.Stdin.Fd())
	}
	endWithParent(cmd.SysProcAttr)

	c := &child{exited: make(chan struct{})}
	failed := make(chan error)
	go func() {
		// "Parent" in endWithParent is the thread that forked, so this one must
		// live as long as the child.
		runtime.LockOSThread()
		if err := cmd.Start(); err != nil {
			failed <- err
			return
		}
		c.pid = cmd.Process.Pid
		close(failed)
		_ = cmd.Wait() // its error repeats the state
		c.state = cmd.ProcessState
		if foreground {
			takeTerminal()
		}
		close(c.exited)
	}()
	if err := <-failed; err != nil {
		return nil, err
	}
	return c, nil
}

// group sends a signal to all of the command's group. An error means that nobody
// is left to get it.
func (c *child) group(s syscall.Signal) { _ = syscall.Kill(-c.pid, s) }

func (c *child) signal(s os.Signal) {
	if s, ok := s.(syscall.Signal); ok {
		c.group(s)
	}
}

// terminate tells the group to end, also processes that are stopped.
func (c *child) terminate() {
	c.group(syscall.SIGTERM)
	c.group(syscall.SIGCONT)
}

func (c *child) kill() { c.group(syscall.SIGKILL) }

// code is the exit code of a command that has exited, as a shell gives it.
func (c *child) code() int {
	if status, ok := c.state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalCode(status.Signal())
	}
	return c.state.ExitCode()
}

func signalCode(s os.Signal) int {
	if s, ok := s.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return 1
}

// ownsTerminal reports whether standard input is a terminal whose foreground
// group is this process's.
func ownsTerminal() bool {
	group, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// takeTerminal makes this process's group the terminal's foreground group again.
func takeTerminal() {
	// A background process that does this is stopped, unless it ignores the
	// signal that says so.
	signal.Ignore(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(int(os.Stdin.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
	signal.Reset(syscall.SIGTTOU)
}
