package site

import (
	"strconv"

	"github.com/countersign-dev/countersign/report/html"
)

// How many months are drawn, and how: down in pixels; across in per cent of the width, so that letters are
// as large on a narrow screen.
const (
	charted   = 24
	chartHigh = 190
	chartFoot = 170 // where 0 is
	chartTop  = 14  // where the highest mark of the axis is
	named     = 4   // how many months are named at most
	slots     = 6   // how many have a place at least
)

// outcomeClasses are the colours in a chart, by outcome.
var outcomeClasses = [outcomes]string{"chart-waits", "chart-good", "chart-bad", "chart-over", "chart-broken"}

// chart draws the newest months as bars, one on the other, beside an axis.
func chart(months []monthCount) *html.Body {
	months = months[max(0, len(months)-charted):]
	if len(months) == 0 {
		return html.Part("<p>There are no transactions.</p>\n")
	}
	d := new(html.Body)
	label := func(x string, y int, anchor, text string) {
		d.Put("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>", x, y, anchor, text)
	}
	most, sum := 0, counts{}
	for _, m := range months {
		most = max(most, m.sum())
		for o, n := range m.counts {
			sum[o] += n
		}
	}
	step := tick(most)
	top := (most + step - 1) / step * step
	high := func(n int) int { return (chartFoot - chartTop) * n / top }
	last := months[len(months)-1]
	d.Put("<div class=\"chart\" role=\"img\" aria-label=\"Changes by month, from {} to {}, at most {} in a month. The list of all changes has the numbers.\">\n", months[0].name, last.name, most)
	d.Put("<svg width=\"100%\" height=\"{}\">", chartHigh)
	for n := 0; n <= top; n += step {
		label("90%", chartFoot-high(n)+4, "end", strconv.Itoa(n))
	}
	d.Put("</svg>\n<svg width=\"100%\" height=\"{}\">", chartHigh)
	for n := 0; n <= top; n += step {
		d.Put("<line x2=\"100%\" y1=\"{}\" y2=\"{}\"/>", chartFoot-high(n), chartFoot-high(n))
	}
	places := max(len(months), slots)
	every := (len(months) + named - 1) / named
	for i, m := range months {
		y := chartFoot
		for o, n := range m.counts {
			if n > 0 {
				bar := max(high(n), 1) // what is there is seen
				y -= bar
				d.Put("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>", outcomeClasses[o], slot(10*i+1, places), y, slot(8, places), bar)
			}
		}
		switch {
		case i == len(months)-1 && every > 1:
			label("100%", chartHigh-4, "end", m.name)
		case (len(months)-1-i)%every == 0:
			label(slot(10*i+5, places), chartHigh-4, "middle", m.name)
		}
	}
	d.Markup("</svg>\n</div>\n<ul class=\"legend\">")
	for o, n := range sum {
		if n > 0 {
			d.Put("<li><svg aria-hidden=\"true\" width=\"12\" height=\"12\"><rect width=\"12\" height=\"12\" class=\"{}\"/></svg> {}</li>", outcomeClasses[o], standings[o].words)
		}
	}
	return d.Markup("</ul>\n")
}

// tick is the distance of the marks of an axis up to a number: 1, 2 or 5, or ten or a hundred times that,
// and so on, for at most five of them.
func tick(most int) int {
	for unit := 1; ; unit *= 10 {
		for _, step := range []int{unit, 2 * unit, 5 * unit} {
			if step*5 >= most {
				return step
			}
		}
	}
}

// slot is so many tenths of the width that each of the months has.
func slot(tenths, months int) string {
	return strconv.FormatFloat(10*float64(tenths)/float64(months), 'f', 2, 64) + "%"
}
