package signed

import (
	"regexp"
	"time"

	"github.com/countersign-dev/countersign/pipeline/lazyregexp"
)

var registeredLine = lazyregexp.New(`^github:(\S+) namespaces="` + regexp.QuoteMeta(Namespace) + `",valid-after="([0-9]{14}Z)" (\S+ \S+)$`)

// IsRegistered reports whether a line is one that With would have added for a key of an
// account. That the forge had it, the line alone does not tell.
func (k Keys) IsRegistered(line string) bool {
	part := registeredLine().FindStringSubmatch(line)
	if part == nil || k.Allowed.HasLine(line) {
		return false
	}
	since, err := time.Parse("20060102150405Z", part[2])
	return err == nil && k.With(map[string][]Registered{part[1]: {{Key: part[3], Since: since}}}, since).Allowed.HasLine(line)
}
