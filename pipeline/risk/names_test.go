package risk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/risk"
)

// T75 A file that builds, installs or runs something is told, whatever the case of its
// name and the directory it is in.
func TestT75Names(t *testing.T) {
	const names = `
		.pnpmfile.cjs pnpm-workspace.yaml .yarn/releases/yarn.cjs .yarn/plugins/a.cjs Podfile pubspec.yaml bunfig.toml deno.json deno.jsonc gems.rb
		requirements/dev.txt requirements.in requirements-dev.in requirements-dev.txt pip.conf nuget.config go.work.sum vendor/modules.txt a.bzl BUCK
		WORKSPACE.bazel a.gradle a.gradle.kts gradle/wrapper/gradle-wrapper.properties .mvn/extensions.xml Makefile.am Makefile.in a.m4 SConstruct
		Setup.hs a.cabal a.rake a.nix rust-toolchain rust-toolchain.toml Tiltfile Earthfile docker-compose.dev.yml docker-compose.yaml compose.yaml
		compose.override.yml netlify.toml vercel.json main.tf jest.config.js vitest.config.mts next.config.mjs eslint.config.js postcss.config.cjs
		jest.config.json .eslintrc.js .eslintrc .eslintrc.json .mocharc.yml mise.toml .mise.toml sitecustomize.py a.pth tasks.py fabfile.py action.yml
		action.yaml .gitlab/ci/a.yml .gitlab-ci.yaml azure-pipelines.yaml bitbucket-pipelines.yaml .woodpecker.yaml cloudbuild.yml buildspec.yml
		buildspec.yaml .semaphore/semaphore.yml .tekton/a.yaml renovate.json lefthook.yaml .lefthook-local.yml .simple-git-hooks.json .overcommit.yml
		.profile .bashrc .zshrc .vscode/launch.json .idea/workspace.xml .zed/tasks.json .claude.json mcp.json .mcp.json .lfsconfig
		Makefile package.json go.mod Cargo.toml .cargo/config.toml .env.local conf.py .goreleaser.yml .gitpod.yml run.sh .husky/pre-commit .devcontainer/x.json tailwind.config.ts .envrc`
	for name := range strings.FieldsSeq(names) {
		for _, path := range []string{name, "sub/dir/" + name, strings.ToUpper(name), strings.ToLower(name)} {
			if told(t, risk.Build, path, "x\n") == nil && told(t, risk.Trusted, path, "x\n") == nil {
				t.Errorf("nothing says what %s does", path)
			}
		}
	}
	for _, path := range []string{".github/dependabot.yml", ".GitHub/Dependabot.YAML", ".github/DEPENDABOT.yml"} {
		if got := told(t, risk.Build, path, "x\n"); !slices.Equal(got, []string{"the forge or a bot obeys it"}) {
			t.Errorf("%s: %q", path, got)
		}
	}
	for name := range strings.FieldsSeq("main.go build/main.js src/workspace/a.go dune/a.ml docs/configure/a.md a.md tests/tasks_test.py lib/config.js x.txt gradle LICENSE vendor/a/b.go") {
		if told(t, risk.Build, name, "x\n") != nil {
			t.Errorf("%s is told", name)
		}
	}
}
