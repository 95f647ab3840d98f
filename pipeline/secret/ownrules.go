package secret

// ownRules find what people commit and gitleaks' rules do not take: values with
// the marks that password generators use, credentials in addresses and headers,
// key files of other programs, tokens whose form is newer, and random values
// that gitleaks leaves because a common word happens to be in them. They have
// gitleaks' form.
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

[[rules]]
id = "aws-secret-access-key"
regex = '''(?i)secret_?-?(?:access)?_?-?key["']?(?:\s{0,5}(?::=|=>|[:=,])|\s)\s{0,5}["']?([a-z0-9+/]{40})(?:[^a-z0-9+/=]|$)'''
entropy = 4.2
keywords = ["secret"]

[[rules]]
id = "random-value"
regex = '''(?i)(?:secret|token|passw(?:or)?d|passphrase|credential|auth|(?:api|access|account|private|client)[_-]?key)[\w.-]{0,20}["']?\s{0,5}(?::=|=>|[:=,])\s{0,5}["'\x60]?([a-z0-9+/_-]{40,}={0,3})(?:[\x60'"\s;&]|\\[nr]|$)'''
entropy = 4.4
keywords = ["secret", "token", "passwd", "password", "passphrase", "credential", "auth", "key"]

[[rules]]
id = "hexadecimal-secret"
regex = '''(?i)(?:secret|token|passw(?:or)?d|passphrase|credential|(?:api|access|private|client)[_-]?key)["']?\s{0,5}(?::=|=>|[:=])\s{0,5}["'\x60]?((?:[a-f0-9]{32}){1,4})(?:[\x60'"\s;&]|\\[nr]|$)'''
entropy = 3
keywords = ["secret", "token", "passwd", "password", "passphrase", "credential", "key"]

[[rules]]
id = "docker-config-auth"
regex = '''(?i)\bauth["']?\s{0,5}[:=]\s{0,5}["']?([a-z0-9+/]{24,400}={0,2})(?:[\x60'"\s;]|\\[nr]|$)'''
entropy = 4
keywords = ["auth"]

[[rules]]
id = "docker-access-token"
regex = '''\bdckr_[a-z]{2,5}_[\w-]{20,80}'''
keywords = ["dckr_"]

[[rules]]
id = "github-refresh-token-long"
regex = '''\bghr_[A-Za-z0-9]{37,250}'''
keywords = ["ghr_"]

[[rules]]
id = "google-oauth-client-secret"
regex = '''\bGOCSPX-[\w-]{28}'''
keywords = ["gocspx-"]

[[rules]]
id = "google-oauth-access-token"
regex = '''\bya29\.[\w-]{30,}'''
keywords = ["ya29."]

[[rules]]
id = "openai-api-key-any-end"
regex = '''\bsk-(?:proj|svcacct|admin)-[\w-]{40,100}T3BlbkFJ[\w-]{40,100}'''
keywords = ["sk-proj-", "sk-svcacct-", "sk-admin-"]

[[rules]]
id = "azure-devops-token"
regex = '''(?i)(?:azure|devops|vsts|ado)[\w.-]{0,30}["']?\s{0,5}(?::=|=>|[:=])\s{0,5}["']?([a-z2-7]{52})(?:[^\w-]|$)'''
entropy = 3.8
keywords = ["azure", "devops", "vsts", "ado"]

[[rules]]
id = "discord-bot-token"
regex = '''(?i:discord|bot|token|login)[\w.-]{0,20}["']?\s{0,5}(?::=|=>|[:=,(])\s{0,5}["'\x60]?((?:[MNO][DTjz][AEIMQUYcgk][wxyz0-5]){5,6}\w{0,3}\.[\w-]{6}\.[\w-]{27,45})'''
keywords = ["discord", "bot", "token", "login"]

[[rules]]
id = "telegram-token"
regex = '''\b([0-9]{8,10}:AA[\w-]{33})(?:[^\w-]|$)'''
keywords = [":aa"]

[[rules]]
id = "mailgun-key"
regex = '''\bkey-[a-f0-9]{32}\b'''
entropy = 3
keywords = ["key-"]

[[rules]]
id = "mailchimp-key"
regex = '''\b[a-f0-9]{32}-us[1-9][0-9]?\b'''
entropy = 3
keywords = ["-us1", "-us2", "-us3", "-us4", "-us5", "-us6", "-us7", "-us8", "-us9"]
`
