package githubtest

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// keyed is a node of a connection, with the number that its cursor is.
type keyed struct {
	key  int64
	node *node
}

func cursor(key int64) string {
	return base64.StdEncoding.EncodeToString([]byte("cursor:" + strconv.FormatInt(key, 10)))
}

func fromCursor(v any) (int64, bool) {
	text, _ := v.(string)
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || text == "" {
		return 0, false
	}
	key, err := strconv.ParseInt(strings.TrimPrefix(string(data), "cursor:"), 10, 64)
	return key, err == nil
}

// connection pages through all, whose keys rise.
func connection(kind string, all []keyed) resolver {
	return func(arguments map[string]any) any {
		from, to := 0, len(all)
		if after, ok := fromCursor(arguments["after"]); ok {
			from = firstFrom(all, after+1)
		} else if arguments["after"] != nil && arguments["after"] != "" {
			return fieldProblem{"INVALID_CURSOR_ARGUMENTS", "`" + word(arguments["after"]) + "` does not appear to be a valid cursor."}
		}
		if before, ok := fromCursor(arguments["before"]); ok {
			to = firstFrom(all, before)
		}
		if first, ok := number(arguments["first"]); ok {
			to = min(to, from+first)
		} else if last, ok := number(arguments["last"]); ok {
			from = max(from, to-last)
		}
		return connected(kind, all, from, max(from, to))
	}
}

// word is a string, "" for anything else.
func word(v any) string {
	s, _ := v.(string)
	return s
}

func firstFrom(all []keyed, key int64) int {
	i := slices.IndexFunc(all, func(k keyed) bool { return k.key >= key })
	if i < 0 {
		return len(all)
	}
	return i
}

func connected(kind string, all []keyed, from, to int) *node {
	nodes := []*node{}
	for _, k := range all[from:to] {
		nodes = append(nodes, k.node)
	}
	info := &node{"PageInfo", object{"hasNextPage": to < len(all), "hasPreviousPage": from > 0, "startCursor": nil, "endCursor": nil}}
	if from < to {
		info.fields["startCursor"], info.fields["endCursor"] = cursor(all[from].key), cursor(all[to-1].key)
	}
	return &node{kind, object{"totalCount": len(all), "nodes": nodes, "pageInfo": info}}
}

// inOrder gives nodes the keys 1, 2, 3.
func inOrder(nodes []*node) []keyed {
	var all []keyed
	for i, n := range nodes {
		all = append(all, keyed{int64(i + 1), n})
	}
	return all
}
