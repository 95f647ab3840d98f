package teststand

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"unicode/utf16"
)

// A Sample is made up; it is put together when a test runs, so that the sources hold nothing that
// looks like a secret. It is a text that the default rules find a secret in.
type Sample struct {
	Kind   string // what it imitates
	Value  string // the secret
	Before string // what must stand before it to be recognised, often nothing
	After  string
}

// Text is the secret in its context.
func (s Sample) Text() string { return s.Before + s.Value + s.After }

const (
	digits = "0123456789"
	hexes  = digits + "abcdef"
	lowers = "abcdefghijklmnopqrstuvwxyz"
	uppers = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	alnum  = digits + lowers + uppers
)

// Samples returns one secret of each of 24 kinds, always the same ones.
func Samples() []Sample { return SamplesFrom(1) }

// SamplesFrom returns other secrets for each seed.
func SamplesFrom(seed uint64) []Sample {
	m := maker{rand.New(rand.NewPCG(seed, 2))}
	alone := func(kind, value string) Sample { return Sample{Kind: kind, Value: value} }
	named := func(kind, name, value string) Sample {
		return Sample{Kind: kind, Before: name + ` = "`, Value: value, After: `"`}
	}
	return []Sample{
		alone("aws access key", "AK"+"IA"+m.of(16, uppers+"234567")),
		alone("github token", "gh"+"p_"+m.of(36, alnum)),
		alone("github fine-grained token", "github"+"_pat_"+m.of(82, alnum)),
		alone("github app token", "gh"+"s_"+m.of(36, alnum)),
		alone("gitlab token", "gl"+"pat-"+m.of(20, alnum)),
		alone("slack bot token", "xo"+"xb-"+m.of(12, "123456789")+"-"+m.of(12, "123456789")+"-"+m.of(24, alnum)),
		alone("slack webhook", "https://hooks."+"slack.com/services/T"+m.of(10, uppers)+"/B"+m.of(10, uppers)+"/"+m.of(24, alnum)),
		alone("stripe key", "sk"+"_live_"+m.of(24, alnum)),
		alone("google api key", "AI"+"za"+m.of(35, alnum)),
		alone("npm token", "np"+"m_"+m.of(36, alnum)),
		alone("pypi token", "py"+"pi-AgEIcHlwaS5v"+"cmc"+m.of(80, alnum)),
		alone("sendgrid key", "S"+"G."+m.of(22, alnum)+"."+m.of(43, alnum)),
		alone("twilio key", "S"+"K"+m.of(32, hexes)),
		alone("openai key", "sk"+"-"+m.of(20, alnum)+"T3Blbk"+"FJ"+m.of(20, alnum)),
		alone("anthropic key", "sk"+"-ant-"+"api03-"+m.of(93, alnum)+"AA"),
		alone("json web token", "ey"+"J"+m.of(30, alnum)+".ey"+"J"+m.of(60, alnum)+"."+m.of(43, alnum)),
		alone("private key", m.pem()),
		alone("age key", "AGE-"+"SECRET-KEY-1"+m.of(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L")),
		alone("azure client secret", m.of(3, alnum)+"8Q"+"~"+m.of(34, alnum)),
		alone("digitalocean token", "dop"+"_v1_"+m.of(64, hexes)),
		alone("hashicorp vault token", "hv"+"s."+m.of(95, alnum)),
		named("telegram token", "telegram"+"_bot", m.of(10, "123456789")+":A"+m.of(34, alnum)),
		named("discord token", "discord"+"_api", m.of(64, hexes)),
		named("password", "db_"+"password", m.mixed(24)),
	}
}

type maker struct{ *rand.Rand }

func (m maker) of(n int, alphabet string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[m.IntN(len(alphabet))]
	}
	return string(b)
}

// mixed has no two letters side by side, so no word is in it.
func (m maker) mixed(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(m.of(1, lowers+uppers) + m.of(1, digits))
	}
	return b.String()
}

func (m maker) pem() string {
	const name = "PRIVATE" + " KEY"
	var b strings.Builder
	fmt.Fprintf(&b, "-----BEGIN %s-----\n", name)
	for range 8 {
		b.WriteString(m.of(64, alnum+"+/") + "\n")
	}
	fmt.Fprintf(&b, "%s==\n-----END %s-----", m.of(26, alnum), name)
	return b.String()
}

// Encodings returns the forms in which a secret may turn up in an output: as
// it is, base64 in both alphabets at each alignment, hexadecimal, with its
// bytes escaped as in URLs, as in JSON, and in UTF-16.
func Encodings(value string) [][]byte {
	out := [][]byte{[]byte(value)}
	for shift := range 3 {
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			out = append(out, aligned(enc, value, shift))
		}
	}
	quoted, err := json.Marshal(value)
	if err != nil {
		panic("teststand: " + err.Error())
	}
	var every strings.Builder
	for i := range len(value) {
		fmt.Fprintf(&every, "%%%02X", value[i])
	}
	low := hex.EncodeToString([]byte(value))
	return append(out, []byte(low), []byte(strings.ToUpper(low)), []byte(every.String()), []byte(strings.ToLower(every.String())),
		[]byte(url.QueryEscape(value)), quoted[1:len(quoted)-1], wide(value))
}

// aligned is the part of value's encoding, with shift bytes before it, that
// does not depend on its neighbours.
func aligned(enc *base64.Encoding, value string, shift int) []byte {
	whole := enc.EncodeToString([]byte(strings.Repeat("x", shift) + value))
	skip := []int{0, 2, 3}[shift]
	end := (shift + len(value)) / 3 * 4
	if rest := (shift + len(value)) % 3; rest > 0 {
		end += rest
	}
	return []byte(whole[min(skip, len(whole)):min(end, len(whole))])
}

func wide(value string) []byte {
	var out []byte
	for _, u := range utf16.Encode([]rune(value)) {
		out = binary.LittleEndian.AppendUint16(out, u)
	}
	return out
}
