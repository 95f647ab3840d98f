package forgetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// A process is a program that runs until it is stopped, or the tests end, however they end.
type process struct {
	cmd    *exec.Cmd
	output string // file
	done   chan struct{}
}

func start(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, output: filepath.Join(t.TempDir(), "output"), done: make(chan struct{})}
	output, err := os.Create(p.output)
	check(t, err)
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	endWithParent(cmd)
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // Linux ends the program with the thread that started it
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(p.done)
		}
	}()
	check(t, <-started)
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s printed:\n%s", filepath.Base(cmd.Path), p.log())
		}
	})
	return p
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.done
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) log() string {
	raw, err := os.ReadFile(p.output)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
