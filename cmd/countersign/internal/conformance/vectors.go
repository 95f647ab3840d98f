package conformance

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// A Vector is one question and the only right answer (V-2). Input is whole once it was
// read: without like, repeat and join.
type Vector struct {
	ID       string         `json:"id"`
	Class    string         `json:"class"`
	Op       string         `json:"op"`
	Requires []string       `json:"requires"`
	Note     string         `json:"note"`
	Input    map[string]any `json:"input"`
	Like     string         `json:"like,omitempty"`
	Twin     string         `json:"twin,omitempty"`
	Expect   Expectation    `json:"expect"`
}

// Question is the vector as a verifier gets it.
func (v Vector) Question() Question {
	input, err := json.Marshal(v.Input)
	if err != nil {
		panic("conformance: " + err.Error()) // it was read from JSON
	}
	return Question{v.Class, v.ID, input, v.Op}
}

// Read reads all vectors of a directory, in the byte order of their paths (V-1), and
// refuses any that is not of the form of V-2 to V-5.
func Read(dir fs.FS) ([]Vector, error) {
	var files []string
	err := fs.WalkDir(dir, ".", func(name string, e fs.DirEntry, err error) error {
		if ext := path.Ext(name); err == nil && !e.IsDir() && (ext == ".json" || ext == ".jsonl") {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var all []Vector
	known := map[string]Vector{}
	for _, name := range files {
		raw, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		texts := [][]byte{raw}
		if path.Ext(name) == ".jsonl" {
			texts = bytes.Split(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n"))
		}
		for i, text := range texts {
			v, err := parse(text, path.Base(path.Dir(name)))
			if _, twice := known[v.ID]; err == nil && twice {
				err = fmt.Errorf("%s is another vector's id", v.ID)
			}
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
			}
			known[v.ID] = v
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("there are no vectors here")
	}
	for i := range all {
		if err := all[i].complete(known); err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].ID, err)
		}
	}
	return all, nil
}

var vectorID = canon.Regexp(`^[a-z]+-[0-9]{4}$`)

const mostNote = 200

func parse(text []byte, class string) (v Vector, err error) {
	if _, err := canon.Parse(text); err != nil { // a key twice, and what else encoding/json lets pass
		return v, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, err
	}
	switch e := v.Expect; {
	case v.Class != class:
		return v, fmt.Errorf("class %q is in the directory %s", v.Class, class)
	case !vectorID().MatchString(v.ID) || !strings.HasPrefix(v.ID, class+"-"):
		return v, fmt.Errorf("%q is no id", v.ID)
	case v.Op == "" || v.Input == nil || len(v.Requires) == 0 || utf8.RuneCountInString(v.Note) > mostNote:
		return v, fmt.Errorf("%s: op, input or requires is missing, or the note is too long", v.ID)
	case e.Verdict == Accept && (e.Values == nil || e.Rules != nil), e.Verdict == Refuse && e.Values != nil, e.Verdict != Accept && e.Verdict != Refuse:
		return v, fmt.Errorf("%s: expect is not of its form", v.ID)
	case e.Verdict == Refuse && (class == "transaction" || class == "history") != (len(e.Rules) > 0), !slices.IsSorted(e.Rules):
		return v, fmt.Errorf("%s: the rules of a refusal are missing, unsorted, or not of this class", v.ID)
	}
	return v, nil
}

// complete puts together the whole input (V-3).
func (v *Vector) complete(known map[string]Vector) error {
	if twin, ok := known[v.Twin]; v.Twin != "" && (!ok || twin.Expect.Verdict != Accept || v.Expect.Verdict != Refuse) {
		return fmt.Errorf("its twin %q is not there, or not accepted", v.Twin)
	}
	if v.Like != "" {
		base, ok := known[v.Like]
		if !ok || base.Like != "" || base.Class != v.Class || base.Op != v.Op {
			return fmt.Errorf("it is like %q, which is not there, of another class or op, or like another", v.Like)
		}
		v.Input = merge(base.Input, v.Input).(map[string]any)
	}
	whole, err := resolve(v.Input)
	if err != nil {
		return err
	}
	v.Input = whole.(map[string]any)
	return nil
}

// merge is a JSON merge patch (RFC 7396).
func merge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	if before, ok := target.(map[string]any); ok {
		maps.Copy(out, before)
	}
	for name, value := range changes {
		if value == nil {
			delete(out, name)
		} else {
			out[name] = merge(out[name], value)
		}
	}
	return out
}

