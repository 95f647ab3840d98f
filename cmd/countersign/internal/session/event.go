package session

import (
	"fmt"
	"os"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// TrustedEvent is the event of the workflow that this runs in, if its file is one that
// nobody's pull request brings along.
func TrustedEvent(c *console.Console) (forge.Event, error) {
	e, err := ReadEvent(c.Getenv)
	if err == nil {
		err = e.Trusted()
	}
	return e, err
}

// startedBy are those who started the workflow's run that this runs in, as its event and its variables say.
func startedBy(getenv func(string) string) ([]ledger.Requester, error) {
	if !console.InWorkflow(getenv) || getenv("GITHUB_EVENT_PATH") == "" {
		return nil, nil
	}
	e, err := ReadEvent(getenv)
	if err != nil {
		return nil, err
	}
	login, id := getenv("GITHUB_TRIGGERING_ACTOR"), ""
	if login == getenv("GITHUB_ACTOR") { // GITHUB_ACTOR_ID is of who started it first
		if id = getenv("GITHUB_ACTOR_ID"); e.Name == "schedule" {
			login = "" // who last changed the workflow's file
		}
	}
	return e.StartedBy(login, id), nil
}

// ReadEvent reads the event of the workflow that this runs in.
func ReadEvent(getenv func(string) string) (forge.Event, error) {
	f, err := os.Open(getenv("GITHUB_EVENT_PATH"))
	if err != nil {
		return forge.Event{}, fmt.Errorf("reading the workflow's event: %w", console.PlainText(err))
	}
	defer f.Close()
	return forge.ReadEvent(getenv("GITHUB_EVENT_NAME"), getenv("GITHUB_REF"), f)
}
