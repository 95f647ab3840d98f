package secret

// Work is what one round over a text costs.
type Work struct{ Size, Views, Decoded, Steps, Exprs int }

// Measure runs one round over s.
func (f *Finder) Measure(s string) Work {
	src := plainText{f.rules(), []byte(s)}
	hidden := src.markers()
	size := 0
	for _, v := range src.views(hidden) {
		size += len(v.text)
	}
	w := newWork(src, f.rules(), hidden)
	w.round(f.known)
	views := 0
	for _, v := range w.expand(src.views(hidden)) {
		views += len(v.text)
	}
	return Work{
		Size: size, Views: views,
		Decoded: freeWork + bytesPerByte*size - w.bytes,
		Steps:   freeWork + stepsPerByte*size - w.steps,
		Exprs:   freeWork + exprsPerByte*size - w.exprs,
	}
}
