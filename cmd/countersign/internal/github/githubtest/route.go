package githubtest

import (
	"net/http"
	"net/url"
	"strings"
)

// find returns the operation of a request, and sets the values of its path. Of
// several it is the one whose template says most: "comments" before "{number}".
// http.ServeMux takes some of GitHub's templates for ambiguous.
func find(operations []operation, r *http.Request) (operation, bool) {
	parts := strings.Split(r.URL.EscapedPath(), "/")
	best, most := operation{}, -1
	for _, o := range operations {
		if n := likeness(strings.Split(o.path, "/"), parts); o.method == r.Method && n > most {
			best, most = o, n
		}
	}
	for i, part := range strings.Split(best.path, "/") {
		if name, ok := parameterName(part); ok {
			value, _ := url.PathUnescape(parts[i])
			r.SetPathValue(name, value)
		}
	}
	return best, most >= 0
}

// likeness is how many parts of a path are as in a template, -1 if it does not
// match.
func likeness(template, parts []string) int {
	if len(template) != len(parts) {
		return -1
	}
	n := 0
	for i, part := range template {
		if _, ok := parameterName(part); ok && parts[i] != "" {
			continue
		}
		if part != parts[i] {
			return -1
		}
		n++
	}
	return n
}

func parameterName(part string) (string, bool) {
	return strings.Trim(part, "{}"), strings.HasPrefix(part, "{")
}
