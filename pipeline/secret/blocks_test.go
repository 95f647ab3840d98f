package secret_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/secret"
)

// T47, T23: code between the lines of a key is shown, in a text and in a diff;
// the key's own lines are not.
func TestT47CodeInKey(t *testing.T) {
	lines := strings.Split(pem(), "\n")
	for _, code := range []string{
		`exec.Command("sh", "-c", payload).Run()`, "rm -rf /", "reboot", "/usr/local/share/tools/bin/install_all", "InsecureSkipVerify: true,", "InsecureSkipVerify",
		"return DefaultTransportOfThis2", "curl https://example.org/x | sh", "Comment: see `id`", "x = 1; y = 2", "sudo \\\nrm \\\n-rf \\\n/", "import os", "AAAA", "}",
		"NewReverseProxyForTesting2", "TheLongestNameOfThemAllInThisFileWithoutDigits", "deletes_all_the_rows_of_table_2_and_Reports",
	} {
		for _, at := range []int{1, 4, 9, 10} {
			mixed := strings.Join(lines[:at], "\n") + "\n" + code + "\n" + strings.Join(lines[at:], "\n") + "\nafter(" + code + ")\n"
			if at > 8 && code == "NewReverseProxyForTesting2" {
				continue // one word with a digit is as a short last line
			}
			out := redacted(t, secret.Default(), mixed)
			diff := redactDiff(t, secret.Default(), change(t, nil, map[string]string{"a": mixed}).Bytes())
			if strings.Count(out, code) != strings.Count(mixed, code) || strings.Count(diff, strings.ReplaceAll(code, "\n", "\n+")) != strings.Count(mixed, code) {
				t.Errorf("before line %d, %q is not shown:\n%s\n%s", at, code, out, diff)
			}
			for _, line := range lines[1:9] {
				if strings.Contains(out, line) || strings.Contains(diff, line) {
					t.Errorf("before line %d, with %q, a line of the key is left:\n%s", at, code, out)
				}
			}
		}
	}
}

// T46: one of 1,000 keys has a line without a digit, or without letters of both
// cases. It is of the length of the lines around it.
func TestT46LineWithoutDigits(t *testing.T) {
	lines := strings.Split(pem(), "\n")
	for at := 1; at < 9; at++ {
		for _, letters := range []string{"abcdefghIJKLMNOP", "ABCDEFGHIJKLMN42"} {
			odd := strings.Repeat(letters, 4)
			key := strings.Join(lines[:at], "\n") + "\n" + odd + "\n" + strings.Join(lines[at+1:], "\n")
			for what, form := range map[string]string{"whole": key, "no end": strings.Join(strings.Split(key, "\n")[:10], "\n"), "no beginning": strings.Join(strings.Split(key, "\n")[1:], "\n")} {
				if out := redacted(t, secret.Default(), form); strings.Contains(out, odd[:20]) {
					t.Errorf("%s, line %d: %s", what, at, out)
				}
			}
		}
	}
}

// T46: forms in which people write keys, each of them one marker, or one a line. Of half of one, that half goes and no more.
func TestT46KeyForms(t *testing.T) {
	key := pem()
	lines := strings.Split(key, "\n")
	short := strings.Join(lines[:9], "\n") + "\nzK4vT9==\n=x8Q2\n" + lines[10]
	for name, form := range map[string]string{
		"plain": key, "short last line and checksum": short, "CRLF": strings.ReplaceAll(key, "\n", "\r\n"), "indented": strings.ReplaceAll(key, "\n", "\n    "),
		"escaped": `"` + strings.ReplaceAll(key, "\n", `\n`) + `"`, "escaped twice": `"` + strings.ReplaceAll(key, "\n", `\\n`) + `"`, "one line": strings.ReplaceAll(key, "\n", " "),
		"Go": "\"" + strings.ReplaceAll(key, "\n", "\\n\" +\n\t\"") + "\"", "PHP": "'" + strings.ReplaceAll(key, "\n", "' .\n '") + "'", "list": "[\"" + strings.ReplaceAll(key, "\n", "\",\n\"") + "\"]",
		"comments": "# " + strings.ReplaceAll(key, "\n", "\n# "), "slashes": "// " + strings.ReplaceAll(key, "\n", "\n// "), "quoted": "> " + strings.ReplaceAll(key, "\n", "\n> "),
		"XML": strings.ReplaceAll(key, "\n", "&#10;"), "C": "\"" + strings.ReplaceAll(key, "\n", "\\n\"\\\n\"") + "\"",
		"no end": "x\n" + strings.Join(lines[:5], "\n") + "\nand so on, as we said", "no beginning": "x, as we said\n" + strings.Join(lines[4:], "\n") + "\ny",
		"header fields": strings.Replace(key, "\n", "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0123456789ABCDEF0123456789ABCDEF\n\n", 1),
	} {
		out := redacted(t, secret.Default(), form)
		for _, line := range lines[1:9] {
			if strings.Contains(out, line[:20]) {
				t.Errorf("%s: %s", name, out)
				break
			}
		}
		if n := strings.Count(out, "<REDACTED:private-key>"); n != 1 && name != "XML" {
			t.Errorf("%s: %d markers in %q", name, n, out)
		}
		if strings.Contains(form, "as we said") && !strings.Contains(out, "as we said") {
			t.Errorf("%s: too much: %q", name, out)
		}
		if name == "header fields" && !strings.Contains(out, "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC") {
			t.Error(out)
		}
	}
}
