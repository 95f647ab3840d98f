package githubtest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// page returns the part of a list that a call asks for, with the number of
// items of the whole and the header that leads to the other pages.
func page[T any](c *call, all []T, render func(T) object) ([]object, http.Header) {
	size, number := c.number("per_page", 30), c.number("page", 1)
	size = min(size, 100)
	from := min((number-1)*size, len(all))
	to := min(from+size, len(all))
	items := []object{}
	for _, one := range all[from:to] {
		items = append(items, render(one))
	}
	last := max((len(all)+size-1)/size, 1)
	var links []string
	if number < last {
		links = append(links, c.link(number+1, "next"), c.link(last, "last"))
	}
	if number > 1 {
		links = append(links, c.link(number-1, "prev"), c.link(1, "first"))
	}
	if links == nil {
		return items, nil
	}
	return items, http.Header{"Link": {strings.Join(links, ", ")}}
}

// list answers with a page of a list.
func list[T any](c *call, all []T, render func(T) object) answer {
	items, header := page(c, all, render)
	return answer{http.StatusOK, items, header}
}

// counted answers with a page of a list under a name, beside the whole number.
func counted[T any](c *call, name string, all []T, render func(T) object) answer {
	items, header := page(c, all, render)
	return answer{http.StatusOK, object{"total_count": len(all), name: items}, header}
}

func (c *call) number(name string, otherwise int) int {
	n, err := strconv.Atoi(c.URL.Query().Get(name))
	if err != nil || n < 1 {
		return otherwise
	}
	return n
}

// id is a number of the path, 0 if it is none.
func (c *call) id(name string) int64 {
	n, err := strconv.ParseInt(c.PathValue(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (c *call) link(page int, rel string) string {
	query := c.URL.Query()
	query.Set("page", strconv.Itoa(page))
	return fmt.Sprintf(`<http://%s/api/v3%s?%s>; rel="%s"`, c.Host, c.URL.EscapedPath(), query.Encode(), rel)
}

// text is a string of the request's body, "" if it is not there.
func (c *call) text(name string) string {
	value, _ := c.body[name].(string)
	return value
}
