package risk

import (
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/policy"
)

// A watched name is a sort of files that something obeys.
type watched struct {
	kind   Kind
	reason string
	globs  []policy.Glob
}

// builders are files that a build, a package manager or a shell obeys without
// being asked, in the language of policy.Glob.
var builders = []struct{ reason, globs string }{
	{"a build obeys it", "Makefile GNUmakefile *.mk CMakeLists.txt *.cmake meson.build configure configure.ac BUILD BUILD.bazel WORKSPACE " +
		"MODULE.bazel .bazelrc Rakefile Gemfile *.gemspec justfile .justfile Taskfile.yml Taskfile.yaml build.xml pom.xml build.gradle " +
		"build.gradle.kts settings.gradle settings.gradle.kts gradle.properties gradlew mvnw build.sbt build.rs build.zig Package.swift " +
		"*.csproj *.fsproj *.vcxproj *.props *.targets *.sln binding.gyp setup.py setup.cfg pyproject.toml tox.ini noxfile.py conftest.py " +
		"package.json tsconfig.json webpack.config.* vite.config.* rollup.config.* babel.config.* gulpfile.* Gruntfile.* .npmrc .yarnrc " +
		".yarnrc.yml Cargo.toml .cargo go.mod go.work composer.json mix.exs rebar.config flake.nix default.nix shell.nix magefile.go"},
	{"an image is built by it", "Dockerfile Dockerfile.* *.dockerfile Containerfile docker-compose.yml docker-compose.yaml compose.yml " +
		"compose.yaml .devcontainer devcontainer.json Vagrantfile"},
	{"another CI system runs it", ".gitlab-ci.yml .circleci .travis.yml azure-pipelines.yml Jenkinsfile .drone.yml .woodpecker .woodpecker.yml " +
		".buildkite bitbucket-pipelines.yml appveyor.yml .appveyor.yml cloudbuild.yaml .gitea .forgejo"},
	{"hooks run it", ".husky .pre-commit-config.yaml .pre-commit-hooks.yaml lefthook.yml .lefthook.yml .githooks .envrc"},
	{"it pins what is installed", "go.sum package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb Cargo.lock poetry.lock " +
		"uv.lock pdm.lock Pipfile Pipfile.lock requirements*.txt constraints*.txt Gemfile.lock composer.lock mix.lock pubspec.lock Podfile.lock " +
		"Package.resolved packages.lock.json gradle.lockfile flake.lock deno.lock conan.lock .terraform.lock.hcl MODULE.bazel.lock"},
	{"a shell runs it", "*.sh *.bash *.zsh *.ps1 *.bat *.cmd"},
}

// watchedSorts are the built-in protected files by their reason, and then builders.
var watchedSorts = sync.OnceValue(func() []watched {
	var out []watched
	glob := func(kind Kind, reason, pattern string) {
		g, err := policy.ParseGlob(pattern)
		if err != nil {
			panic("risk: " + err.Error())
		}
		if len(out) == 0 || out[len(out)-1].reason != reason {
			out = append(out, watched{kind: kind, reason: reason})
		}
		last := &out[len(out)-1]
		last.globs = append(last.globs, g)
	}
	for _, b := range policy.BuiltIns() {
		glob(Trusted, b.Reason, b.Glob)
	}
	for _, b := range builders {
		for pattern := range strings.FieldsSeq(b.globs) {
			glob(Build, b.reason, pattern)
		}
	}
	return out
})

// watchedNames are the sorts that a path is of.
func watchedNames(name string) []watched {
	var out []watched
	for _, w := range watchedSorts() {
		for _, g := range w.globs {
			if g.Match(name) {
				out = append(out, w)
				break
			}
		}
	}
	return out
}
