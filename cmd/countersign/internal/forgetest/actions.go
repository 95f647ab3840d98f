package forgetest

import (
	"embed"
	"io/fs"
)

//go:embed actions
var actions embed.FS

// Actions puts the actions that our workflows use onto the server, in an organization "actions": small ones that do
// what theirs do, with curl, jq and unzip. It returns what each is called in a workflow, by its repository:
// "actions/checkout" is "actions/checkout@COMMIT".
func (s *Server) Actions() map[string]string {
	s.t.Helper()
	s.Org("actions", s.Admin)
	uses := map[string]string{}
	folders, err := fs.ReadDir(actions, "actions")
	check(s.t, err)
	for _, folder := range folders {
		raw, err := fs.ReadFile(actions, "actions/"+folder.Name()+"/action.yml")
		check(s.t, err)
		r := s.Repository(s.Admin, "actions", folder.Name(), map[string]string{"action.yml": string(raw)})
		uses[r.FullName()] = r.FullName() + "@" + r.Ref("refs/heads/main")
	}
	return uses
}
