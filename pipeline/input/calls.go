package input

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// members are the names that the members of a call have in the tools that are known, and
// what they are here; "" is one that changes nothing.
var members = map[string]string{
	"file_path": "path", "filePath": "path", "path": "path",
	"old_string": "old", "oldString": "old", "old_text": "old", "oldText": "old", "old_str": "old",
	"new_string": "new", "newString": "new", "new_text": "new", "newText": "new", "new_str": "new",
	"content": "content", "file_text": "content",
	"replace_all": "all", "replaceAll": "all",
	"edits": "edits", "input": "input", "arguments": "input", "dryRun": "dry",
	"name": "", "command": "", "type": "", "id": "",
}

// Calls reads calls of edit tools as JSON: an object, an array of them, or one a line.
// Paths that begin with root, the directory that the tool ran in, are below it; other
// absolute paths are an error.
func Calls(raw []byte, root string) ([]Edit, error) {
	calls, err := documents(raw)
	if err != nil {
		return nil, err
	}
	var out []Edit
	for _, c := range calls {
		made, err := readCall(c, root, "")
		if err != nil {
			e := &patch.Error{}
			errors.As(err, &e)
			e.Message = fmt.Sprintf("edit %d: %v", len(out)+1, err)
			return nil, e
		}
		out = append(out, made...)
	}
	for i := range out {
		out[i].number = i + 1
	}
	if len(out) == 0 {
		return nil, &patch.Error{Message: "it holds no call of an edit tool"}
	}
	return out, nil
}

// documents are the calls of one document, or of one a line.
func documents(raw []byte) ([]any, error) {
	doc, err := canon.Parse(raw)
	if object, is := doc.(map[string]any); is && len(object) == 1 && object["edits"] != nil {
		doc = object["edits"] // each names its file
	}
	if all, is := doc.([]any); is {
		return all, nil
	}
	if err == nil {
		return []any{doc}, nil
	}
	var out []any
	number := 0
	for line := range bytes.Lines(raw) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		doc, failed := canon.Parse(line)
		switch {
		case failed != nil && len(out) == 0:
			return nil, &patch.Error{Message: err.Error()} // it is no line of several
		case failed != nil:
			return nil, &patch.Error{Line: number, Message: failed.Error()}
		}
		out = append(out, doc)
	}
	return out, nil
}

// readCall reads one call. of is the file of the call that it is a part of.
func readCall(doc any, root, of string) ([]Edit, error) {
	got, err := kinds(doc)
	if err != nil {
		return nil, err
	}
	if inner, is := got["input"]; is {
		if len(got) > 1 || of != "" {
			return nil, errors.New("it is within another call")
		}
		if text, isText := inner.(string); isText {
			if inner, err = canon.Parse([]byte(text)); err != nil {
				return nil, err
			}
		}
		if o, is := inner.(map[string]any); is && (o["input"] != nil || o["arguments"] != nil) {
			return nil, errors.New("it is within another call")
		}
		return readCall(inner, root, of)
	}
	e := Edit{Path: of}
	for _, text := range []struct {
		kind string
		to   *string
	}{{"path", &e.Path}, {"old", &e.Old}, {"new", &e.New}, {"content", &e.New}} {
		if value, is := got[text.kind]; is {
			s, is := value.(string)
			if !is || !utf8.ValidString(s) {
				return nil, fmt.Errorf("its %s is not a text", text.kind)
			}
			*text.to = s
		}
	}
	if value, is := got["all"]; is {
		if e.All, is = value.(bool); !is {
			return nil, errors.New("replace_all is neither true nor false")
		}
	}
	if e.Path, err = below(e.Path, root); err != nil {
		return nil, err
	}
	var has []string
	for _, kind := range []string{"old", "new", "content", "edits"} {
		if _, is := got[kind]; is {
			has = append(has, kind)
		}
	}
	switch {
	case e.Path == "":
		return nil, errors.New("it names no file")
	case of != "" && e.Path != of:
		return nil, errors.New("a part of it names another file")
	case slices.Equal(has, []string{"content"}) && got["all"] == nil:
		e.Whole = true
		return []Edit{e}, nil
	case slices.Equal(has, []string{"old", "new"}):
		return []Edit{e}, nil
	case slices.Equal(has, []string{"edits"}) && got["all"] == nil && of == "":
		return several(got["edits"], root, e.Path)
	}
	return nil, errors.New("it needs a text to look for and one to put in its place, or the whole content, or edits")
}

// kinds are the members of a call that say what it does, each under the name of its kind.
func kinds(doc any) (map[string]any, error) {
	object, is := doc.(map[string]any)
	if !is {
		return nil, errors.New("it is not a JSON object")
	}
	got := map[string]any{}
	for key, value := range object {
		kind, known := members[key]
		if _, twice := got[kind]; !known || twice && kind != "" {
			return nil, fmt.Errorf("its member %+q is not known, or there under another name too", clip(key))
		}
		got[kind] = value
	}
	if dry, is := got["dry"]; is && dry != false {
		return nil, errors.New("it is a dry run, which changes nothing")
	}
	delete(got, "dry")
	delete(got, "")
	return got, nil
}

// several are the edits that one call makes to a file.
func several(doc any, root, of string) (out []Edit, err error) {
	parts, _ := doc.([]any)
	if len(parts) == 0 {
		return nil, errors.New("its edits are no list of some")
	}
	for _, part := range parts {
		made, err := readCall(part, root, of)
		if err != nil {
			return nil, err
		}
		out = append(out, made...)
	}
	return out, nil
}

// below is a path from root on. Tools on Windows write backslashes, which no path has here, and
// editors addresses.
func below(name, root string) (string, error) {
	given := name
	if rest, is := strings.CutPrefix(name, "file://"); is {
		var err error
		if name, err = url.PathUnescape(rest); err != nil {
			return "", fmt.Errorf("%+q is no address of a file", clip(given))
		}
		if drive().MatchString(strings.TrimPrefix(name, "/")) {
			name = name[1:]
		}
	}
	name = strings.ReplaceAll(name, `\`, "/")
	if !strings.HasPrefix(name, "/") && !drive().MatchString(name) {
		return strings.TrimPrefix(name, "./"), nil
	}
	top := strings.TrimSuffix(root, "/") + "/"
	if root == "" || len(name) < len(top) || name[:len(top)] != top && (name[0] == '/' || !strings.EqualFold(name[:len(top)], top)) || path.Clean("/"+name[len(top):]) != "/"+name[len(top):] {
		return "", &patch.Error{Message: fmt.Sprintf("%+q is not below the repository", clip(given)), Try: "name the file from the top of the repository, such as docs/FILE"}
	}
	return name[len(top):], nil
}

// drive begins an absolute path of Windows.
var drive = canon.Regexp(`^[A-Za-z]:/`)

func clip(text string) string { return text[:min(len(text), 80)] }
