package observation

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A Comment is what a Disposition was read from: a comment on an issue, as the forge told it, and what its author could do then.
type Comment struct {
	Access    approval.Access    `json:"access"`
	Statement approval.Statement `json:"statement"`
}

// CommandDispose begins a comment that is a disposition.
const CommandDispose = "/dispose"

// Disposition is what a comment says, in the transaction that its ID is:
//
//	/dispose <transaction or commit> accepted|fixed|revoked
//	<the reason, in one line or more>
//
// The first line, up to its LF or CR LF, is this to the byte, with a whole id. No other line begins with a slash behind spaces and
// tabs. It is an error if a person did not write all of it as it stands, by hand and on the forge, as for an approval.
func (c Comment) Disposition() (*Disposition, error) {
	s := c.Statement
	line, rest, _ := strings.Cut(s.Body, "\n")
	words := strings.Split(strings.TrimSuffix(line, "\r"), " ")
	if len(words) != 3 || words[0] != CommandDispose || !isAbout(words[1]) || !slices.Contains(Outcomes, Outcome(words[2])) {
		return nil, errors.New("its first line is not exactly /dispose, the whole id of a transaction or commit, and accepted, fixed or revoked")
	}
	command := func(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " \t"), "/") }
	d := &Disposition{About: words[1], As: Outcome(words[2]), Reason: ledger.OneLine(rest, 500), Comment: &c}
	why := s.Void(false)
	switch {
	case slices.ContainsFunc(strings.Split(rest, "\n"), command):
		return nil, errors.New("another of its lines begins with a slash, and a comment has one command")
	case d.Reason == "":
		return nil, errors.New("it gives no reason in the lines below the first")
	case s.Kind != approval.KindIssueComment || s.Author.Kind != "user" || s.Author.ID == "":
		return nil, errors.New("it is not a comment of a person")
	case why != "":
		return nil, errors.New("it does not count: " + why)
	}
	id, err := c.id()
	d.Head = Head{Schema: Schema(d), TransactionID: id, Author: s.Author}
	return d, err
}

// id is that of the transaction which the comment is recorded in, so that none is recorded twice: a ULID of the second in which
// it was made, and of the first 80 bits of a hash of its number.
func (c Comment) id() (string, error) {
	at, err := ledger.ParseTime(c.Statement.CreatedAt)
	if err != nil || at.Unix() < 0 {
		return "", errors.New("its time cannot be read")
	}
	sum := sha256.Sum256([]byte(DispositionNamespace + " " + c.Statement.ID))
	n := new(big.Int).Lsh(big.NewInt(at.Unix()*1000), 80)
	n.Or(n, new(big.Int).SetBytes(sum[:10])).SetBit(n, 130, 1) // a digit before all 26
	id := ledger.IDPrefix + strings.Map(crockford, n.Text(32)[1:])
	return id, ledger.CheckID(id)
}

// crockford is a digit of base 32 as ids have it.
func crockford(digit rune) rune {
	const digits, theirs = "0123456789abcdefghijklmnopqrstuv", "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	return rune(theirs[strings.IndexRune(digits, digit)])
}

// isAbout reports whether a text is the whole id of what may be reviewed.
func isAbout(id string) bool { return canon.IsGitID(id) || ledger.CheckID(id) == nil }

// check holds a disposition to the comment that it was read from.
func (c Comment) check(d *Disposition) error {
	read, err := c.Disposition()
	switch {
	case err != nil:
		return fmt.Errorf("its comment cannot count: %w", err)
	case read.About != d.About || read.As != d.As || read.Reason != d.Reason || read.Author != d.Author:
		return errors.New("its comment says something else, or is somebody else's")
	case read.TransactionID != d.TransactionID:
		return errors.New("its comment is recorded in another transaction")
	case d.Signature != nil:
		return errors.New("it is of a comment, and signed")
	}
	return nil
}
