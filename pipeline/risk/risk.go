// Package risk says what the Policy asks of a patch, and lists what the patch does that a
// reader of its diff may overlook, the most dangerous first:
//
//	unlisted    this program could not look at the whole patch, and why; without a path
//	executable  a file that becomes executable, or is made so
//	trusted     a file that the forge, Git, agents or this program obey
//	build       a file that says what is built, installed or run
//	secret      what looks like a secret, with its line and rule
//	protected   a path that the Policy protects, with the rule that says so
//	binary      content that a diff does not show, with sizes and type
//	delete      a file that goes
//	rename      a file that goes elsewhere
//	mode        a file that is executable no more
//	whitespace  a file in which nothing but white space changes
//	long        added lines of more than 500 characters
//	hidden      added characters that do not show or reorder the line, bytes that are
//	            not UTF-8, and text that blanks push out of sight
//	lookalike   added words and signs, and names of files, that look like others
//	generated   a file that says that it is generated, or looks minified
//	claimed     what a tool is recorded to have said, which nobody has checked
//
// A list follows from the patch and the Policy alone, but for what is claimed. Whoever reads the list and
// the diff has seen every byte: that is held by a test against git itself.
package risk

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
)

// A Kind is a sort of risk, by the word that the package comment has.
type Kind string

// The kinds.
const (
	Unlisted   Kind = "unlisted"
	Executable Kind = "executable"
	Trusted    Kind = "trusted"
	Build      Kind = "build"
	Secret     Kind = "secret"
	Protected  Kind = "protected"
	Binary     Kind = "binary"
	Delete     Kind = "delete"
	Rename     Kind = "rename"
	Mode       Kind = "mode"
	Whitespace Kind = "whitespace"
	Long       Kind = "long"
	Hidden     Kind = "hidden"
	Lookalike  Kind = "lookalike"
	Generated  Kind = "generated"
	Claimed    Kind = "claimed"
)

// Kinds are all kinds, the most dangerous first.
func Kinds() []Kind {
	return []Kind{
		Unlisted, Executable, Trusted, Build, Secret, Protected, Binary, Delete, Rename, Mode, Whitespace, Long, Hidden, Lookalike, Generated, Claimed,
	}
}

