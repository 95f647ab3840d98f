package policy

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

// maxRecorded bounds the bytes that Decode reads. It is beyond what JSON writes
// of two files of maxBytes that were joined.
const maxRecorded = 4 << 20

// Decode reads what JSON wrote, and nothing else: of a file, or of what Tighten
// made of two, which together may be longer than one file can be. The error
// tells what is wrong by key; there are no lines.
func Decode(raw []byte) (Policy, error) {
	if len(raw) > maxRecorded {
		return Policy{}, fmt.Errorf("a recorded Policy of %d bytes, more than %d", len(raw), maxRecorded)
	}
	doc, err := canon.Parse(raw)
	if err != nil {
		return Policy{}, fmt.Errorf("a recorded Policy: %w", err)
	}
	r := &reader{file: "recorded", joined: true}
	p := Default()
	r.policy(jsonNode(doc), &p)
	if err := r.problems.err(); err != nil {
		return Policy{}, err
	}
	if !bytes.Equal(p.JSON(), raw) {
		return Policy{}, errors.New("a recorded Policy that this program would write otherwise")
	}
	return p, nil
}

// jsonNode is a node of a parsed JSON document.
func jsonNode(v any) node {
	n := node{mark: mark{1, 1}, kind: isOther}
	switch v := v.(type) {
	case nil:
		n.kind = isNull
	case bool:
		n.kind, n.text = isBool, fmt.Sprint(v)
	case string:
		n.kind, n.text = isText, v
	case float64:
		n.kind, n.text = isInteger, fmt.Sprintf("%.0f", v)
	case []any:
		n.kind = isSequence
		for _, one := range v {
			n.values = append(n.values, jsonNode(one))
		}
	case map[string]any:
		n.kind = isMapping
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n.keys = append(n.keys, node{kind: isText, text: key, mark: n.mark})
			n.values = append(n.values, jsonNode(v[key]))
		}
	}
	return n
}
