package mysqlserver

import (
	"os/exec"
	"runtime"
	"syscall"
)

// process is a child that cannot outlive us.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child is gone and err is set
	err  error         // how it ended, as exec.Cmd.Wait says
}

// startProcess starts cmd in a process group of its own, so that a Ctrl-C meant for us does not reach it before we
// end it in order, and such that the kernel kills it when we die, even by SIGKILL (Linux).
//
// The kernel ties that to the death of the *thread* that started the child, and Go ends idle threads: one goroutine
// therefore keeps its thread until the child is gone.
func startProcess(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, err
	}
	return p, nil
}

// exited reports whether the child is gone.
func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
