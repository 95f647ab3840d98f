package session

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/verdict"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/report"
)

// RunAudit checks the packs, then the history, which over reads as h does; before is what was found already. show is told how
// far it is.
func RunAudit(ctx context.Context, s *Session, h *gitstore.History, o verdict.Options, show func(what string, done, total int), before ...history.Finding) (audit.Result, error) {
	// The history of a large ledger, and of a branch, make much garbage: a third of the memory is
	// worth a tenth of the time. It stays so for what follows: before, it may have
	// been what collectLater put it to, which would never end then.
	if s.SetGCPercent != nil {
		s.SetGCPercent(30)
	}
	o.Found = append(before, h.Packs(func(done, total int64) { show("MB of packs", int(done>>20), int(total>>20)) })...)
	o.Progress = show
	return AuditRules(ctx, s, h, o)
}

// AuditRules checks a history alone.
func AuditRules(ctx context.Context, s *Session, h *gitstore.History, o verdict.Options) (audit.Result, error) {
	o.Rollback = h.Rollback
	o.Keys = page.CodeKeys(func(commit string) (fs.FS, error) { return s.Repo.Tree(ctx, commit) })
	return verdict.Of(h.History, o)
}

func AllowedSigners(c *console.Console, name string) (*sshsig.Allowed, error) {
	raw, err := c.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return SignersIn(c, name, raw)
}

// SignersIn are the signers that a file allows. A line that cannot be read allows nobody, and is told.
func SignersIn(c *console.Console, name string, raw []byte) (*sshsig.Allowed, error) {
	signers, err := sshsig.ParseAllowedSigners(raw)
	if len(raw) > verdict.MostSigners {
		err = fmt.Errorf("%d bytes are more than %d", len(raw), verdict.MostSigners)
	}
	if err != nil {
		return nil, &console.UsageError{Message: fmt.Sprintf("%s: %v", name, err), Hint: `a line looks like: ci@example.org namespaces="git" ssh-ed25519 AAAA…`}
	}
	if unread := signers.Unread(); unread != nil {
		c.Say("%s: passed over: %s", report.Clean(name), report.Clean(strings.ReplaceAll(unread.Error(), "\n", "; ")))
	}
	return &signers, nil
}

// Remember has the clone remember a ledger that was audited, and holds.
func (s *Session) Remember(h *gitstore.History) error {
	err := s.Local.Remember(h)
	if err == nil {
		s.Seen = s.Local.Seen
	}
	return err
}
