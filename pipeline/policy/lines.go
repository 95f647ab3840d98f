package policy

import "fmt"

// Lines are the lines, from 1, at which the parts of a Policy's file begin, by the
// names that Explain gives them: its members, such as "approvals", and each rule of
// protected, such as "protected[0]". Of a file that cannot be read there are none.
func Lines(raw []byte) map[string]int {
	lines := map[string]int{}
	root, ok := new(reader).document(raw)
	if !ok {
		return lines
	}
	for i, key := range root.keys {
		lines[key.text] = key.mark.line
		for j, value := range root.values[i].values {
			if root.values[i].kind == isSequence {
				lines[fmt.Sprintf("%s[%d]", key.text, j)] = value.mark.line
			}
		}
	}
	return lines
}
