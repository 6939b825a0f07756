package main

import "syscall"

// endWithParent makes the kernel kill the command if this process is killed: an
// unguarded command could overlap with the next holder's.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
