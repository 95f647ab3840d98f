// Package wire talks to one repository on a Git server: it asks where a ref
// is, fetches packs, and pushes one pack with a lease, over https, http, ssh,
// and to a repository on this machine by its path. It keeps no files, reads no
// clock but for timeouts, and never decides by a server's words.
//
// # What it promises
//
//   - [Server.Push] returns nil only if the server said that exactly our ref is
//     updated. After anything else the ref may be either; read it again.
//   - [Server.Tip] returns zero only if a complete list of refs lacks the ref.
//   - [Server.Fetch] returns only a pack whose trailer is right. What the
//     objects are is for their reader to check.
//   - A call ends when its context or the timeout does, whatever the server does,
//     and takes no more memory than the limits say.
//   - Credentials go to the host of the URL only, over TLS or to this machine,
//     and no error names them.
//
// # The protocol (gitprotocol-http(5), gitprotocol-pack(5)), version 0
//
//	GET  URL/info/refs?service=git-upload-pack    refs and capabilities
//	POST URL/git-upload-pack                      wants, haves, depth, filter; a pack
//	POST URL/git-receive-pack                     one command and a pack; a report
//
// A push over http is the last line alone. Over ssh, and to a path, the server
// sends its refs first, each time. Lists of refs and reports are read here and
// strictly, because go-git takes "ng REF ok" for success and a hash that is
// none for the zero hash. A repository by its path is served by git itself, so
// that its hooks run; one on an ssh server by way of the user's ssh ([SSH]).
package wire
