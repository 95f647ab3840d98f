package githubtest

import "slices"

// roles are GitHub's own, the least first.
var roles = []string{"none", "read", "triage", "write", "maintain", "admin"}

// atLeast reports whether a role includes another.
func atLeast(role, least string) bool {
	return slices.Index(roles, role) >= slices.Index(roles, least)
}

// legacy is the role as the field "permission" tells it.
func legacy(role string) string {
	switch role {
	case "maintain":
		return "write"
	case "triage":
		return "read"
	}
	return role
}

// Role gives an account a role in a repository: admin, maintain, write, triage,
// read, none, or a custom role's name.
func (s *Server) Role(repository, login, role string) {
	defer s.lock()()
	r := s.repo(repository)
	if !slices.Contains(roles, role) && r.custom[role] == "" {
		misuse("no role %s in %s", role, repository)
	}
	r.roles[s.account(login).id] = role
}

// CustomRole adds a role to a repository that is based on one of GitHub's own.
func (s *Server) CustomRole(repository, name, base string) {
	defer s.lock()()
	s.repo(repository).custom[name] = base
}

// roleName is the name of an account's role in a repository.
func (s *Server) roleName(r *repository, a *account) string {
	role, ok := r.roles[a.id]
	switch {
	case a == r.owner:
		return "admin"
	case ok && role != "none":
		return role
	case r.private:
		return "none"
	}
	return "read"
}

// permission is an account's role, a custom one reduced to its base.
func (s *Server) permission(r *repository, a *account) string {
	name := s.roleName(r, a)
	if base := r.custom[name]; base != "" {
		return base
	}
	return name
}
