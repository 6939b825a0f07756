//go:build !unix

package main

import (
	"os"
	"os/exec"
)

// forwarded are the signals that this system has; a console's Ctrl-C reaches the
// command by itself.
var forwarded = []os.Signal{os.Interrupt}

// child is a command. This system has no process groups to signal: only the
// command itself is ended, and without a warning.
type child struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

func start(cmd *exec.Cmd) (*child, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd, make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its error repeats the state
		close(c.exited)
	}()
	return c, nil
}

func (c *child) signal(os.Signal) {}
func (c *child) terminate()       { c.kill() }
func (c *child) kill()            { _ = c.cmd.Process.Kill() }
func (c *child) code() int        { return c.cmd.ProcessState.ExitCode() }

func signalCode(os.Signal) int { return 130 }
