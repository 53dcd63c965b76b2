//go:build unix

package chromeproto

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the process the leader of a group, in which its children are.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
