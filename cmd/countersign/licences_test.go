package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLicences: what the program is linked with has a permissive licence, by its own words, so that whoever may use the one may use the
// other.
func TestLicences(t *testing.T) {
	t.Parallel()
	permissive := regexp.MustCompile(`(?si)Apache License.*Version 2\.0|Permission is hereby granted, free of charge|Redistribution and use in source and binary forms|Permission to use, copy, modify,? and/?(?: |or) ?distribute`)
	other := regexp.MustCompile(`(?i)GNU (?:Affero |Lesser )?General Public License|Mozilla Public License|Business Source License|Server Side Public License|Commons Clause`)
	seen := 0
	for _, module := range listed(t, "-deps", "-f", `{{with .Module}}{{if not .Main}}{{.Path}}={{.Dir}}{{end}}{{end}}`, "./cmd/countersign", "./cmd/verify") {
		path, dir, _ := strings.Cut(module, "=")
		files, err := filepath.Glob(filepath.Join(dir, "[LlC][IiO][CcP][EeY][NnI]*"))
		check(t, err)
		text := ""
		for _, file := range files {
			raw, err := os.ReadFile(file)
			check(t, err)
			text += string(raw)
		}
		if seen++; !permissive.MatchString(text) || other.MatchString(text) && !strings.Contains(text, "BSD-3-Clause OR") { // or the other, as one likes
			t.Errorf("%s is under no permissive licence that is known here: %q", path, files)
		}
	}
	if seen < 20 {
		t.Errorf("%d packages of others were looked at", seen)
	}
}
