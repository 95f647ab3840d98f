package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/internal/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/forge"
)

// LedgerCheckName is the name of the check run that says where a ledger is.
func LedgerCheckName(ref string) string { return "countersign ledger " + ref }

// LedgerCheck is that check run. A job that remembers nothing finds there how far
// the ledger had come, whoever has moved its ref since (T51, T81).
func LedgerCheck(ref, tip string) forge.Check {
	text := "The ledger " + name(ref) + " is at " + name(tip) + ". A later job refuses one that is not there, or does not descend from it.\n\n"
	return forge.Check{
		Name: LedgerCheckName(ref), Title: fmt.Sprintf("at %.12s", tip), Status: CheckCompleted, Conclusion: CheckNeutral,
		Summary: text + tipMarker(ref, tip),
	}
}

// IsCheckOf reports whether a check run's name is that of a transaction.
func IsCheckOf(name string) bool { return strings.HasPrefix(name, transactionCheck) }

const (
	tipMark    = "<!-- countersign:ledger "
	tipMarkEnd = " -->"
)

// tipMarker is the last line of every check run's summary. The ref stands there
// as a hash, as its name may be anything.
func tipMarker(ref, tip string) string {
	if tip == "" {
		return ""
	}
	return tipMark + markOf(ref) + " " + tip + tipMarkEnd + "\n"
}

func markOf(ref string) string {
	sum := sha256.Sum256([]byte(ref))
	return hex.EncodeToString(sum[:8])
}

var commitID = lazyregexp.New(`^[0-9a-f]{40}$`)

// TipIn returns the tip of a ledger that a check run's summary ends with, "" for
// none. A last line that begins as one with a tip does and has none is an error.
func TipIn(summary, ref string) (string, error) {
	summary = strings.TrimSpace(summary)
	last := summary[strings.LastIndexByte(summary, '\n')+1:]
	text, marked := strings.CutPrefix(last, tipMark)
	if !marked {
		return "", nil
	}
	of, tip, _ := strings.Cut(strings.TrimSuffix(text, tipMarkEnd), " ")
	switch {
	case !commitID().MatchString(tip):
		return "", fmt.Errorf("%+q names no tip of a ledger", last[:min(len(last), 200)])
	case of != markOf(ref):
		return "", nil
	}
	return tip, nil
}
