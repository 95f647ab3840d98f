package input

var ResolveEdits = resolveEdits
