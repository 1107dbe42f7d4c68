//go:build !linux

package mysqlserver

import "syscall"

// dieWithParent does nothing: only Linux can tie a child's life to ours. Elsewhere a killed parent leaves its server.
func dieWithParent(*syscall.SysProcAttr) {}
