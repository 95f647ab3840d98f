package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/file"
)

// A fileClient is go-git's, of which every call ends with its context. go-git
// kills the server, but then waits for what the server's hooks started.
type fileClient struct {
	path  string
	notes *notes
}

func (c *fileClient) begin(n *notes) { c.notes = n }

func (c *fileClient) Close() error { return nil }

func (c *fileClient) NewUploadPackSession(ep *transport.Endpoint, auth transport.AuthMethod) (transport.UploadPackSession, error) {
	if err := c.exists(); err != nil {
		return nil, err
	}
	s, err := file.DefaultClient.NewUploadPackSession(ep, auth)
	if err != nil {
		return nil, fmt.Errorf("running git-upload-pack: %w", err)
	}
	return &fileUpload{fileSession{new(sync.Mutex), s}, s}, nil
}

func (c *fileClient) NewReceivePackSession(ep *transport.Endpoint, auth transport.AuthMethod) (transport.ReceivePackSession, error) {
	if err := c.exists(); err != nil {
		return nil, err
	}
	s, err := file.DefaultClient.NewReceivePackSession(ep, auth)
	if err != nil {
		return nil, fmt.Errorf("running git-receive-pack: %w", err)
	}
	return &fileReceive{fileSession{new(sync.Mutex), s}, s}, nil
}

func (c *fileClient) exists() error {
	info, err := os.Stat(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c.notes.failed(ErrNotFound)
	case err != nil:
		return c.notes.failed(err)
	case !info.IsDir():
		return c.notes.failed(ErrNotFound)
	}
	return nil
}

// await returns f's result, or the context's error if that is first; f then
// goes on alone.
func await[T any](ctx context.Context, mu *sync.Mutex, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		mu.Lock()
		defer mu.Unlock()
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// A fileSession's calls take turns: one that was given up may still run.
type fileSession struct {
	mu *sync.Mutex
	s  transport.Session
}

func (f fileSession) AdvertisedReferences() (*packp.AdvRefs, error) {
	return f.AdvertisedReferencesContext(context.Background())
}

func (f fileSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	return await(ctx, f.mu, func() (*packp.AdvRefs, error) { return f.s.AdvertisedReferencesContext(ctx) })
}

// Close does not wait for the server.
func (f fileSession) Close() error {
	go func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		_ = f.s.Close()
	}()
	return nil
}

type fileUpload struct {
	fileSession
	upload transport.UploadPackSession
}

// UploadPack returns an answer whose reader ends with the context, too.
func (f *fileUpload) UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	resp, err := await(ctx, f.mu, func() (*packp.UploadPackResponse, error) { return f.upload.UploadPack(ctx, req) })
	if err != nil {
		cancel()
		return nil, err
	}
	r, w := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	go func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		_, err := io.Copy(w, resp)
		stop()
		_ = w.CloseWithError(err)
		cancel()
		_, _ = io.Copy(io.Discard, resp) // go-git ends a server only when reading fails
		_ = resp.Close()
	}()
	return packp.NewUploadPackResponseWithPackfile(req, r), nil
}

type fileReceive struct {
	fileSession
	receive transport.ReceivePackSession
}

func (f *fileReceive) ReceivePack(ctx context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	type answer struct {
		report *packp.ReportStatus
		err    error
	}
	a, err := await(ctx, f.mu, func() (answer, error) {
		report, err := f.receive.ReceivePack(ctx, req)
		return answer{report, err}, nil
	})
	if err != nil {
		return nil, err
	}
	return a.report, a.err
}
