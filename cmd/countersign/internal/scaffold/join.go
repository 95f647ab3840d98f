package scaffold

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// An addition is a value that init puts into a JSON file of the owner's.
type addition struct {
	path  []string // the members that lead to it
	value string   // JSON in one line
	mark  string   // the value is an element of a list, and what has this text there is an older form of it
	usual bool     // any other value does as well
}

// joinJSON makes the additions to a file, nil for none. All else stays as it is, byte for byte.
func joinJSON(have []byte, additions []addition) (want []byte, state string, err error) {
	want, state = have, Same
	if have == nil {
		want = []byte("{}\n")
	}
	for _, a := range additions {
		var one string
		if want, one, err = a.join(want); err != nil {
			return nil, "", err
		}
		if one == Differs || one == Joined && state == Same {
			state = one
		}
	}
	if have == nil {
		state = Missing
	}
	return want, state, nil
}

// join puts the value in its place, and says whether it was there, and as it is to be.
func (a addition) join(text []byte) (want []byte, state string, err error) {
	value, err := canon.Parse(text)
	if err != nil {
		return nil, "", err
	}
	line := a.value
	if a.mark != "" {
		line = "[" + line + "]"
	}
	place := member{to: len(text)}
	for i, name := range a.path {
		holder, is := value.(map[string]any)
		if !is && i == 0 {
			return nil, "", errors.New("it is no object")
		}
		if !is {
			return nil, "", errors.New(strings.Join(a.path[:i], ".") + " is no object")
		}
		members := membersOf(text, place.from)
		inner, there := holder[name]
		if !there {
			for _, outer := range slices.Backward(a.path[i+1:]) {
				line = fmt.Sprintf("{%q: %s}", outer, line)
			}
			return insert(text, members, fmt.Sprintf("%q: %s", name, line)), Joined, nil
		}
		value, place = inner, members.at(name)
	}
	ours, err := canon.Parse([]byte(a.value))
	if err != nil {
		panic("init: " + err.Error())
	}
	if a.mark != "" {
		return a.joinList(text, value, place, ours)
	}
	switch name := a.path[len(a.path)-1]; {
	case a.usual || reflect.DeepEqual(value, ours):
		return text, Same, nil
	case name != serverName: // which is ours to write over
		return nil, "", fmt.Errorf("%s is yours, and not %s", strings.Join(a.path, "."), a.value)
	}
	return splice(text, place.from, place.to, a.value), Differs, nil
}

// joinList puts the value into a list, in the place of an older form of it or behind all others.
func (a addition) joinList(text []byte, value any, place member, ours any) (want []byte, state string, err error) {
	list, is := value.([]any)
	if !is {
		return nil, "", errors.New(strings.Join(a.path, ".") + " is no list")
	}
	elements := elementsOf(text, place.from)
	for i, element := range elements.members {
		switch {
		case holds(list[i], ours):
			return text, Same, nil
		case !bytes.Contains(text[element.from:element.to], []byte(a.mark)):
		case holdsMore(list[i], ours):
			return nil, "", fmt.Errorf("%s has something of yours in one element with %q: give that one of its own", strings.Join(a.path, "."), a.mark)
		default:
			return splice(text, element.from, element.to, a.value), Differs, nil
		}
	}
	return insert(text, elements, a.value), Joined, nil
}

// holds reports whether a value is ours, or an object that has the members of ours, and in its lists the elements of ours.
func holds(value, ours any) bool {
	have, is := value.(map[string]any)
	want, one := ours.(map[string]any)
	if !is || !one {
		return reflect.DeepEqual(value, ours)
	}
	for name := range want {
		listed, is := have[name].([]any)
		elements, list := want[name].([]any)
		if !is || !list {
			if !reflect.DeepEqual(have[name], want[name]) {
				return false
			}
			continue
		}
		for _, e := range elements {
			if !slices.ContainsFunc(listed, func(has any) bool { return reflect.DeepEqual(has, e) }) {
				return false
			}
		}
	}
	return true
}

