// Package v1 makes the pages of version 1. It is frozen: what it makes of a record never changes, since an audit makes
// the pages of old ledgers again and compares them. So it has all words and all escaping of its own, and imports what
// reads the record alone; nothing imports it but pipeline/page. Other words, or another layout, are another version, in a
// package beside this one. It is pure.
package v1

// Root is README.md at the root of a ledger.
func Root() []byte { return []byte(root) }

const root = `# Who changed what, and who approved it

This is the logbook of a software project: who proposed each change, who
approved or denied exactly that, and what became of it.

**[Look at the changes, month by month](transactions/README.md)**

A page of a day lists its changes; each change has a page of its own. Pages are
made of the record beside them, and countersign audit makes them again and
compares.

## For those who check it

Every change here was proposed, decided and applied through countersign. Each
commit is one stage of one transaction; nothing is ever changed or removed but
pages, a transaction's transaction.json (its state) and the end of its
events.jsonl.

    L=refs/agent/ledger    # or the ref or branch that has this file
    git log $L
    git ls-tree -r --name-only $L
    git show $L:transactions/YYYY/MM/DD/XX/<id>/events.jsonl

An event's "prev" is the SHA-256 of the line before it, LF included. A patch's
file name is its SHA-256:

    git show $L:transactions/YYYY/MM/DD/XX/<id>/patches/<patch_id>.diff | sha256sum

XX is the first byte of ` + "`SHA-256(<id>)`" + `, as two hex digits. denied/ holds the
denials that stick, proposed/ the transactions that propose a patch, both by
patch_id.
`