// A Risk is one thing about one file. Lines are of the file after the change,
// the first few of them, and More is how many others there are; a risk without
// lines is about the file as a whole. Detail says more, in English: the rule, the
// reason, the sizes, the characters as escapes. Path, From and Detail are
// whatever the patch has, and are escaped by who shows them.
type Risk struct {
	Kind   Kind   `json:"kind"`
	Path   string `json:"path"` // empty where the Risk is of every file
	From   string `json:"from,omitempty"`
	Lines  []int  `json:"lines,omitempty"`
	More   int    `json:"more,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// maxLines is how many lines a Risk names.
const maxLines = 5

// at adds a line.
func (r *Risk) at(line int) {
	switch {
	case slices.Contains(r.Lines, line):
	case len(r.Lines) < maxLines:
		r.Lines = append(r.Lines, line)
	default:
		r.More++
	}
}

// Of lists the risks of a patch itself; found are the secrets that it introduces.
// Those that only the Policy knows are InPolicy.
func Of(set patch.Patchset, found []redact.Finding) []Risk {
	var out []Risk
	secrets := map[string][]int{}
	for _, f := range found {
		secrets[f.Path] = append(secrets[f.Path], f.Line)
	}
	for _, c := range set.Changes {
		out = append(out, ofChange(c, secrets[c.Path])...)
	}
	for _, f := range found {
		one := Risk{Kind: Secret, Path: f.Path, Detail: f.Kind}
		if f.Line > 0 {
			one.Lines = []int{f.Line}
		}
		out = append(out, one)
	}
	return Sort(out)
}

// OfDiff lists what a diff tells by itself, without its base: less than Of, as nothing is
// looked at that only whole files tell; DiffAlone says so. Secrets are those of added
// lines, and those that stand there as <REDACTED:kind> where the diff is kept without.
func OfDiff(d patch.Diff, f redact.Finder) []Risk {
	var out []Risk
	for _, p := range d.Parts {
		added, lost := gitpatch.ChangedLines(p)
		found := secretLines(added, f)
		var lines []int
		for _, one := range found {
			out = append(out, Risk{Kind: Secret, Path: p.Path, Lines: []int{one.Line}, Detail: one.Kind})
			lines = append(lines, one.Line)
		}
		out = append(out, ofPart(p, added, lost, lines)...)
	}
	return Sort(out)
}

// DiffAlone begins the reason of an Unlisted risk beside those of OfDiff.
const DiffAlone = "only the diff was seen: "

var redacted = canon.Regexp(`<REDACTED:([a-z0-9][a-z0-9_.-]{0,99})>`)

// secretLines are the lines in which a secret among them begins.
func secretLines(added []gitpatch.Line, f redact.Finder) []redact.Finding {
	var text bytes.Buffer
	ends := make([]int, len(added))
	for i, l := range added {
		text.Write(l.Text)
		text.WriteByte('\n')
		ends[i] = text.Len()
	}
	var out []redact.Finding
	add := func(at int, kind string) {
		if i, _ := slices.BinarySearch(ends, at+1); i < len(added) {
			out = append(out, redact.Finding{Line: added[i].After, Kind: kind})
		}
	}
	for _, one := range f.Find(text.String()) {
		add(one.Start, one.Kind)
	}
	for _, m := range redacted().FindAllSubmatchIndex(text.Bytes(), -1) {
		add(m[0], f.Text(string(text.Bytes()[m[2]:m[3]])))
	}
	return out
}

// InPolicy lists which of these paths the Policy's own rules protect, and whom a
// rule asks. What is protected everywhere is among the risks of the patch.
func InPolicy(p policy.Policy, paths []string) []Risk {
	var out []Risk
	for _, e := range Explain(p, paths) {
		for _, met := range e.Rules {
			if met.Rule != "built-in" {
				out = append(out, Risk{Kind: Protected, Path: e.Path, Detail: met.Rule + " " + met.Glob})
			}
		}
	}
	return Sort(out)
}

// Sort puts the most dangerous first. Of those of one kind the first with each Detail
// come first, in the order of the reasons to protect a file, so that many files of one
// sort hide none of another; then those with a second one, and so on, by their paths.
// A kind that it does not know comes first.
func Sort(list []Risk) []Risk {
	slices.SortStableFunc(list, func(a, b Risk) int {
		return cmp.Or(
			cmp.Compare(slices.Index(Kinds(), a.Kind), slices.Index(Kinds(), b.Kind)),
			cmp.Compare(a.Path, b.Path), slices.Compare(a.Lines, b.Lines), cmp.Compare(a.Detail, b.Detail),
		)
	})
	list = slices.CompactFunc(list, Risk.is)
	type turn struct {
		Risk
		number int // among those of its kind and detail
	}
	turns, seen := make([]turn, len(list)), map[[2]string]int{}
	for i, r := range list {
		of := [2]string{string(r.Kind), r.Detail}
		turns[i] = turn{r, seen[of]}
		seen[of]++
	}
	slices.SortStableFunc(turns, func(a, b turn) int {
		return cmp.Or(
			cmp.Compare(slices.Index(Kinds(), a.Kind), slices.Index(Kinds(), b.Kind)),
			cmp.Compare(a.number, b.number), cmp.Compare(reasonRank(a.Detail), reasonRank(b.Detail)),
		)
	})
	for i, t := range turns {
		list[i] = t.Risk
	}
	return list
}

// reasonRank is the place of a reason among those of watchedSorts, after all of them for
// another detail.
func reasonRank(detail string) int {
	sorts := watchedSorts()
	if i := slices.IndexFunc(sorts, func(w watched) bool { return w.reason == detail }); i >= 0 {
		return i
	}
	return len(sorts)
}

// is reports whether two risks are the same.
func (r Risk) is(o Risk) bool {
	return r.Kind == o.Kind && r.Path == o.Path && r.From == o.From && r.Detail == o.Detail && r.More == o.More && slices.Equal(r.Lines, o.Lines)
}

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

// Claimed is the List with what advice says of a patch that changes these paths. What it says of others stands in its words.
func (l List) Claimed(a approval.Advice, paths []string) List {
	var said []Risk
	for _, f := range a.Findings {
		one, at := Risk{Kind: Claimed}, f.File
		if f.Line > 0 {
			at += ":" + strconv.Itoa(f.Line)
		}
		if slices.Contains(paths, f.File) {
			one.Path, at = f.File, ""
			if f.Line > 0 {
				one.Lines = []int{f.Line}
			}
		}
		one.Detail = a.Tool + " says " + string(f.Level)
		for _, more := range []struct{ before, text string }{{" of ", f.Rule}, {" in ", at}, {": ", f.Message}} {
			if more.text != "" {
				one.Detail += more.before + more.text
			}
		}
		said = append(said, one)
	}
	l = l.With(said)
	if a.More > 0 {
		l.More[Claimed] += min(a.More, maxMore)
	}
	return l
}

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
	maps.Copy(more, l.More)
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

// Rank is the place of the gravest risk among Kinds, behind all of them where there is none, and before them where it is of
// a kind that it does not know.
func (l List) Rank() int {
	if len(l.Risks) == 0 {
		return len(Kinds())
	}
	return slices.Index(Kinds(), l.Risks[0].Kind)
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
	if err := canon.UnmarshalDocument("it", raw, &l); err != nil {
		return List{}, err
	}
	if l.Schema != ledger.RisksSchema {
		return List{}, fmt.Errorf("its schema is not %s", ledger.RisksSchema)
	}
	return l, nil
}

// An Explanation is what the Policy asks of a patch, and what to look at in it first.
type Explanation struct {
	PolicyExplanation
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
