package risk

import (
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// A List is what people are shown of a patch before its diff, as a review
// records it: the artifact of kind ledger.KindRisks, countersign/risks/1, as
// canonical JSON and one LF. Its hash is what a signed decision names as shown.
//
//	{"more":{},"patch_id":"…","risks":[{"kind":"executable","path":"run.sh"}],"schema":"countersign/risks/1"}
//
// More is how many risks of a kind there are beside those of the List: a patch of
// very many files does not make a List of any size.
type List struct {
	Schema  string       `json:"schema"`
	PatchID string       `json:"patch_id"`
	Risks   []Risk       `json:"risks"`
	More    map[Kind]int `json:"more"`
}

// maxOfKind is how many risks of one kind a List names, so that many of one kind
// leave room for another; maxBytes is how large the risks of a List may be
// together, however long their paths.
const (
	maxOfKind = 200
	maxBytes  = 256 << 10
)

// NewList is the List of a patch's risks.
func NewList(patchID string, risks []Risk) List {
	return List{Schema: ledger.RisksSchema, PatchID: patchID, Risks: []Risk{}, More: map[Kind]int{}}.With(risks)
}

// With is the List with more risks in it, in their order.
func (l List) With(risks []Risk) List {
	all := Sort(append(append([]Risk{}, l.Risks...), risks...))
	for most := maxOfKind; ; most /= 2 {
		kept, more := first(all, most)
		if most > 0 && size(kept) > maxBytes {
			continue
		}
		for kind, n := range l.More {
			more[kind] += n
		}
		l.Risks, l.More = kept, more
		return l
	}
}

// first are so many risks of each kind, and how many others there are.
func first(all []Risk, most int) ([]Risk, map[Kind]int) {
	kept, more, seen := []Risk{}, map[Kind]int{}, map[Kind]int{}
	for _, r := range all {
		if seen[r.Kind]++; seen[r.Kind] <= most {
			kept = append(kept, r)
		} else {
			more[r.Kind]++
		}
	}
	return kept, more
}

// size is about how many bytes risks take.
func size(risks []Risk) int {
	n := 0
	for _, r := range risks {
		n += len(r.Kind) + len(r.Path) + len(r.From) + len(r.Detail) + 8*len(r.Lines) + 40
	}
	return n
}

// Count is how many risks there are, named or not.
func (l List) Count() int {
	n := len(l.Risks)
	for _, more := range l.More {
		n += more
	}
	return n
}

// Bytes are the List as it is recorded.
func (l List) Bytes() []byte {
	line, err := canon.Line(l)
	if err != nil {
		panic(fmt.Sprintf("risk: %v", err)) // strings and numbers alone
	}
	return line
}

// Read reads a List that was recorded.
func Read(raw []byte) (List, error) {
	var l List
	if err := canon.Unmarshal(raw, &l); err != nil {
		return List{}, err
	}
	if l.Schema != ledger.RisksSchema {
		return List{}, fmt.Errorf("its schema is not %s", ledger.RisksSchema)
	}
	return l, nil
}
