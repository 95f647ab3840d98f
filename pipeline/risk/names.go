package risk

import (
	"slices"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// A watched name is a sort of files that something obeys.
type watched struct {
	kind        Kind
	reason      string
	files, dirs map[string]bool // by their names, folded
	ends        []string        // of the file's name, folded
	names       []policy.Glob   // of the file itself
	paths       []policy.Glob
}

// builders are files that a build, a package manager, a tool or a shell obeys without
// being asked: names of files, names of directories with a slash behind them, and paths,
// in the language of policy.Glob, to which case is nothing.
var builders = []struct{ reason, globs string }{
	{"a build obeys it", `
		Makefile Makefile.* GNUmakefile BSDmakefile *.mk *.mak *.m4 configure configure.* CMakeLists.txt *.cmake CMakePresets.json
		meson.build meson.options meson_options.txt SConstruct SConscript wscript premake5.lua xmake.lua *.pro *.pri *.gyp *.gypi Kbuild *.ninja
		BUILD BUILD.bazel WORKSPACE WORKSPACE.* MODULE.bazel *.bzl *.star .bazelrc .bazelversion BUCK .buckconfig pants.toml
		justfile .justfile *.just Taskfile.y*ml Rakefile *.rake Gemfile gems.rb *.gemspec Guardfile Capfile Dangerfile Fastfile
		pom.xml build.xml ivy.xml .mvn/ mvnw *.gradle *.gradle.kts gradle.properties gradle/ gradlew *.sbt build.sc build.mill .sdkmanrc
		*.csproj *.fsproj *.vbproj *.vcxproj *.proj *.props *.targets *.sln *.slnx nuget.config global.json
		Cargo.toml .cargo/ build.rs rust-toolchain rust-toolchain.toml build.zig build.zig.zon go.mod go.work magefile.go
		Package.swift Podfile *.podspec Cartfile *.pbxproj *.xcconfig *.xcscheme pubspec.y*ml mix.exs rebar.config
		Setup.hs Setup.lhs *.cabal cabal.project package.yaml stack.yaml dune dune-project *.opam *.nimble dub.json project.clj deps.edn
		*.nix Tiltfile Earthfile Snakefile Brewfile composer.json
		package.json .npmrc .yarnrc .yarnrc.yml .yarn/ .pnpmfile.* pnpm-workspace.y*ml bunfig.toml deno.json deno.jsonc nx.json turbo.json lerna.json
		tsconfig*.json gulpfile.* Gruntfile.* Jakefile* .babelrc* .swcrc *.config.js *.config.ts *.config.?js *.config.?ts
		babel.config.* eslint.config.* jest.config.* next.config.* postcss.config.* rollup.config.* vite.config.* vitest.config.* webpack.config.*
		.eslintrc* .mocharc* .stylelintrc* .prettierrc* .releaserc* karma.conf.* .*rc.js .*rc.?js
		setup.py setup.cfg pyproject.toml hatch_build.py tox.ini pytest.ini noxfile.py conftest.py tasks.py fabfile.py dodo.py pip.conf pip.ini
		sitecustomize.py usercustomize.py *.pth .pylintrc pylintrc conf.py MANIFEST.in mkdocs.y*ml
		.rspec .rubocop.y*ml .irbrc .pryrc .rvmrc .Rprofile .luacheckrc *.rockspec cpanfile Build.PL phpunit.xml* .htaccess .user.ini web.config
		shard.yml bower.json .bowerrc foundry.toml truffle-config.js Project.toml cdk.json devbox.json .npmignore .goreleaser.y*ml .golangci.y*ml
		.config/ Cross.toml`},
	{"an image or a service is built by it", `
		Dockerfile Dockerfile.* *.dockerfile Containerfile Containerfile.* .dockerignore docker-compose*.y*ml compose*.y*ml docker-bake.*
		.devcontainer/ .devcontainer.json devcontainer.json .gitpod.y*ml .replit Vagrantfile *.tf *.tf.json *.tfvars *.hcl *.bicep ansible.cfg Chart.y*ml
		kustomization.y*ml skaffold.y*ml Procfile netlify.toml vercel.json fly.toml wrangler.* serverless.y*ml firebase.json Pulumi.y*ml`},
	{"another CI system runs it", `
		*.gitlab-ci.y*ml .gitlab/ .circleci/ .travis.y*ml *azure-pipelines*.y*ml .azure-pipelines/ .azuredevops/ Jenkinsfile* *.jenkinsfile
		.drone.* .woodpecker/ .woodpecker.y*ml .buildkite/ bitbucket-pipelines.y*ml *appveyor.y*ml cloudbuild*.y*ml buildspec*.y*ml .semaphore/
		.tekton/ .gitea/ .forgejo/ .cirrus.* .teamcity/ .builds/ .build.y*ml .zuul.* zuul.yaml .zuul.d/ zuul.d/ .screwdriver.y*ml
		.readthedocs.y*ml bitrise.y*ml codemagic.y*ml codefresh.y*ml .ci/`},
	{"the forge or a bot obeys it", `
		action.y*ml /.github/dependabot.y*ml /.github/settings.y*ml renovate.json* .renovaterc* .mergify.y*ml bors.toml`},
	{"hooks run it", `
		.husky/ .pre-commit-config.y*ml .pre-commit-hooks.y*ml lefthook*.* .lefthook*.* .githooks/ .simple-git-hooks.* simple-git-hooks.*
		.overcommit.y*ml .lintstagedrc* .envrc`},
	{"it pins what is installed", `
		go.sum go.work.sum **/vendor/modules.txt package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb Cargo.lock
		poetry.lock uv.lock pdm.lock Pipfile Pipfile.lock pylock*.toml requirements*.txt requirements*.in **/requirements/*.txt
		**/requirements/*.in constraints*.txt Gemfile.lock gems.locked composer.lock mix.lock rebar.lock pubspec.lock Podfile.lock
		Package.resolved packages.lock.json gradle.lockfile flake.lock deno.lock conan.lock shard.lock Manifest.toml conanfile.* vcpkg.json .terraform.lock.hcl
		MODULE.bazel.lock cabal.project.freeze stack.yaml.lock .python-version .ruby-version .node-version .nvmrc .tool-versions`},
	{"a shell runs it", `
		*.sh *.bash *.zsh *.fish *.ksh *.csh *.ps1 *.psm1 *.bat *.cmd *.command *.vbs .profile .bashrc .bash_profile .bash_login .bash_logout
		.bash_aliases .zshrc .zshenv .zprofile .zlogin .kshrc .cshrc .inputrc .env .env.* mise.toml .mise.toml mise.*.toml .mise.*.toml mise/ .mise/`},
	{"an editor or a debugger obeys it", `
		.vscode/ .idea/ .zed/ .fleet/ .vs/ *.code-workspace .vimrc .exrc .nvimrc .nvim.lua .dir-locals.el .gdbinit .lldbinit`},
	{"a system starts it", `*.service *.timer *.desktop crontab`},
	{"an agent takes tools from it", `.claude.json mcp.json .mcp.json`},
	{"Git or its filters obey it", `.lfsconfig .gitconfig`},
}

// watchedSorts are the built-in protected files by their reason, and then builders.
var watchedSorts = sync.OnceValue(func() []watched {
	var out []watched
	sort := func(kind Kind, reason string) *watched {
		if len(out) == 0 || out[len(out)-1].reason != reason {
			out = append(out, watched{kind: kind, reason: reason, files: map[string]bool{}, dirs: map[string]bool{}})
		}
		return &out[len(out)-1]
	}
	glob := func(pattern string) policy.Glob {
		g, err := policy.ParseGlob(pattern)
		if err != nil {
			panic("risk: " + err.Error())
		}
		return g
	}
	for _, b := range policy.BuiltIns() {
		one := sort(Trusted, b.Reason)
		for _, pattern := range b.Globs {
			one.paths = append(one.paths, glob(pattern))
		}
	}
	for _, b := range builders {
		one := sort(Build, b.reason)
		for pattern := range strings.FieldsSeq(b.globs) {
			dir, isDir := strings.CutSuffix(pattern, "/")
			end, hasEnd := strings.CutPrefix(pattern, "*")
			switch {
			case strings.Contains(dir, "/"):
				one.paths = append(one.paths, glob(pattern))
			case isDir:
				one.dirs[patch.FoldName(dir)] = true
			case hasEnd && !strings.ContainsAny(end, "*?["):
				one.ends = append(one.ends, patch.FoldName(end))
			case strings.ContainsAny(pattern, "*?["):
				one.names = append(one.names, glob(pattern))
			default:
				one.files[patch.FoldName(pattern)] = true
			}
		}
	}
	return out
})

// watchedNames are the sorts that a path is of.
func watchedNames(name string) []watched {
	var out []watched
	parts := strings.Split(patch.FoldName(name), "/")
	file := parts[len(parts)-1]
	for _, w := range watchedSorts() {
		matches := func(of string) func(policy.Glob) bool {
			return func(g policy.Glob) bool { return g.Match(of) }
		}
		if w.files[file] || slices.ContainsFunc(w.ends, func(end string) bool { return strings.HasSuffix(file, end) }) ||
			slices.ContainsFunc(parts[:len(parts)-1], func(dir string) bool { return w.dirs[dir] }) ||
			slices.ContainsFunc(w.names, matches(file)) || slices.ContainsFunc(w.paths, matches(name)) {
			out = append(out, w)
		}
	}
	return out
}