// resolve replaces repeat and join by what they stand for.
func resolve(value any) (any, error) {
	switch value := value.(type) {
	case map[string]any:
		if raw, made, err := made(value); made || err != nil {
			if err == nil && utf8.Valid(raw) {
				return string(raw), nil
			}
			return map[string]any{"base64": base64.StdEncoding.EncodeToString(raw)}, err
		}
		out := map[string]any{}
		for name, inner := range value {
			whole, err := resolve(inner)
			if err != nil {
				return nil, err
			}
			out[name] = whole
		}
		return out, nil
	case []any:
		out := make([]any, len(value))
		for i := range value {
			var err error
			if out[i], err = resolve(value[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return value, nil
}

const mostMade = 64 << 20

// made is what an object with repeat or join alone stands for.
func made(value map[string]any) (raw []byte, ok bool, err error) {
	text, repeats := value["repeat"].(string)
	times, counted := value["times"].(float64)
	parts, joins := value["join"].([]any)
	switch {
	case repeats && counted && len(value) == 2:
		if times < 0 || times > mostMade || len(text)*int(times) > mostMade {
			return nil, false, errors.New("repeat makes too much")
		}
		return []byte(strings.Repeat(text, int(times))), true, nil
	case joins && len(value) == 1:
		for _, part := range parts {
			whole, err := resolve(part)
			var b Bytes
			if err == nil {
				err = b.from(whole)
			}
			if err != nil {
				return nil, false, err
			}
			if raw = append(raw, b...); len(raw) > mostMade {
				return nil, false, errors.New("join makes too much")
			}
		}
		return raw, true, nil
	}
	return nil, false, nil
}

// Bytes are those of a text, or of {"base64": …}.
type Bytes []byte

// UnmarshalJSON reads one of the two forms.
func (b *Bytes) UnmarshalJSON(raw []byte) error {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	return b.from(value)
}

func (b *Bytes) from(value any) (err error) {
	switch value := value.(type) {
	case string:
		*b = []byte(value)
		return nil
	case map[string]any:
		if encoded, ok := value["base64"].(string); ok && len(value) == 1 {
			*b, err = base64.StdEncoding.Strict().DecodeString(encoded)
			return err
		}
	}
	return errors.New("bytes are neither a text nor base64")
}

// MarshalJSON writes a text where the bytes are one.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if utf8.Valid(b) {
		return json.Marshal(string(b))
	}
	return json.Marshal(map[string]string{"base64": base64.StdEncoding.EncodeToString(b)})
}

// A Path is a text, of which "base64:" begins one that is not UTF-8.
type Path string

// UnmarshalText reads a Path, also as a key.
func (p *Path) UnmarshalText(text []byte) error {
	encoded, ok := strings.CutPrefix(string(text), "base64:")
	if !ok {
		*p = Path(text)
		return nil
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
	*p = Path(raw)
	return err
}

// A File is its content, or that with a mode of six octal digits.
type File struct {
	Mode    string
	Content Bytes
}

// UnmarshalJSON reads one of the two forms.
func (f *File) UnmarshalJSON(raw []byte) error {
	var whole struct {
		Mode    *string `json:"mode"`
		Content Bytes   `json:"content"`
	}
	if err := json.Unmarshal(raw, &whole); err == nil && whole.Mode != nil {
		f.Mode, f.Content = *whole.Mode, whole.Content
		return nil
	}
	f.Mode = "100644"
	return f.Content.UnmarshalJSON(raw)
}

// A Tree is files by their paths.
type Tree map[Path]File
