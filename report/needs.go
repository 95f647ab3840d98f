package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/policy"
)

// maxNames is how many paths, people or commands are named in one place.
const maxNames = 20

// needRow says in words what one need asks for.
func needRow(n policy.Need) string {
	who := plural(max(1, n.Required), "person")
	if n.Names() {
		who += ", each " + people(n)
	}
	row := "- " + needName(n.Kind) + ": " + who
	if len(n.Paths) > 0 {
		row += ", for " + codes(n.Paths, maxNames)
	}
	return row + "\n"
}

func needName(kind string) string {
	switch kind {
	case policy.KindFileChange:
		return "the change"
	case policy.KindSecret:
		return "what looks like a **secret**"
	case policy.KindProtected:
		return "**protected paths**"
	}
	return prose(kind)
}

// people names whom a need is for.
func people(n policy.Need) string {
	var who []string
	if len(n.Users) > 0 {
		who = append(who, "one of "+codes(n.Users, maxNames))
	}
	if len(n.Teams) > 0 {
		who = append(who, "a member of "+codes(n.Teams, maxNames))
	}
	if n.Owners {
		who = append(who, "a code owner, for each path one of its own")
	}
	return strings.Join(who, " or ")
}

// conditions says in words which approvals count under the Policy.
func (q Request) conditions() string {
	a := q.Approvals
	rows := []string{"with the permission " + name(string(a.Permission)) + " or more, asked for again before anything is written"}
	switch {
	case q.Report.GateOnly && a.AllowAuthor:
		rows = append(rows, "those who wrote the change may approve it too")
	case q.Report.GateOnly:
		rows = append(rows, "nobody who wrote the change")
	case a.AllowAuthor:
		rows = append(rows, "the proposer may approve too, though not what looks like a secret")
	default:
		rows = append(rows, "not the proposer")
	}
	rows = append(rows, "no bot, no app, no e-mail; a comment that is edited counts no more")
	if a.MaxAge > 0 {
		rows = append(rows, "an approval holds for "+age(time.Duration(a.MaxAge)))
	}
	if a.SameHead {
		rows = append(rows, "an approval holds for the commit that it was made on, and no longer: a push takes it back")
	}
	return "Who may approve:\n\n- " + strings.Join(rows, "\n- ") + "\n\n"
}

// age is a duration in the largest unit that it is a whole number of.
func age(d time.Duration) string {
	for _, unit := range []struct {
		name string
		long time.Duration
	}{{"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}} {
		if d%unit.long == 0 {
			return plural(int(d/unit.long), unit.name)
		}
	}
	return fmt.Sprint(d)
}
