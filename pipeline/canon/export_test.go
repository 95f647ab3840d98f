package canon

import (
	"bytes"
	"slices"
)

// The definitions that the fast ways are held to.

func UnmarshalSlowly(data []byte, v any) error {
	return unmarshalSlowly(bytes.TrimSuffix(data, []byte("\n")), v)
}

func CompareSlowly(a, b string) int { return slices.Compare(units(a), units(b)) }

// IsSurelyCanonical is IsCanonical without its way out, UnmarshalFast Unmarshal
// without its.

func IsSurelyCanonical(data []byte) bool {
	s := scanner{data: data}
	return s.value(0) && s.pos == len(data)
}

func UnmarshalFast(data []byte, v any) bool {
	return unmarshal(bytes.TrimSuffix(data, []byte("\n")), v)
}
