package html

import (
	"strings"
	"sync"
)

// The strings of most languages.
var (
	double   = quote{begin: `"`, end: `"`, escapes: true}
	single   = quote{begin: `'`, end: `'`, escapes: true}
	rune1    = quote{begin: `'`, end: `'`, escapes: true, most: 10}
	backtick = quote{begin: "`", end: "`", lines: true}
	template = quote{begin: "`", end: "`", escapes: true, lines: true}
)

// slashes are the comments of C and its kin.
var slashes = [][2]string{{"/*", "*/"}}

// byName are the languages, by the ends of names and by whole names.
var byName = sync.OnceValue(func() map[string]*language {
	out := map[string]*language{}
	for _, def := range []struct {
		names, words string
		language
	}{
		{"go", "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false iota error string int bool byte rune any",
			language{comment: []string{"//"}, block: slashes, quotes: []quote{double, rune1, backtick}}},
		{"js mjs cjs jsx ts tsx mts", "as async await break case catch class const continue debugger default delete do else enum export extends false finally for from function get if implements import in instanceof interface let new null of private protected public readonly return set static super switch this throw true try type typeof undefined var void while with yield",
			language{comment: []string{"//"}, block: slashes, quotes: []quote{double, single, template}}},
		{"py pyi", "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield",
			language{comment: []string{"#"}, quotes: []quote{{begin: `"""`, end: `"""`, escapes: true, lines: true}, {begin: "'''", end: "'''", escapes: true, lines: true}, double, single}}},
		{"java kt kts scala swift groovy gradle cs", "abstract as async await base bool boolean break byte case catch char class companion const continue data def default do double else enum extends extension false final finally float for foreach fun func guard if implements import in int interface internal is let long namespace new null object open override package private protected public readonly record return sealed short static string struct super switch this throw throws trait true try type using val var virtual void when where while yield",
			language{comment: []string{"//"}, block: slashes, quotes: []quote{double, rune1}}},
		{"c h cc cpp cxx hh hpp m mm", "alignas auto bool break case catch char class const constexpr continue default delete do double else enum explicit export extern false float for friend goto if inline int long namespace new noexcept nullptr operator override private protected public return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while include define ifdef ifndef endif NULL",
			language{comment: []string{"//"}, block: slashes, quotes: []quote{double, rune1}}},
		{"rs", "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
			language{comment: []string{"//"}, block: slashes, quotes: []quote{double, rune1}}},
		{"sh bash zsh ksh bashrc profile", "case do done elif else esac exit export fi for function if in local readonly return set shift source then trap unset until while",
			language{comment: []string{"#"}, quotes: []quote{double, {begin: "'", end: "'"}}}},
		{"mk makefile", "define else endef endif export ifdef ifeq ifndef ifneq include override",
			language{comment: []string{"#"}, key: ":="}},
		{"yml yaml", "true false null yes no on off",
			language{comment: []string{"#"}, quotes: []quote{double, {begin: "'", end: "'"}}, key: ":"}},
		{"toml ini cfg conf properties editorconfig gitconfig gitmodules tf hcl", "true false null resource variable module output provider data locals",
			language{comment: []string{"#", ";"}, quotes: []quote{{begin: `"""`, end: `"""`, escapes: true, lines: true}, double, {begin: "'", end: "'"}}, key: "="}},
		{"json jsonc json5 webmanifest", "true false null",
			language{comment: []string{"//"}, block: slashes, quotes: []quote{double}}},
		{"html htm xml svg xhtml xsl plist vue csproj pom", "",
			language{block: [][2]string{{"<!--", "-->"}}, quotes: []quote{{begin: `"`, end: `"`}, {begin: "'", end: "'"}}, in: "-:", tags: true}},
		{"css scss less", "@media @import @font-face @keyframes @supports @layer @charset important root hover focus before after auto none inherit initial",
			language{comment: nil, block: slashes, quotes: []quote{double, single}, in: "-", key: ":"}},
		{"sql", "add all alter and as asc begin between by case check column commit constraint create cross default delete desc distinct drop else end exists false foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then transaction true union unique update using values view when where with",
			language{comment: []string{"--"}, block: slashes, quotes: []quote{{begin: "'", end: "'"}, double}, caseless: true}},
		{"md markdown", "",
			language{block: [][2]string{{"<!--", "-->"}}, quotes: []quote{{begin: "`", end: "`"}}, heading: "#"}},
		{"rb rake gemspec gemfile rakefile", "alias and begin break case class def defined do else elsif end ensure false for if in module next nil not or redo require rescue retry return self super then true undef unless until when while yield",
			language{comment: []string{"#"}, quotes: []quote{double, single}, in: "?!"}},
		{"php", "abstract and array as break case catch class clone const continue declare default do echo else elseif empty extends false final finally fn for foreach function global if implements include instanceof interface isset list match namespace new null or print private protected public readonly require return static switch this throw trait true try unset use var while yield",
			language{comment: []string{"//", "#"}, block: slashes, quotes: []quote{double, single}, caseless: true}},
		{"dockerfile containerfile", "add arg as cmd copy entrypoint env expose from healthcheck label onbuild run shell stopsignal user volume workdir",
			language{comment: []string{"#"}, quotes: []quote{double, single}, caseless: true}},
	} {
		l := def.language
		l.words = map[string]bool{}
		for _, word := range strings.Fields(def.words) {
			l.words[word] = true
		}
		for _, name := range strings.Fields(def.names) {
			out[name] = &l
		}
	}
	return out
})
