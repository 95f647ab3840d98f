package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/countersign-dev/countersign/pipeline/sandbox"
)

// A Request is all that a running program can say to us (T93).
type Request string

// The requests: to propose what the scratch tree has now, and to say where the last proposal of it stands.
const (
	Propose Request = "propose"
	Status  Request = "status"
)

// seenChannel is the channel's socket as the program sees it, in a directory that it cannot change.
const seenChannel = "/tmp/countersign/channel"

// Bounds of the channel. One connection is served at a time, and has one line each way.
const (
	maxRequest   = 16 // bytes
	maxAnswer    = 64 << 10
	channelsTime = 10 * time.Second // in which the request has come, and the answer is read
)

// Listen opens the channel. Each request that is one is answered with what answer returns as JSON, until the channel is closed.
func (t *Tree) Listen(answer func(Request) any) (io.Closer, error) {
	dir := t.channel()
	if err := errors.Join(sandbox.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return nil, err
	}
	name, release, err := shortened(filepath.Join(dir, filepath.Base(seenChannel)))
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // by a name that may no longer be right
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn, answer)
		}
	}()
	return closer(func() error {
		err := l.Close()
		<-ended
		return errors.Join(err, sandbox.RemoveAll(dir))
	}), nil
}

type closer func() error

func (c closer) Close() error { return c() }

// serve answers one request. What is none, or comes too late, is not answered.
func serve(conn net.Conn, answer func(Request) any) {
	defer conn.Close()
	soon := func() error { return conn.SetDeadline(time.Now().Add(channelsTime)) }
	if soon() != nil {
		return
	}
	line, err := bufio.NewReaderSize(io.LimitReader(conn, maxRequest), maxRequest).ReadString('\n')
	if err != nil || line != string(Propose)+"\n" && line != string(Status)+"\n" {
		return
	}
	raw, err := json.Marshal(answer(Request(line[:len(line)-1])))
	if err == nil && soon() == nil {
		_, _ = conn.Write(append(raw, '\n'))
	}
}

// Ask is a request from within the scratch tree, to the channel that InScratch names there.
func Ask(channel string, r Request) (json.RawMessage, error) {
	name, release, err := shortened(channel)
	if err != nil {
		return nil, err
	}
	defer release()
	conn, err := net.Dial("unix", name)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, string(r)+"\n"); err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	if err == nil && !json.Valid(raw) {
		err = errors.New("there is no answer")
	}
	return raw, err
}

// shortened is another name of a socket, until it is released, where its own is longer than a socket's name can be.
func shortened(socket string) (name string, release func(), err error) {
	if len(socket) < 100 {
		return socket, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(socket))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(socket)), func() { dir.Close() }, nil
}

func (t *Tree) channel() string { return filepath.Join(t.dir, "channel") }
