package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// A Requester is somebody who told the proposer to make a change, and where that is known from. It can only
// ever count against an approval, so what nobody has verified may say it too: the Actor then has a login alone, and who
// that is, is what they are called.
type Requester struct {
	Actor  Actor  `json:"actor"`
	Source string `json:"source"`
}

// The sources of a Requester. Of the first four a forge tells; the others are the word of whoever proposed.
const (
	AskedBySender     = "actions.sender"                // of the event that the proposing workflow ran for
	AskedByTrigger    = "actions.triggering_actor"      // who started that run, or ran it again
	AskedByRunActor   = "workflow_run.actor"            // of the run that handed a bundle over
	AskedByRunTrigger = "workflow_run.triggering_actor" // the same
	AskedByGHAW       = "gh-aw"                         // whom a run of gh-aw names in aw_info.json
	AskedByFlag       = "flag"                          // review --requested-by
	AskedByRPC        = "rpc"                           // a member of a JSON-RPC request
	AskedByMCP        = "mcp"                           // a member of a tool's arguments
)

// RequestSources are all of them.
var RequestSources = []string{AskedBySender, AskedByTrigger, AskedByRunActor, AskedByRunTrigger, AskedByGHAW, AskedByFlag, AskedByRPC, AskedByMCP}

// forgeTells is how many of these sources are a forge's.
const forgeTells = 4

// IsForges reports whether a forge tells of the requester.
func (r Requester) IsForges() bool { return slices.Contains(RequestSources[:forgeTells], r.Source) }

// MaxRequesters bounds those of one proposal, as this program writes it.
const MaxRequesters = 20

// CheckRequesters is an error unless these are requesters, each once and in their order.
func CheckRequesters(all []Requester) error {
	for _, r := range all {
		switch {
		case !slices.Contains(RequestSources, r.Source):
			return fmt.Errorf("names somebody who asked for it, from %s, which tells of nobody", show(r.Source))
		case r.Actor.Kind == "" || r.Actor.ID == "" && r.Actor.Login == "":
			return errors.New("names nobody as who asked for it")
		case OneLine(r.Actor.Login, 100) != r.Actor.Login:
			return errors.New("names somebody as who asked for it whose name is not one line")
		}
	}
	if !slices.Equal(all, SortRequesters(all)) {
		return errors.New("names who asked for it out of order, or twice")
	}
	return nil
}

// SortRequesters are these in their order, each once.
func SortRequesters(all []Requester) []Requester {
	return slices.Compact(slices.SortedFunc(slices.Values(all), func(a, b Requester) int {
		return cmp.Or(CompareActors(a.Actor, b.Actor), strings.Compare(a.Source, b.Source))
	}))
}

// CompareActors orders actors by kind, id and login.
func CompareActors(a, b Actor) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.ID, b.ID), strings.Compare(a.Login, b.Login))
}

// Requesters are those of the proposals beside the first, by the path of the artifact that says so, as Proposers has it:
// a path without anybody is of a proposal that nobody is known to have asked for, and one that is not there was not read.
func Requesters(dir fs.FS, log *Log) map[string][]Requester {
	out := map[string][]Requester{}
	for _, a := range log.Artifacts(KindAgain) {
		if p, err := ReadProvenance(dir, a); err == nil {
			out[a.Path] = p.RequestedBy
		}
	}
	for _, a := range log.Artifacts(KindElsewhere) {
		if doc, err := ReadElsewhere(dir, a); err == nil && doc.check(log.tx) == nil {
			out[a.Path] = doc.Requesters()
		}
	}
	return out
}

// NewRequesters are those of some requesters that others do not have.
func NewRequesters(of, beside []Requester) (out []Requester) {
	for _, r := range of {
		if !slices.Contains(beside, r) {
			out = append(out, r)
		}
	}
	return out
}
