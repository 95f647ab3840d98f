// Package forgetest is for tests: one suite for every forge.Forge, of what people do on
// a forge, honest ones and others. Each case arranges things as people, then looks at
// what the forge.Forge under test tells of them and, for approvals, at the verdict that
// the stages make of it.
//
// Forges differ. A Place names what its forge cannot do (a Lack); a case then holds it
// to the outcome that is safe without it: no case is skipped.
package forgetest
