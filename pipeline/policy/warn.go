package policy

import "fmt"

// Warnings are what a valid Policy says that does not come to what whoever wrote it may
// think: security keys that are asked for of those who sign, where nobody has to sign, and
// signatures where nothing says whose count.
func (p Policy) Warnings() []string {
	out := []string{}
	a := p.Approvals
	signing := a.Signing()
	for _, key := range []struct {
		name string
		set  bool
	}{{"hardware", a.Hardware}, {"pin", a.PIN}} {
		switch {
		case !key.set || signing == SignedOnly:
		case signing == SignedOff:
			out = append(out, fmt.Sprintf("approvals.%s: no signature counts at all, and approvals count without one (approvals.signed is off)", key.name))
		default:
			out = append(out, fmt.Sprintf("approvals.%s: who does not sign gets around it, as approvals count without a signature; signed: require closes that", key.name))
		}
	}
	lists := a.Keys != "" || a.ForgeKeys
	if !lists && signing != SignedOff {
		out = append(out, fmt.Sprintf("approvals.signed: %s, and nothing says whose keys count: %s (approvals.keys, approvals.forge_keys)", signing, map[Signing]string{
			SignedOnly: "nothing can be approved", SignedToo: "no signature counts",
		}[signing]))
	}
	if lists && signing != SignedOff {
		return out
	}
	asking := func(name string) {
		out = append(out, name+".signed: require, and no signature counts: nothing that it asks about can be approved")
	}
	for i, r := range p.Protected {
		if r.Signed == SignedOnly {
			asking(fmt.Sprintf("protected[%d]", i))
		}
	}
	if p.Secrets.Signed == SignedOnly {
		asking("secrets")
	}
	return out
}
