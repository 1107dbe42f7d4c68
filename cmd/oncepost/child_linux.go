package main

import "syscall"

// childAttributes give the command a process group of its own, and SIGTERM when this process dies: nobody holds its lock then.
func childAttributes(group bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: group, Pdeathsig: syscall.SIGTERM}
}
