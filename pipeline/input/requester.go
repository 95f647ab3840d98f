package input

import (
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Named is the requester that somebody names: by a login, or by the address of a Git identity.
func Named(name, source string) ledger.Requester {
	who := ledger.Actor{Kind: "user", Login: strings.TrimPrefix(name, "@")}
	if strings.Contains(who.Login, "@") {
		who.ID = "local:" + strings.ToLower(who.Login)
	}
	return ledger.Requester{Actor: who, Source: source}
}

// NamedAll are those that somebody names, or an error if that is nobody, or too many.
func NamedAll(names []string, source string) (all []ledger.Requester, err error) {
	for _, name := range names {
		all = append(all, Named(name, source))
	}
	all = ledger.SortRequesters(all)
	if err = ledger.CheckRequesters(all); err == nil && len(all) > ledger.MaxRequesters {
		err = fmt.Errorf("names %d people, more than %d, as who asked for it", len(all), ledger.MaxRequesters)
	}
	return all, err
}
