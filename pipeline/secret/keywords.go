package secret

// keywords finds many literals in one pass over a text, without regard to the
// case of ASCII letters (Aho and Corasick, 1975, with every transition filled
// in). Its cost is the text's length, whatever the text.
type keywords struct {
	class   [256]uint8
	classes int
	next    []int32    // state*classes + class
	out     [][]uint16 // literals that end in a state
	sizes   []int
}

// newKeywords numbers the literals in the order given.
func newKeywords(literals []string) *keywords {
	k := &keywords{classes: 1}
	most := 1 // states
	for _, l := range literals {
		k.sizes = append(k.sizes, len(l))
		most += len(l)
		for i := range len(l) {
			if k.class[l[i]] == 0 {
				k.class[lower(l[i])], k.class[upper(l[i])] = uint8(k.classes), uint8(k.classes)
				k.classes++
			}
		}
	}
	// Room for the most states there can be: pages that nothing touches take no memory.
	k.next, k.out = make([]int32, most*k.classes), make([][]uint16, most)
	states := int32(1)
	for id, l := range literals {
		state := int32(0)
		for i := range len(l) {
			to := &k.next[int(state)*k.classes+int(k.class[l[i]])]
			if *to == 0 {
				*to = states
				states++
			}
			state = *to
		}
		k.out[state] = append(k.out[state], uint16(id))
	}
	k.next, k.out = k.next[:int(states)*k.classes], k.out[:states]
	k.link()
	return k
}

// link replaces every missing transition by that of the longest proper suffix.
func (k *keywords) link() {
	fail := make([]int32, len(k.out))
	queue := []int32{0}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		for c := range k.classes {
			at := int(state)*k.classes + c
			child, back := k.next[at], k.next[int(fail[state])*k.classes+c]
			if child == 0 {
				k.next[at] = back
				continue
			}
			if state != 0 {
				fail[child] = back
			}
			k.out[child] = append(k.out[child], k.out[fail[child]]...)
			queue = append(queue, child)
		}
	}
}

// scan calls hit for each occurrence, in the order of their ends, until hit
// says false.
func (k *keywords) scan(text []byte, hit func(id uint16, start, end int) bool) {
	state := int32(0)
	for i, c := range text {
		state = k.next[int(state)*k.classes+int(k.class[c])]
		for _, id := range k.out[state] {
			if !hit(id, i+1-k.sizes[id], i+1) {
				return
			}
		}
	}
}

// in reports whether any literal occurs in text.
func (k *keywords) in(text []byte) bool {
	found := false
	k.scan(text, func(uint16, int, int) bool {
		found = true
		return false
	})
	return found
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}
