package observation

import (
	"errors"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// KindDeployment is the kind of a Deployment.
const KindDeployment = "deployment"

// A Deployment says that a commit, whose id is whole, went to an environment. DeployedAt (ledger.FormatTime) and URL, which may
// be "", are its Author's word.
type Deployment struct {
	Head
	Commit      string `json:"commit"`
	Environment string `json:"environment"`
	DeployedAt  string `json:"deployed_at"`
	URL         string `json:"url,omitempty"`
}

// Kind is Observation's.
func (*Deployment) Kind() string { return KindDeployment }

// Words is Observation's.
func (d *Deployment) Words() string { return "deployed " + d.Commit + " to " + d.Environment }

// The forms of texts: what can be said of neither in two ways, and is no markup.
var (
	environment = canon.Regexp(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,99}$`)
	address     = canon.Regexp(`^https?://[A-Za-z0-9./_:#?=&%-]{1,490}$`)
)

// Check is Observation's.
func (d *Deployment) Check(at time.Time) error {
	when, err := time.Parse(time.RFC3339, d.DeployedAt)
	switch {
	case !canon.IsGitID(d.Commit):
		return fmt.Errorf("%.80q is no whole id of a commit", d.Commit)
	case !environment().MatchString(d.Environment):
		return fmt.Errorf("%.120q is no name of an environment: 1 to 100 letters, digits and . _ / -, the first a letter or a digit", d.Environment)
	case err != nil || ledger.FormatTime(when) != d.DeployedAt:
		return fmt.Errorf("%.60q is no time", d.DeployedAt)
	case when.After(at):
		return errors.New("it was deployed after that was recorded")
	case d.URL != "" && !address().MatchString(d.URL):
		return errors.New("its address is none of https:// or http:// and 1 to 490 plain characters")
	}
	return nil
}
