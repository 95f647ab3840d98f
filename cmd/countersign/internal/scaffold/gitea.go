package scaffold

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/report"
)

// giteaSettle is the template of the workflow with the secret, giteaEvents that of the one without.
const (
	giteaSettle = "gitea.yml"
	giteaEvents = "gitea-events.yml"
)

// giteaFolder is where a server takes workflows from: from the first of the folders that
// is there, and from no other. Gitea does not look at .forgejo. A new .gitea/workflows
// would switch off what is in .github/workflows, so that is used where it is there.
func giteaFolder(tree fs.FS, forgejo bool) (string, error) {
	folders := []string{".gitea/workflows", ".github/workflows"}
	if forgejo {
		folders = append([]string{".forgejo/workflows"}, folders...)
	}
	for _, folder := range folders {
		info, err := fs.Lstat(tree, folder)
		switch {
		case err == nil && info.IsDir():
			return folder, nil
		case err == nil:
			return "", fileError(folder, errors.New("it is not a directory"))
		case !errors.Is(err, fs.ErrNotExist):
			return "", fileError(folder, err)
		}
	}
	return ".gitea/workflows", nil
}

// giteaFiles are the files of init for Gitea and Forgejo; the first is the Policy, the second has
// the secret.
func giteaFiles(folder string) []File {
	return []File{
		{Path: policy.Path, source: "policy.yml", hub: "policy.yml", theirs: true},
		{Path: folder + "/countersign.yml", source: giteaSettle, hub: "caller.yml"},
		{Path: folder + "/countersign-events.yml", source: giteaEvents, hub: "events.yml", theirs: true},
	}
}

// planGitea is Plan for Gitea and Forgejo: the Policy and two workflows, which run the
// program that the runner has.
func (s *Setup) planGitea(tree fs.FS) (files []Planned, err error) {
	folder, err := giteaFolder(tree, s.Forgejo)
	if err != nil {
		return nil, err
	}
	there := map[string][]byte{}
	for _, file := range giteaFiles(folder) {
		have, err := ReadThere(tree, file.Path)
		if err != nil {
			return nil, err
		}
		there[file.Path] = have
		files = append(files, Planned{File: file, Have: have})
	}
	s.Settings = s.afterLedger(there, files[1].Path)
	Replan(files, s.Settings) // which says whose the Policy is
	return files, nil
}

// nextGitea are the next steps on Gitea and Forgejo (docs/forges.md).
func (r Result) nextGitea() []string {
	folder := path.Dir(r.Files[1].Path)
	return slices.Concat([]string{
		"make an account for the program alone, let it administer " + report.Clean(cmp.Or(r.Forge.Repository, "the repository")) + ", and put a token of it into the repository's secret COUNTERSIGN_TOKEN (docs/forges.md has its scopes). Who may push here can write a workflow that reads that secret: let agents work in forks",
		"name that account in " + policy.Path + ": bots: [LOGIN]",
		"install countersign and Git where the runner's jobs run",
		"git add .github " + folder + ` && git commit -m "` + pullTitle + `" && git push (the files count on the default branch alone)`,
		"protect the branch " + report.Clean(r.Guarded) + ": require the status countersign, and let nobody push",
		"COUNTERSIGN_TOKEN=TOKEN " + r.Again("doctor") + " (says what is missing)",
		"open a pull request: a comment says how to approve it",
		"pull requests that are open already wait for the hourly run, or for a comment that begins with /; your bot runs there once their branch has these files",
	}, r.nextLedger())
}
