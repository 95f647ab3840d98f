package rest

import (
	"context"
	"fmt"
	"strconv"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// PermissionNone is of an account that may do nothing.
const PermissionNone = "none"

// People tells what accounts may do, and asks about each once in one reading.
type People struct {
	Forge     string // as errors name it
	AskAccess func(ctx context.Context, who ledger.Actor) (approval.Access, error)
	AskMember func(ctx context.Context, team string, who ledger.Actor) (bool, error)
	// AskAccount tells who has the number of an account.
	AskAccount func(ctx context.Context, id string) (ledger.Actor, error)

	access  Memory[ledger.Actor, approval.Access]
	members Memory[membership, bool]
}

type membership struct {
	team string
	who  ledger.Actor
}

// Forget begins another reading.
func (p *People) Forget() {
	p.access.Clear()
	p.members.Clear()
}

// Access is forge.Reader's. An account that is no person's is not asked about: it may do nothing here.
func (p *People) Access(ctx context.Context, who ledger.Actor) (approval.Access, error) {
	if who.Kind != "user" {
		return approval.Access{Permission: PermissionNone}, nil
	}
	a, err := p.access.Get(who, func() (approval.Access, error) { return p.AskAccess(ctx, who) })
	return a, Failed(p.Forge, fmt.Sprintf("asking what %s may do", ledger.OneLine(who.Login, 60)), err)
}

// Member is forge.Reader's. A team that the token cannot see is an error.
func (p *People) Member(ctx context.Context, team string, who ledger.Actor) (bool, error) {
	if _, err := p.Access(ctx, who); err != nil || who.Kind != "user" {
		return false, err // the login's number is checked there
	}
	is, err := p.members.Get(membership{team, who}, func() (bool, error) { return p.AskMember(ctx, team, who) })
	return is, Failed(p.Forge, fmt.Sprintf("asking whether %s is in %s", ledger.OneLine(who.Login, 60), ledger.OneLine(team, 120)), err)
}

// Account is forge.Auditor's.
func (p *People) Account(ctx context.Context, id string) (who ledger.Actor, err error) {
	if n, problem := strconv.ParseInt(id, 10, 64); problem != nil || n <= 0 || strconv.FormatInt(n, 10) != id {
		err = Unusable("that is no number of an account")
	} else if who, err = p.AskAccount(ctx, id); err == nil && (who.ID != id || who.Login == "") {
		err = Unusable("the answer is of another account, or has no login")
	}
	if err != nil {
		return ledger.Actor{}, Failed(p.Forge, "asking for the account "+ledger.OneLine(id, 30), err)
	}
	return who, nil
}
