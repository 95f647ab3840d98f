package site

import (
	"fmt"
	"strconv"
)

// How many months are drawn, and how.
const (
	charted     = 24
	chartWidth  = 960
	chartHeight = 220
	chartFoot   = 24 // where the months stand
	chartSide   = 56 // where the scale stands
)

// outcomeClasses are the colours in a chart, by outcome.
var outcomeClasses = [outcomes]string{"chart-good", "chart-waits", "chart-bad", "chart-over", "chart-broken"}

// chart draws the newest months as bars, one on the other. The table below it has the numbers.
func (d *doc) chart(months []monthCount) {
	months = months[max(0, len(months)-charted):]
	if len(months) == 0 {
		d.paragraph(func() { d.Text("There are no transactions.") })
		return
	}
	top := 1
	for _, m := range months {
		top = max(top, m.sum())
	}
	last := months[len(months)-1]
	d.Markup("<svg class=\"chart\" role=\"img\"").Attribute("aria-label", fmt.Sprintf(
		"Transactions by month, from %s to %s, at most %d in a month. The table below has the numbers.", months[0].name(), last.name(), top,
	)).Attribute("viewBox", fmt.Sprintf("0 0 %d %d", chartWidth, chartHeight)).Markup(">\n")
	bars := chartHeight - chartFoot - 16 // the highest one
	d.label(chartSide-8, 20, "end", strconv.Itoa(top))
	d.label(chartSide-8, chartHeight-chartFoot, "end", "0")
	step := (chartWidth - chartSide) / max(len(months), 6)
	for i, m := range months {
		x, y := chartSide+i*step, chartHeight-chartFoot
		drawn := 0
		for o, n := range m.counts {
			drawn += n
			height := y - (chartHeight - chartFoot - bars*drawn/top)
			if n == 0 {
				continue
			}
			if height == 0 {
				height = 1 // what is there is seen
			}
			y -= height
			d.Markup("<rect").Attribute("class", outcomeClasses[o])
			d.Attribute("x", strconv.Itoa(x)).Attribute("y", strconv.Itoa(y)).Attribute("width", strconv.Itoa(step*4/5)).Attribute("height", strconv.Itoa(height)).Markup("/>")
		}
		if len(months) <= 12 || (len(months)-1-i)%3 == 0 {
			d.label(x+step*2/5, chartHeight-6, "middle", m.name())
		}
	}
	d.Markup("\n</svg>\n<ul class=\"legend\">")
	for o, words := range outcomeWords {
		d.Markup("<li><svg class=\"chart\" aria-hidden=\"true\" width=\"12\" height=\"12\"><rect width=\"12\" height=\"12\"").Attribute("class", outcomeClasses[o]).Markup("/></svg> ").Text(words).Markup("</li>")
	}
	d.Markup("</ul>\n")
}

func (d *doc) label(x, y int, anchor, text string) {
	d.Markup("<text").Attribute("x", strconv.Itoa(x)).Attribute("y", strconv.Itoa(y)).Attribute("text-anchor", anchor).Markup(">").Text(text).Markup("</text>")
}
