package github

import (
	"slices"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// webFlow is GitHub itself, the committer of what is made in the browser.
const webFlow = "web-flow"

type commitNode struct {
	Commit struct {
		Author    *gitActor `json:"author"`
		Committer *gitActor `json:"committer"`
	} `json:"commit"`
}

type gitActor struct {
	User *account `json:"user"`
}

// committers lists each account once.
func committers(commits []commitNode) (accounts []ledger.Actor, strangers bool) {
	accounts = []ledger.Actor{}
	for _, n := range commits {
		for i, by := range []*gitActor{n.Commit.Author, n.Commit.Committer} {
			if by == nil || by.User == nil || by.User.DatabaseID <= 0 {
				strangers = true
				continue
			}
			by.User.Type = typeUser // the field's type; apps are known by their login
			isCommitter := i == 1
			if who := by.User.actor(); !(isCommitter && who.Login == webFlow) && !slices.Contains(accounts, who) {
				accounts = append(accounts, who)
			}
		}
	}
	return accounts, strangers
}
