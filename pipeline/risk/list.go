package risk

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
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

// maxOfKind is how many risks of one kind a List names, and maxBytes about how large
// they may be together, however long their paths: many of one kind leave room for
// another.
const (
	maxOfKind = 200
	maxBytes  = 16 << 10
	maxMore   = 1 << 30 // of which somebody else says that they are left out
)

// NewList is the List of a patch's risks.
func NewList(patchID string, risks []Risk) List {
	return List{Schema: ledger.RisksSchema, PatchID: patchID, Risks: []Risk{}, More: map[Kind]int{}}.With(risks)
}

// With is the List with more risks in it.
func (l List) With(risks []Risk) List {
	return l.keep(Sort(slices.Concat(l.Risks, risks)))
}

// Under is the List with what a Policy protects of these paths.
func (l List) Under(p policy.Policy, paths []string) List { return l.With(InPolicy(p, paths)) }

// Also is the List with what somebody else lists beside: that takes the room that is
// left, and nothing of the List gives way to it. Both leave out of one patch, so that of
// a kind there are as many more as either says. What only the other says is marked as that:
// its words are anybody's who can write a record.
func (l List) Also(other List) List {
	beside := slices.DeleteFunc(Sort(slices.Clone(other.Risks)), func(r Risk) bool { return slices.ContainsFunc(l.Risks, r.is) })
	for i, r := range beside {
		beside[i].Detail = strings.TrimSuffix("recorded: "+r.Detail, ": ")
	}
	more := maps.Clone(l.More)
	l = l.keep(slices.Concat(l.Risks, beside))
	l.Risks = Sort(l.Risks)
	for kind, n := range other.More {
		if n = min(n, maxMore); n > more[kind] {
			l.More[kind] += n - more[kind]
		}
	}
	return l
}

// keep names the first risks of each kind, as many as there is room for, and counts the
// others. Kinds that it does not know share the room of one.
func (l List) keep(all []Risk) List {
	kept, more := []Risk{}, map[Kind]int{}
	for kind, n := range l.More {
		more[kind] = n
	}
	count, size := map[Kind]int{}, map[Kind]int{}
	for _, r := range all {
		room := r.Kind
		if !slices.Contains(Kinds(), room) {
			room = ""
		}
		n := len(r.Kind) + len(r.Path) + len(r.From) + len(r.Detail) + 8*len(r.Lines) + 40
		if count[room] > 0 && (count[room] == maxOfKind || size[room]+n > maxBytes) {
			more[r.Kind]++
			continue
		}
		kept = append(kept, r)
		count[room]++
		size[room] += n
	}
	l.Risks, l.More = kept, more
	return l
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

// An Explanation is what the Policy asks of a patch, and what to look at in it first.
type Explanation struct {
	policy.Explanation
	Risks List `json:"risks"`
}

// Redacted is the List without what a Finder takes out of its words.
func (l List) Redacted(text func(string) string) *List {
	l.Risks = slices.Clone(l.Risks)
	for i, r := range l.Risks {
		l.Risks[i].Path, l.Risks[i].From, l.Risks[i].Detail = text(r.Path), text(r.From), text(r.Detail)
	}
	return &l
}
