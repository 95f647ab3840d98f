// Package sshsig signs Git commits with SSH keys, and verifies such commits,
// as git does with gpg.format=ssh, but without git, ssh-keygen, files or a
// clock: the caller reads keys, lists and commits, and says what time it is.
//
// [Allowed.Verify] promises that the payload is what the holder of a listed
// key signed, for git, at a time for which the list allows that key. Beside
// [Split] it promises more than git: the one commit, to the bit. A signature
// has one text, and a text one place in its commit; whatever git or ssh-keygen
// would also take (other line lengths, a header elsewhere, a number with
// zeros before it) is refused, so nobody without the key can make a second
// commit of a signed one. ECDSA is the exception that cannot be closed: for
// the signature (r, s) anyone can compute (r, -s), which is as good, and
// ssh-keygen itself makes either. The payload is the same in both.
//
// # A signed commit (git's gitformat-signature(5))
//
// The signature is the header gpgsig, the last before the blank line; every
// line after its first has a space before it. What is signed is the commit
// without this header.
//
//	tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904
//	author Alice <alice@example.com> 1767571200 +0000
//	committer Alice <alice@example.com> 1767571200 +0000
//	gpgsig -----BEGIN SSH SIGNATURE-----
//	 U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgqFZ5qF+5zYFjv6+KUlM/2ro2rl
//	 eGbFpzlSv+3x5bHxMAAAADZ2l0AAAAAAAAAAZzaGE1MTIAAABTAAAAC3NzaC1lZDI1NTE5
//	 AAAAQNd6/l5zzQBTABtvf+R2AdxaIL962RdOHZCfQPLeuFwdesM7Zbz397RiS6ZUF6uAOa
//	 OJzkA0DjRjfxzEKoJL7AM=
//	 -----END SSH SIGNATURE-----
//
//	hello
//
// # The signature (OpenSSH's PROTOCOL.sshsig)
//
// Between the first and the last line stands, in base64 with lines of 70
// characters, the last one shorter, each with a newline:
//
//	"SSHSIG"                    6 bytes
//	version                     uint32: 1
//	public key                  string, as in RFC 4253, 6.6
//	namespace                   string: "git"
//	reserved                    string: empty
//	hash                        string: "sha512", or "sha256", which is read only
//	signature                   string of: string algorithm, string bytes;
//	                            of a security key also a byte of flags and a
//	                            uint32 counter
//
// A uint32 is big-endian, a string its length as a uint32 and its bytes. What
// the key signs is
//
//	"SSHSIG", namespace, reserved, hash, string H(message)
//
// with these algorithms:
//
//	ssh-ed25519                                     signs and verifies
//	ecdsa-sha2-nistp256, -nistp384, -nistp521       signs and verifies
//	ssh-rsa of 2048 bits or more: rsa-sha2-512      signs and verifies
//	                              rsa-sha2-256      verifies
//	sk-ssh-ed25519@openssh.com,
//	sk-ecdsa-sha2-nistp256@openssh.com              verifies, if it was touched
//
// Never: RSA with SHA-1, DSA, certificates.
//
// # The allowed signers (ssh-keygen(1), ALLOWED SIGNERS)
//
// One key on a line, in UTF-8. A line that is empty or begins with # says
// nothing; blanks before a line and a CR after it are passed over.
//
//	# who may sign the ledger
//	alice@example.com namespaces="git",valid-after="20260101Z" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKhWeahfuc2BY7+vilJTP9q6Nq5Xhmxac5Ur/t8eWx8T laptop
//
// The fields, with blanks (spaces, tabs) between them, are
//
//	principals    names with commas between them, all in quotes if one of them
//	              holds a blank. A name is a pattern: * is any characters, ?
//	              one, and ! before it negates.
//	options       may be left out. With commas between them, each at most once,
//	              in any case, their values in quotes:
//	                namespaces="git,..."     patterns; without it, all
//	                valid-after="<time>"     the key is valid from this second
//	                valid-before="<time>"    the key is valid to this second
//	              A time is YYYYMMDDZ, YYYYMMDDHHMMZ or YYYYMMDDHHMMSSZ, in UTC.
//	key           its type, and its bytes in base64
//	comment       may be left out
//
// A key may be on several lines, of which any allows it. Refused, with the
// line's number, is what ssh-keygen would read otherwise or not at all, and
// what is not supported: cert-authority, DSA, RSA below 2048 bits, and a time
// without the Z, which would depend on the machine that reads it (OpenSSH
// reads the Z since 9.1).
package sshsig
