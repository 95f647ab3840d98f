package pipeline

import (
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/policy"
)

// A ReadOnlyError says that the sandbox is read-only, so that nothing is
// applied and no command is run.
type ReadOnlyError struct{}

func (*ReadOnlyError) Error() string { return "the sandbox is read-only: nothing is applied" }

// A SandboxError is a mode that was asked for and that the Policy does not allow.
type SandboxError struct{ Want, Have policy.Sandbox }

func (e *SandboxError) Error() string {
	return fmt.Sprintf("the sandbox %s was asked for, and the Policy says %s", e.Want, e.Have)
}

// sandboxMode is the stricter of what was asked for and what the Policy says;
// full access needs the word of both.
func (r *Runner) sandboxMode(p policy.Policy) (policy.Sandbox, error) {
	have := p.Sandbox
	switch {
	case have == policy.ReadOnly || r.Sandbox == policy.ReadOnly:
		return policy.ReadOnly, nil
	case r.Sandbox == policy.FullAccess && have != policy.FullAccess:
		return "", &SandboxError{r.Sandbox, have}
	case r.Sandbox == policy.FullAccess:
		return policy.FullAccess, nil
	}
	return policy.WorkspaceWrite, nil
}
