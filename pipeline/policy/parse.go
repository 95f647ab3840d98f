package policy

import (
	"time"

	"github.com/countersign-dev/countersign/internal/lazyregexp"
)

// The bounds of what a file may ask for. A Policy that nobody can meet, or that
// sets no bound, is a slip.
const (
	mostApprovals = 100
	mostFiles     = 100_000
	mostSize      = 1 << 30 // bytes
	mostAge       = 10 * 365 * 24 * time.Hour
	mostTimeout   = 24 * time.Hour
	mostGlobs     = 1000
)

// Parse reads a Policy file; file is the name that errors tell. What the file
// leaves out is as in Default. The error is of type Problems.
func Parse(file string, raw []byte) (Policy, error) {
	r := &reader{file: file}
	p := Default()
	if root, ok := r.document(raw); ok {
		r.policy(root, &p)
	}
	if err := r.problems.err(); err != nil {
		return Policy{}, err
	}
	return p, nil
}

func (r *reader) policy(n node, p *Policy) {
	r.mapping(n, "",
		field{"version", number(&p.Version, 1, 1)},
		field{"approvals", approvals(&p.Approvals)},
		field{"bots", accounts(&p.Bots)},
		field{"protected", protected(&p.Protected)},
		field{"sandbox", word(&p.Sandbox, sandboxes)},
		field{"secrets", secrets(&p.Secrets)},
		field{"limits", limits(&p.Limits)},
		field{"commands", commands(&p.Commands)},
		field{"apply", apply(&p.Apply)},
		field{"gate", gate(&p.Gate)},
		field{"ledger", ledger(&p.Ledger)},
	)
}

func approvals(a *Approvals) read {
	return func(r *reader, n node, key string) {
		r.mapping(n, key,
			field{"required", number(&a.Required, 1, mostApprovals)},
			field{"permission", word(&a.Permission, permissions)},
			field{"allow_author", boolean(&a.AllowAuthor)},
			field{"same_head", boolean(&a.SameHead)},
			field{"max_age", duration(&a.MaxAge, mostAge)},
			field{"local", local(&a.Local)},
			field{"withdraw_deny", number(&a.WithdrawDeny, 0, mostApprovals)},
			field{"break_glass", accounts(&a.BreakGlass)},
		)
	}
}

func local(dst *Local) read {
	return func(r *reader, n node, key string) {
		var always bool
		before := len(r.problems)
		boolean(&always)(r, n, key)
		switch {
		case len(r.problems) > before:
		case always:
			*dst = LocalAlways
		default:
			*dst = LocalNever
		}
	}
}

var (
	accountForm   = form{lazyregexp.New(`^[^@\s][^\s]*$`), 100, "a login (without @) or a numeric id"}
	teamForm      = form{lazyregexp.New(`^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$`), 100, "a team such as acme/security"}
	recipientForm = form{lazyregexp.New(`^age1[0-9a-z]{58,}$`), 4000, "an age recipient (age1…)"}
	variableForm  = form{lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`), 100, "the name of an environment variable"}
	branchForm    = form{lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_./+@#=-]*$`), 200, "the name of a branch"}
	commitForm    = form{lazyregexp.New(`^[0-9a-f]{40}$`), 40, "a commit id of 40 digits"}
	timeForm      = form{lazyregexp.New(`^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z$`), 20, "a time such as 2026-01-05T12:00:00Z"}
	sizeForm      = form{lazyregexp.New(`^[1-9][0-9]{0,9} ?(B|KiB|MiB|GiB)$`), 20, "a size such as 5 MiB"}
)

// accounts reads logins and numeric ids. A number stands for the id.
func accounts(dst *[]string) read {
	return list(func(r *reader, n node, key string) {
		if n.kind == isInteger && decimal().MatchString(n.text) && n.text > "0" {
			n.kind = isText
		}
		var s string
		before := len(r.problems)
		text(&s, accountForm)(r, n, key)
		appendOnce(r, dst, s, n.mark, key, before)
	})
}
