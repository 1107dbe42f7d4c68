package main

import "syscall"

// childAttributes give the command a process group of its own, and SIGTERM when this process dies: nobody holds its lock then.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
