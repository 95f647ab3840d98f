package rest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

var nameRule = canon.Regexp(`^[A-Za-z0-9._-]+$`)

// SplitRepository splits "owner/name". What passes is safe in an address.
func SplitRepository(s string) (owner, name string, ok bool) {
	owner, name, _ = strings.Cut(s, "/")
	for _, part := range []string{owner, name} {
		if !nameRule().MatchString(part) || part == "." || part == ".." {
			return "", "", false
		}
	}
	return owner, name, true
}

// Address reads the address of an API.
func Address(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, fmt.Errorf("%+q is not the address of an API", s)
	}
	return u, nil
}

// Origin is the scheme, host and port of an address.
func Origin(u *url.URL) string {
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// Path joins parts of an address, each one segment of it. The parts are
// foreign: none may leave its place.
func Path(parts ...string) (string, error) {
	joined := ""
	for _, part := range parts {
		if part == "" || part == "." || part == ".." {
			return "", Unusable("%+q cannot be part of an address", part)
		}
		joined += "/" + url.PathEscape(part)
	}
	return joined[1:], nil
}

var commitRule = canon.Regexp(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// CheckCommit takes whole commit ids only: where a commit is asked for, forges
// also take a branch's name.
func CheckCommit(id string) error {
	if !commitRule().MatchString(id) {
		return Unusable("%+q is not a commit id", id)
	}
	return nil
}

// SortRuns sorts runs by when they ended.
func SortRuns(runs []forge.Run) {
	slices.SortFunc(runs, func(a, b forge.Run) int { return cmp.Or(a.UpdatedAt.Compare(b.UpdatedAt), cmp.Compare(a.ID, b.ID)) })
}

// Twice reads once more if something changed meanwhile.
func Twice[T any](read func() (T, error)) (T, error) {
	got, err := read()
	if IsKind(err, KindChanged) {
		got, err = read()
	}
	return got, err
}

// maxPages bounds a list: it may have 10,000 entries on GitHub, 5,000 elsewhere.
const maxPages = 100

// Pages asks for the pages of a list, by what a query for so many entries a page says, until read reports that nothing more is
// wanted or there.
func Pages(query url.Values, size string, entries int, read func(page int, query url.Values) (more bool, err error)) error {
	asked := url.Values{}
	maps.Copy(asked, query)
	asked.Set(size, strconv.Itoa(entries))
	for page := 1; page <= maxPages; page++ {
		asked.Set("page", strconv.Itoa(page))
		if more, err := read(page, asked); err != nil || !more {
			return err
		}
	}
	return Unusable("there are more than %d pages", maxPages)
}

// Sleep lets time pass.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
