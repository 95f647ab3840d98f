package secret_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/secret"
)

// TestOwnRules: forms that gitleaks' rules do not take. The values are put
// together here, so that the sources hold nothing that looks like a secret.
func TestOwnRules(t *testing.T) {
	marks := "k9" + "$Xq!z@2#Lm7^Pw&t"
	marks = strings.ReplaceAll(marks, "$", "R")
	word := "zK4vT9" + "qLm2Rx7"
	for _, c := range []struct{ text, hidden, kind string }{
		{"postgres://admin:" + word + "@db.example.org/x", word, "url-credentials"},
		{"redis://:" + word + "@cache:6379", word, "url-credentials"},
		{`url = "https://bob:` + word + `@git.example.org/r.git"`, word, "url-credentials"},
		{"Authorization: Bearer " + word + word, word, "authorization-header"},
		{`"authorization": "Basic ` + word + `c2Vj"`, word, "authorization-header"},
		{`PASSWORD="` + marks + `"`, marks, "password-with-marks"},
		{`{"db_password": "` + marks + `"}`, marks, "password-with-marks"},
		{`secret := '` + marks + `'`, marks, "password-with-marks"},
		{"POSTGRES_PASSWORD: hunter" + word[:6] + "!\n", "hunter" + word[:6] + "!", "password-with-marks"},
		{"MYSQL_PWD=" + marks + "\n", marks, "password-with-marks"},
		{"db_pass: $" + marks + "%\n", "$" + marks + "%", "password-with-marks"},
		{"stringData:\n  url: " + word + "\n", word, "kubernetes-secret-yaml"},
		{"kind: Secret\nstringData:\n  # of the database\n# and\n  user: admin\n\n  pass: \"" + marks + "\"\n", marks, "kubernetes-secret-yaml"},
		{"  data:\n    a: eHh4\n    b: " + word + word + "==\n  kind: 'Secret'\n", word + word, "kubernetes-secret-yaml"},
		{"kind: Secret\ndata:\n  a: |\n    " + word + word + "\n    c" + word + word + "=\n", "c" + word + word + "=", "kubernetes-secret-yaml"},
		{`{"kind": "Secret", "stringData": {"user": "administrator", "pass": "` + word + `"}}`, word, "kubernetes-secret-yaml"},
		{"{\n \"kind\": \"Secret\",\n \"data\": {\n  \"p\": \"" + word + word + "\",\n  \"q\": \"x" + word + word + "\"\n }\n}\n", "x" + word + word, "kubernetes-secret-yaml"},
		{"PuTTY-User-Key-File-2: ssh-rsa\nPrivate-Lines: 2\nAAAAB3" + word + "\nBBBB" + word + "\nPrivate-MAC: 0", word, "putty-private-key"},
	} {
		got := secret.Default().Text(c.text)
		if strings.Contains(got, c.hidden) || !strings.Contains(got, "<REDACTED:") {
			t.Errorf("%s: %s", c.kind, got)
		}
		if again := secret.Default().Text(got); again != got {
			t.Errorf("%q, then %q", got, again)
		}
	}
	for _, text := range []string{
		"postgres://user:password@localhost/db", "https://example.org:8080/a@b", "http://user:" + "PASS@host", "ssh://git@example.org/x",
		"https://${USER}:${TOKEN}@example.org", `password: "${{ secrets.DB }}"`, `password = "%s@%s"`, `Authorization: Bearer <token>`,
		`secret: "a@b"`, `apiKey: "see https://example.org/keys"`, "mailto:a@example.org", "a://b:c@d",
		"password: !vault", "password = *argument.value;", "PASSWORD=$DB_PASSWORD", `password: "$user:$dbPassword@$host"`, "secret: %s/%s@example", "password: %PGPASSWORD%",
		"password: admin@mail.example.org", "secret: file:///etc/app/db2#x", "?password=hunter&next=/a", "if password==other.password {", "secret: docs/policy.md#secrets",
		"password: your-password-here!", "actions: password-store@v4.1.2", "secret: actions/checkout@v4.1.2",
		"stringData:\n  host: database.internal\n  user: ${USER_NAME}\n  url: $DATABASE\n  pass: <password>\n  t: {{ .Values.token }}\n  enc: ENC[AES256_GCM,data:" + word + "=,iv:" + word + word + "]\nother: " + word + "\n",
		"BC6JUbIDg+N+a\n5UUhU05xyClEypB/EAAAAYY291bnRlcnNpZ24tZGVjaXNpb25AdjIAAAAAAAAABnNoYTUx\nMgAAAFMAA", "/EAAAABhjb3VudGVyc2lnbi1kZWNpc2lvbkB2MgAAAAAAAAAG\n",
		"kind: ConfigMap\ndata:\n  a: " + word + word + "\n---\nkind: Secret\n", "kind: SecretList\ndata:\n  a: " + word + word + "\n", "kind: Secret\nmetadata:\n  uid: " + word + word + "\n",
	} {
		if got := secret.Default().Text(text); got != text {
			t.Errorf("%s became %s", text, got)
		}
	}
}

