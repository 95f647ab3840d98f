package linediff

import "bytes"

// Lines splits data after each LF. The last line may lack its LF; empty data has
// no lines. The lines are parts of data, nothing is copied.
func Lines(data []byte) [][]byte {
	if len(data) == 0 {
		return nil
	}
	lines := make([][]byte, 0, bytes.Count(data, []byte("\n"))+1)
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n') + 1
		if end == 0 {
			end = len(data)
		}
		lines = append(lines, data[:end:end])
		data = data[end:]
	}
	return lines
}

// number gives equal lines of a and b the same number and others different
// ones, so that they compare fast.
func number(a, b [][]byte) (old, new []int32) {
	seen := make(map[string]int32)
	return numbers(seen, a), numbers(seen, b)
}

func numbers(seen map[string]int32, lines [][]byte) []int32 {
	out := make([]int32, len(lines))
	for i, line := range lines {
		n, ok := seen[string(line)]
		if !ok {
			n = int32(len(seen))
			seen[string(line)] = n
		}
		out[i] = n
	}
	return out
}
