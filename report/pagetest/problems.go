//go:build browser

package pagetest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Rules are what a page may do.
type Rules struct {
	// Scripts are the endings of the addresses of the scripts that the page may run.
	Scripts []string
	// Below is how all addresses begin that the page may ask for; its own may be asked for anyway.
	Below string
	// Screen is a CSS selector of what need not be on paper.
	Screen string
}

// Problems looks at a page as people do (light and dark, on a phone, in a window of 80 columns, on paper, with
// a keyboard alone, by a screen reader) and returns what is wrong with it.
func (b *Browser) Problems(t testing.TB, address string, rules Rules) []string {
	t.Helper()
	wide := b.Open(t, address, Look{})
	defer wide.Close()
	found := prefix("light", append(wide.Strange(address, rules), wide.Violations()...))
	found = append(found, prefix("keyboard", wide.keyboard())...)
	dark := Look{Width: 375, Height: 812, Dark: true}
	phone := b.Open(t, address, dark)
	defer phone.Close()
	found = append(found, prefix("dark, on a phone", append(phone.Strange(address, rules), phone.Violations()...))...)
	for _, width := range []int{320, 375, 640} { // the narrowest of WCAG 2.1, 1.4.10; a phone; 80 columns
		phone.Look(Look{Width: width, Height: 800})
		found = append(found, prefix(fmt.Sprintf("%d pixels wide", width), phone.wider(width))...)
	}
	phone.Look(Look{Print: true, Width: 720, Height: 1000})
	found = append(found, prefix("print", append(phone.wider(720), phone.hidden(rules.Screen)...))...)
	if pdf := phone.PDF(); !bytes.HasPrefix(pdf, []byte("%PDF-")) || !bytes.Contains(pdf, []byte("/Type /Page")) {
		found = append(found, fmt.Sprintf("print: no PDF: %.20q", pdf))
	}
	for _, left := range b.Left() {
		found = append(found, "a request left: "+left)
	}
	for _, window := range b.Windows() {
		found = append(found, "a window was opened: "+window)
	}
	slices.Sort(found)
	return found
}

// Everywhere are Violations on a phone, a tablet and a desk, in both colour schemes.
func (p *Page) Everywhere() (found []string) {
	p.t.Helper()
	for _, width := range []int{390, 768, 1440} {
		for _, dark := range []bool{false, true} {
			p.Look(Look{Width: width, Height: 900, Dark: dark})
			found = append(found, prefix(fmt.Sprintf("%d pixels wide, dark %t", width, dark), p.Violations())...)
		}
	}
	return found
}

func prefix(with string, texts []string) []string {
	var out []string
	for _, text := range texts {
		out = append(out, with+": "+text)
	}
	return out
}

// Strange is what a page that runs no script and asks for nothing has not done. Its own address and those below
// rules.Below may be asked for.
func (p *Page) Strange(address string, rules Rules) (out []string) {
	p.t.Helper()
	s := p.Seen()
	for _, r := range s.Requests {
		if r != address && (rules.Below == "" || !strings.HasPrefix(r, rules.Below)) {
			out = append(out, "asked for "+r)
		}
	}
	for _, script := range s.Scripts {
		if !slices.ContainsFunc(rules.Scripts, func(end string) bool { return strings.HasSuffix(script, end) }) {
			out = append(out, "ran a script: "+script)
		}
	}
	out = append(out, prefix("console", s.Console)...)
	out = append(out, prefix("error", s.Errors)...)
	return append(out, prefix("dialog", s.Dialogs)...)
}

// wider names what makes the page wider than the window.
func (p *Page) wider(width int) (found []string) {
	p.t.Helper()
	p.Eval(fmt.Sprintf(`(() => {
		const most = %d, out = [];
		if (document.documentElement.scrollWidth <= most) return out;
		out.push("the page scrolls sideways: it is " + document.documentElement.scrollWidth + " pixels wide");
		const scrolls = e => { for (e = e.parentElement; e; e = e.parentElement) if (getComputedStyle(e).overflowX != "visible") return true; return false };
		for (const e of document.body.querySelectorAll("*")) {
			if (out.length < 5 && e.getBoundingClientRect().right > most + 1 && !scrolls(e)) out.push("too wide: " + e.outerHTML.slice(0, 150));
		}
		return out;
	})()`, width), &found)
	return found
}

// hidden names texts of the page's content that do not show on paper, or are cut off there.
func (p *Page) hidden(screen string) (found []string) {
	p.t.Helper()
	p.Eval(fmt.Sprintf("const screen = %q;", cmp.Or(screen, "nothing"))+`(() => {
		const out = [], walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
		for (let n; n = walk.nextNode();) {
			if (!n.data.trim() || n.parentElement.closest(screen) || n.parentElement.closest("[hidden], noscript") || out.length > 5) continue;
			const range = document.createRange();
			range.selectNodeContents(n);
			const box = range.getBoundingClientRect();
			if (box.width == 0 || box.height == 0 || !n.parentElement.checkVisibility({visibilityProperty: true, opacityProperty: true, contentVisibilityAuto: true})) out.push("does not show: " + n.data.slice(0, 100));
			for (let e = n.parentElement; e; e = e.parentElement)
				if (getComputedStyle(e).overflowX != "visible" && e.scrollWidth > e.clientWidth + 1) out.push("cut off: " + n.data.slice(0, 100));
		}
		return out;
	})()`, &found)
	return found
}

// keyboard goes through the page with the tab key, and names each link and control that it does not
// reach, or that does not show that it has the focus.
func (p *Page) keyboard() (found []string) {
	p.t.Helper()
	var n int
	p.Eval(`(() => {
		const groups = new Set();
		window.stops = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]:not([tabindex='-1'])")].filter(e => {
			if (e.disabled || !e.checkVisibility({visibilityProperty: true})) return false;
			if (e.type != "radio") return true;
			const first = !groups.has(e.name) && e.checked; // the arrow keys go to the others
			if (first) groups.add(e.name);
			return first;
		});
		window.reached = new Set();
		return stops.length;
	})()`, &n)
	for range n + 5 {
		p.Tab()
		var wrong string
		p.Eval(`(() => {
			const e = document.activeElement, i = stops.indexOf(e);
			if (i < 0 || reached.has(i)) return "";
			reached.add(i);
			const style = getComputedStyle(e), box = e.getBoundingClientRect();
			if (style.outlineStyle == "none" || parseFloat(style.outlineWidth) < 2) return "has the focus and does not show it: " + e.outerHTML.slice(0, 150);
			if (box.bottom <= 0 || box.top >= innerHeight || box.right <= 0 || box.left >= innerWidth || box.width == 0) return "has the focus and is out of sight: " + e.outerHTML.slice(0, 150);
			return "";
		})()`, &wrong)
		if wrong != "" {
			found = append(found, wrong)
		}
	}
	var missed []string
	p.Eval(`stops.filter((e, i) => !reached.has(i)).map(e => "is not reached: " + e.outerHTML.slice(0, 150))`, &missed)
	return append(found, missed...)
}