// T48: what is public, encrypted or no key of that sort, under the names of
// secrets. A real secret under the same name is found.
func TestT48Public(t *testing.T) {
	const bech32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
	r := rand.New(rand.NewPCG(48, 1))
	of := digitsOf(r)
	for range 50 {
		for _, value := range []string{
			"age1" + of(58, bech32), "age1pq1" + of(1950, bech32), "age1yubikey1" + of(59, bech32), "Ag" + of(1, "ABCD") + of(720, inBase64) + "=",
			"ctrl+shift+down", "cmdOrCtrl+Alt+Numpad8", "ctrl+shift+alt+oem_comma", "shift-meta-F12",
		} {
			for _, text := range []string{"sops_age_key=" + value + "\n", "client_secret: " + value + "\n", `{"key": "` + value + `", "auth_token": "` + value + `"}`} {
				if got := secret.Default().Text(text); got != text {
					t.Errorf("%s became %s", text, got)
				}
			}
		}
	}
	for _, value := range []string{"AGE-SECRET" + "-KEY-1" + of(58, strings.ToUpper(bech32)), "age1" + of(40, letters), "AgA" + of(60, letters), "ctrl+" + of(24, letters), "tx_" + of(30, letters)} {
		if got := secret.Default().Text("client_secret: " + value + "\n"); strings.Contains(got, value) {
			t.Error(got)
		}
	}
	tx, next := "tx_01JZKEY6V5T8Q2N4M7P9R1S3WX", "tx_01JZK3Y6V5T8Q2N4M7P9R1S3WX"
	for _, text := range []string{tx + ", " + next, tx + ": " + next, tx + " = " + of(40, hexadecimal), "applied " + tx + ": " + of(40, hexadecimal) + "\n"} {
		if got := secret.Default().Text(text); got != text {
			t.Errorf("%s became %s", text, got)
		}
	}
	if text := tx + ", password: " + of(24, letters); secret.Default().Text(text) == text {
		t.Error(text)
	}
}

// TestT50BinaryTail: what follows the stream of a binary section is not looked
// at, so that the section goes.
func TestT50BinaryTail(t *testing.T) {
	token := "ghp_" + strings.Repeat("a8Fk3Lm2", 5)[:36]
	diff := "diff --git a/x b/x\nnew file mode 100644\nindex 0000000000000000000000000000000000000000..f76dd238ade08917e6712764a16a22005a50573d\n" +
		"GIT binary patch\nliteral 1\nIcmZPo000310RR91\nf" + token[:39] + "\n\nliteral 0\nHcmV?d00001\n\n"
	if got := string(secret.Default().Knowing(token[:38]).Diff([]byte(diff))); strings.Contains(got, token[:38]) {
		t.Error(got)
	}
}

// TestT50UTF16End: a text in UTF-16, of either order, that ends without a newline.
func TestT50UTF16End(t *testing.T) {
	token := "ghp_" + strings.Repeat("a8Fk3Lm2", 5)[:36]
	for _, big := range []bool{true, false} {
		var b strings.Builder
		for _, r := range []byte("x = " + token) {
			if big {
				b.WriteString("\x00" + string(r))
			} else {
				b.WriteString(string(r) + "\x00")
			}
		}
		if got := secret.Default().Text(b.String()); !strings.Contains(got, "<REDACTED:") {
			t.Errorf("big %v: %q", big, got)
		}
	}
}

// TestT47EscapedKnown: a known value goes whole, also where it is escaped.
func TestT47EscapedKnown(t *testing.T) {
	f := secret.Default().Knowing("tok+en/ab=cd")
	for _, text := range []string{"tok%2Ben%2Fab%3Dcd", `tok\u002ben\/ab=cd`} {
		if got := f.Text("<" + text + ">"); got != "<<REDACTED:known-value>>" {
			t.Errorf("%s: %s", text, got)
		}
	}
}