// holdsMore reports whether an older form of ours has members or elements that it never had.
func holdsMore(value, ours any) bool {
	have, _ := value.(map[string]any)
	want, _ := ours.(map[string]any)
	for name := range have {
		listed, _ := have[name].([]any)
		elements, _ := want[name].([]any)
		if _, ours := want[name]; !ours || len(listed) > len(elements) {
			return true
		}
	}
	return false
}

// A member is where the value of an object's member is.
type member struct {
	name     string
	from, to int
}

// An object is where an object or a list is in a text, from its brace, and where its members are.
type object struct {
	from    int
	members []member
}

// membersOf reads the object that begins at a place in valid JSON, after any white space.
func membersOf(text []byte, from int) object { return partsOf(text, from, '{') }

// elementsOf reads the list that begins there; its elements have no names.
func elementsOf(text []byte, from int) object { return partsOf(text, from, '[') }

func partsOf(text []byte, from int, brace byte) object {
	from += bytes.IndexByte(text[from:], brace)
	d := json.NewDecoder(bytes.NewReader(text[from:]))
	_, err := d.Token()
	o := object{from: from}
	for err == nil && d.More() {
		var name json.Token = ""
		var value json.RawMessage
		if brace == '{' {
			name, err = d.Token()
		}
		if err == nil {
			err = d.Decode(&value)
		}
		if err == nil {
			to := from + int(d.InputOffset())
			o.members = append(o.members, member{name.(string), to - len(value), to})
		}
	}
	if err != nil {
		panic("init: " + err.Error()) // it is valid
	}
	return o
}

// at is where the value of a member is that there is.
func (o object) at(name string) member {
	for _, m := range o.members {
		if m.name == name {
			return m
		}
	}
	panic("init: no member " + name)
}

// insert adds a member behind the others of an object, on a line of its own where they have
// theirs.
func insert(text []byte, o object, line string) []byte {
	if len(o.members) > 0 {
		space := leading(text[o.from+1:])
		if !strings.Contains(space, "\n") {
			space = " "
		}
		last := o.members[len(o.members)-1].to
		return splice(text, last, last, ","+space+line)
	}
	begin := text[bytes.LastIndexByte(text[:o.from], '\n')+1 : o.from]
	outer := strings.Trim(leading(begin), "\r\n")
	end := lineEnd(text)
	closing := o.from + 1 + len(leading(text[o.from+1:]))
	return splice(text, o.from+1, closing, end+outer+"  "+line+end+outer)
}

// leading is the white space of JSON that a text begins with.
func leading(text []byte) string {
	return string(text[:len(text)-len(bytes.TrimLeft(text, " \t\r\n"))])
}

// lineEnd is what ends the lines of a text.
func lineEnd(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

func splice(text []byte, from, to int, with string) []byte {
	return append(append(append([]byte{}, text[:from]...), with...), text[to:]...)
}

// A section is a part of a text file of the owner's that init writes, between two lines of its own.
type section struct {
	begin, end string
	head       string // what a new file begins with
	text       string
}

// join puts the section into a file, nil for none, once.
func (s section) join(have []byte) (want []byte, state string, err error) {
	all := s.begin + "\n" + s.text + s.end + "\n"
	if have == nil {
		return []byte(s.head + all), Missing, nil
	}
	text, end := string(have), lineEnd(have)
	all = strings.ReplaceAll(all, "\n", end)
	from, to := strings.Index(text, s.begin), strings.Index(text, s.end)
	switch {
	case from < 0 && to < 0:
		gap := ""
		if text != "" && !strings.HasSuffix(text, "\n") {
			gap = end
		}
		if text != "" {
			gap += end
		}
		return []byte(text + gap + all), Joined, nil
	case from < 0 || to < from || strings.Count(text, s.begin) > 1 || strings.Count(text, s.end) > 1:
		return nil, "", fmt.Errorf("the lines around the section are not there once each, in order: %s and %s", s.begin, s.end)
	}
	to += len(s.end)
	all = strings.TrimRight(all, "\r\n")
	if text[from:to] == all {
		return have, Same, nil
	}
	return []byte(text[:from] + all + text[to:]), Differs, nil
}
