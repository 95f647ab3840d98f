package secret

// ownRules find what people commit and gitleaks' rules do not take: values with
// the marks that password generators use, credentials in addresses, headers and
// key files of other programs. They have gitleaks' form.
const ownRules = `
[[rules]]
id = "url-credentials"
regex = '''[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/:@"'<>]{0,64}:([^\s/@"'<>{}$%]{6,100})@[\w.\[-]'''
keywords = ["://"]
[[rules.allowlists]]
regexTarget = "match"
regexes = ['''(?i):(?:pass(?:word|wd|phrase)?|secret|token|user(?:name)?|your[\w-]*|my[\w-]*|some[\w-]*|example|changeme|x{3,}|\*+|\.{3,}|[a-z]*pass[a-z]*)@''']

[[rules]]
id = "authorization-header"
regex = '''(?i)authorization["']?\s{0,5}[:=,]\s{0,5}["']?(?:bearer|basic|token)\s{1,5}([\w.~+/=-]{16,400})'''
entropy = 3
keywords = ["authorization"]

[[rules]]
id = "password-with-marks"
regex = '''(?i)(?:passw(?:or)?d|passphrase|secret|api_?key|auth_?token)["']?\s{0,5}(?::=|[:=])\s{0,5}["']([^\s"'<>{}()$%]{0,60}[!@#^&*][^\s"'<>{}()$%]{0,60})["']'''
entropy = 3.2
keywords = ["passwd", "password", "passphrase", "secret", "apikey", "api_key", "authtoken", "auth_token"]

[[rules]]
id = "putty-private-key"
regex = '''Private-Lines: [0-9]{1,4}\r?\n((?:[A-Za-z0-9+/=]+\r?\n)+)'''
keywords = ["private-lines"]
`
