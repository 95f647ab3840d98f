package attest

import "bytes"

// An Outcome is what came of one check.
type Outcome string

// The outcomes. A check that could not be made is Unknown and never good.
const (
	Good          Outcome = "good"
	Bad           Outcome = "bad"
	NotRecomputed Outcome = Unknown
)

// A Check is one thing that a verifier looked at. What is a word: "signature", "subject",
// "change", "record" or "once".
type Check struct {
	What    string  `json:"what"`
	Outcome Outcome `json:"outcome"`
	Message string  `json:"message"`
}

// Agree compares a statement with the one that was made again from the record. Where it
// could not be told here what vouches for a key, the statement's word for it is left as it
// is, and unknown is true.
func Agree(stated, again Statement) (agree, unknown bool, err error) {
	if a, ok := stated.Predicate.(*Approval); ok {
		if b, ok := again.Predicate.(*Approval); ok && len(a.Decisions) == len(b.Decisions) {
			b.Extra = a.Extra // what a later version says besides is left as it is
			for i := range a.Decisions {
				said, found := a.Decisions[i].Key, b.Decisions[i].Key
				if said == nil || found == nil || said.Listed == found.Listed {
					continue
				}
				switch {
				case said.Listed == Unknown: // it claims less than is so
				case found.Listed == Unknown && (said.Listed == listed || said.Listed == registered):
					unknown = true
				default:
					return false, false, nil
				}
				found.Listed = said.Listed
			}
		}
	}
	one, err := stated.Bytes()
	if err != nil {
		return false, false, err
	}
	other, err := again.Bytes()
	return bytes.Equal(one, other), unknown, err
}
