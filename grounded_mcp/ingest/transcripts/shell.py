"""What a command line does, read without running it: its parts, what they are for, and which files they run. Pure.

Not a shell: quotes, substitutions and heredocs are skipped over so that operators inside them do not count, and a
line that cannot be read stays in one piece. Knows nothing about sessions, outcomes or evidence.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

Purpose = Literal["test", "lint", "format", "build", "deploy", "install", "run", "commit", "look", "other"]
"""What a command is for. ``look`` changes nothing and shows something; ``other`` is none of the rest."""


class Part(NamedTuple):
    """One pipeline of a line. ``joint``: the operator before it, "" for the first."""

    joint: str
    stages: tuple[str, ...]
    heredoc: bool = False

    @property
    def text(self) -> str:
        return " | ".join(self.stages)


_TOKENS = re.compile(
    r"""(?P<quoted>'[^']*'|"(?:\\.|[^"\\])*"|`[^`]*`|\\.)|(?P<heredoc><<-?\s*(?P<q>['"]?)(?P<end>\w+)(?P=q))
    |(?P<open>\$?\()|(?P<close>\))|(?P<redirect>[<>]{1,2}&\d?|&>{1,2})|(?P<joint>&&|\|\||;;?|\|&?|&|\n)""",
    re.VERBOSE | re.DOTALL,
)


@lru_cache(4_096)
def parts(command: str) -> tuple[Part, ...]:
    """The pipelines of a command line in order.

    >>> [part.text for part in parts("cd web && npm test 2>&1 | tail -5")]
    ['cd web', 'npm test 2>&1 | tail -5']
    """
    found: list[Part] = []
    joint, stages, start, at, depth, heredoc = "", [], 0, 0, 0, False
    while token := _TOKENS.search(command, at):
        at = token.end()
        depth = max(0, depth + (token["open"] is not None) - (token["close"] is not None))
        if token["heredoc"]:
            heredoc = True
            at = _after_heredoc(command, at, token["end"])
        elif token["joint"] and not depth:
            stages.append(command[start : token.start()].strip())
            start = at
            if not token["joint"].startswith("|") or token["joint"] == "||":
                found.append(Part(joint, tuple(stages), heredoc))
                joint, stages, heredoc = token["joint"].replace("\n", ";"), [], False
    found.append(Part(joint, (*stages, command[start:].strip()), heredoc))
    return tuple(part for part in found if any(part.stages))


def _after_heredoc(command: str, at: int, end: str) -> int:
    closing = re.compile(rf"^\s*{re.escape(end)}\s*$", re.MULTILINE).search(command, at)
    return closing.end() if closing else len(command)


def words(stage: str) -> list[str]:
    """The words of a simple command; none where its quotes do not close."""
    try:
        return shlex.split(stage, comments=True)
    except ValueError:
        return []


_SET = re.compile(r"[A-Za-z_]\w*=")
_WRAPPERS: Mapping[str, int] = {
    **dict.fromkeys(("time", "nohup", "command", "exec", "nice", "env", "sudo"), 0),
    **dict.fromkeys(("timeout", "gtimeout"), 1),
}
"""Programs that run another, with the number of their own arguments."""


def _names(text: str) -> tuple[str, ...]:
    return tuple(" ".join(name.split()) for name in text.split(","))


_RUNNERS = _names("""uv run, poetry run, pipenv run, pdm run, hatch run, rye run, bundle exec, npx, bunx, pnpm exec,
    pnpm dlx, yarn exec, mise exec --, mise x --, direnv exec ., dotenv --""")


def bare(given: Sequence[str]) -> list[str]:
    """The words without assignments, timers and environment managers in front: what is really run."""
    left = list(given)
    while left:
        if _SET.match(left[0]):
            left = left[1:]
        elif left[0] in _WRAPPERS:
            skip, left = _WRAPPERS[left[0]], left[1:]
            while left and left[0].startswith("-"):
                left = left[1:]
            left = left[skip:]
        else:
            runner = next((r for r in _RUNNERS if " ".join(left).startswith(r + " ")), None)
            if runner is None:
                break
            left = left[len(runner.split()) :]
            while left and left[0].startswith("-"):
                left = left[1:]
    return left


def _table(rows: Mapping[Purpose, str]) -> Mapping[str, Purpose]:
    return {name: purpose for purpose, names in rows.items() for name in _names(names)}


# "program" or "program subcommand"; the longer one counts.
_PROGRAMS = _table({
    "test": """pytest, py.test, tox, nox, jest, vitest, mocha, rspec, phpunit, ctest, playwright, cypress, ava, karma,
        unittest, go test, gotestsum, cargo test, cargo nextest, npm test, npm t, yarn test, pnpm test, bun test,
        deno test, dotnet test, swift test, mix test, rails test, composer test, zig test, bazel test, bats, hatch test,
        mvn test, mvn verify, gradle test, gradle check, xcodebuild test, coverage, flutter test, dart test""",
    "lint": """mypy, pyright, pyre, ruff, ruff check, flake8, pylint, eslint, tsc, golangci-lint, shellcheck, rubocop,
        go vet, staticcheck, cargo clippy, cargo check, pre-commit, biome, biome check, stylelint, hadolint, actionlint,
        yamllint, markdownlint, deno lint, deno check, detekt, ktlint, checkstyle, swiftlint, bandit, semgrep, vulture,
        terraform validate, helm lint, gradle lint, buf lint, luacheck, credo, clang-tidy, dart analyze""",
    "format": """black, isort, prettier, gofmt, goimports, gofumpt, ruff format, cargo fmt, rustfmt, biome format,
        shfmt, go fmt, deno fmt, dotnet format, terraform fmt, mix format, clang-format, stylua, yapf, dprint""",
    "build": """go build, go generate, go install, go mod, cargo build, cargo doc, cmake, ninja, meson, docker build,
        docker-compose build, docker compose build, dotnet build, swift build, mix compile, bazel build, vite,
        webpack, rollup, esbuild, turbo, nx, mvn package, mvn compile, gradle build, zig build, hatch build, protoc,
        buf generate, mkdocs, sphinx-build, next build, npm pack, xcodebuild, goreleaser, gradle assemble,
        flutter build, build""",
    "deploy": """terraform plan, terraform apply, kubectl apply, kubectl rollout, helm install, helm upgrade,
        fly deploy, flyctl deploy, vercel, netlify, wrangler, serverless, sls, ansible-playbook, cdk, pulumi,
        npm publish, twine, cargo publish, docker push, firebase deploy, gcloud, aws, heroku, eb, sam, skaffold,
        gh workflow, gh release, docker compose up, docker-compose up, alembic, flyway, liquibase, prisma,
        drizzle-kit""",
    "install": """npm install, npm ci, npm i, yarn install, yarn add, pnpm install, pnpm add, pnpm i, bun install,
        pip install, pip3 install, uv sync, uv pip, uv add, poetry install, poetry add, pipenv install, bundle install,
        composer install, cargo add, cargo install, go get, brew, apt, apt-get, dnf, apk, mise install, hatch env,
        gem install, dotnet restore, pod install, flutter pub, mix deps.get, conda, asdf""",
    "run": """cargo run, go run, go tool, dotnet run, deno run, deno task, docker run, docker exec, docker compose,
        docker-compose, flask, django-admin, uvicorn, gunicorn, rails, rake, streamlit, swift run, act, air, hugo,
        jekyll, next, cargo bench, npm start, yarn start, pnpm start, flutter run, psql, sqlite3""",
    "commit": "git commit, git merge, git cherry-pick, git revert, jj commit, hg commit, gh pr create, gh pr merge",
    "look": """ls, cat, head, tail, less, more, wc, grep, rg, egrep, fgrep, ag, ack, find, fd, tree, pwd, which, type,
        whereis, file, stat, du, df, sort, uniq, cut, tr, awk, sed, jq, yq, diff, cmp, strings, xxd, hexdump, od, echo,
        printf, date, env, printenv, whoami, id, uname, hostname, ps, top, lsof, man, bat, git status, git log,
        git diff, git show, git branch, git blame, git ls-files, git remote, git rev-parse, git reflog, git config,
        git stash, git fetch, git grep, git merge-base, git rev-list, git cat-file, git ls-tree, git tag, git worktree,
        git describe, git ls-remote, git shortlog, git for-each-ref, gh pr view, gh pr list, gh pr diff, gh pr checks,
        gh issue, gh api, gh run, gh repo, gh search, gh auth, curl, wget, kubectl get, kubectl describe, kubectl logs,
        docker ps, docker logs, docker images, docker inspect, go doc, go list, go env, go version, npm ls, npm view,
        pip show, pip list, pip freeze, cargo tree, cargo metadata, mise tasks, mise ls, read, true, false, test, [""",
})  # fmt: skip
_TASKS = _names("""make, gmake, just, task, mise run, mise task run, mise r, npm run, npm run-script, yarn run, yarn,
    pnpm run, pnpm, bun run, rake, gradle, gradlew, mvn, mvnw, invoke, inv, composer run, composer, ant, grunt, gulp,
    lerna run, nx run, turbo run, deno task, mage, poe, hatch run, pdm run, manage.py, bazel run, sbt, lein,
    cabal, stack""")
"""Runners of named tasks: the name of the task tells what it is for."""
_INTERPRETERS = _names("""python, python3, bash, sh, zsh, node, ruby, perl, tsx, ts-node, php, pwsh, powershell,
    Rscript, lua, osascript, deno, bun, elixir, julia, groovy""")
_BY_NAME: tuple[tuple[Purpose, re.Pattern[str]], ...] = (
    ("format", re.compile(r"(?:^|[^a-z])(?:fmt|format|prettier)")),
    ("lint", re.compile(r"(?:^|[^a-z])(?:lint|vet|typecheck|type-check|types|check-types|mypy|clippy|tsc)")),
    ("test", re.compile(r"(?:^|[^a-z])(?:tests?|specs?|e2e|check|verify|coverage|integration|unit|ci)(?:[^a-z]|$)")),
    ("deploy", re.compile(r"(?:^|[^a-z])(?:deploy|release|publish|ship|migrate|rollout|provision)")),
    ("install", re.compile(r"(?:^|[^a-z])(?:install|setup|bootstrap|deps)")),
    ("build", re.compile(r"(?:^|[^a-z])(?:build|compile|dist|bundle|generate|codegen|docs?)")),
)
CHECKS: frozenset[Purpose] = frozenset({"test", "lint", "format", "build"})
"""Commands that fail when the code is wrong, which says nothing against the command."""
WORTHWHILE: frozenset[Purpose] = frozenset({"test", "lint", "format", "build", "deploy", "install", "run"})


@lru_cache(4_096)  # the same few commands are run all day
def purpose(stage: str) -> Purpose:
    """What a simple command is for.

    >>> purpose("CI=1 timeout 60 mise run test:ci"), purpose("git log --oneline"), purpose("./scripts/deploy.sh prod")
    ('test', 'look', 'deploy')
    """
    run = bare(words(stage))
    if not run:
        return "other"
    name = run[0].rpartition("/")[2]
    plain = [word for word in run[1:] if not word.startswith(("-", "+"))]
    if name == "git" and "-C" in run[1:2]:
        plain = plain[1:]
    asked = [" ".join((name, *plain[:many])) for many in (2, 1, 0)]
    for known in asked:
        if known in _PROGRAMS and not _is_task(known, plain):
            return _PROGRAMS[known]
    if any(known in _TASKS for known in asked):
        return _named(" ".join(plain)) or "run"
    if name in _INTERPRETERS:
        return _interpreted(run)
    script = script_of(run)
    return (_named(script.rpartition("/")[2]) or "run") if script else "other"


def _is_task(known: str, plain: Sequence[str]) -> bool:
    return known in ("yarn", "pnpm") and bool(plain)


def _interpreted(run: Sequence[str]) -> Purpose:
    """``python -m pytest`` is pytest; ``python -c`` is nothing to remember; else the script's name tells."""
    if "-m" in run[1:3]:
        module = " ".join(run[run.index("-m") + 1 :])
        found = purpose(module) if module else "other"
        return "run" if found in ("other", "look") and module else found
    script = script_of(run)
    return (_named(script.rpartition("/")[2]) or "run") if script else "other"


def _named(name: str) -> Purpose | None:
    return next((purpose for purpose, pattern in _BY_NAME if pattern.search(name.casefold())), None)


_SCRIPT = re.compile(
    r"[\w./@+-]+\.(?:sh|bash|zsh|py|[cm]?js|m?ts|rb|pl|php|ps1|bat|cmd|lua|exs|jl|r|groovy)$", re.IGNORECASE
)
_SCRIPT_FOLDERS = ("scripts/", "script/", "hack/", "tools/", "ci/", "dev/")
"""Where a program without a suffix is a script; elsewhere it may be what a build has made."""
_WRAPPER_SCRIPTS = ("gradlew", "mvnw", "configure")


def script_of(run: Sequence[str]) -> str:
    """The file that is run, as it is written: the program itself or an interpreter's first argument; or ""."""
    name = run[0].rpartition("/")[2] if run else ""
    if name in _INTERPRETERS or re.fullmatch(r"python3?\.\d+", name):
        first = next((word for word in run[1:] if not word.startswith("-") and word not in ("run",)), "")
        if any(word in ("-c", "-e", "-m", "--eval", "-") for word in run[1:3]):
            return ""
        return first if _SCRIPT.search(first) or first.removeprefix("./").startswith(_SCRIPT_FOLDERS) else ""
    written = run[0].removeprefix("./") if run else ""
    own = "/" in run[0] if run else False
    is_script = _SCRIPT.search(written) or written.startswith(_SCRIPT_FOLDERS) or written in _WRAPPER_SCRIPTS
    return written if own and is_script and not written.startswith("/") else ""


def shows(command: str) -> bool:
    """Whether a whole command line only shows what is there anyway, so that its output is no news."""
    return all(purpose(part.stages[0]) == "look" or part.stages[0].startswith("cd ") for part in parts(command))


def purposes(command: str) -> frozenset[Purpose]:
    """What the parts of a command line are for."""
    return frozenset(purpose(part.stages[0]) for part in parts(command))


def hides_exit(command: str) -> bool:
    """Whether the exit code of the whole is not that of what matters in it: a pipe, ``||``, ``;``."""
    found = parts(command)
    return any(len(part.stages) > 1 or part.joint in ("||", "&") for part in found) or any(
        part.joint == ";" for part in found[1:]
    )


_REDIRECTED = re.compile(r"\s*(?:[12&]?>{1,2}\s*(?:&[12]|/dev/null|[\w./-]+\.(?:log|txt|out))|<\s*/dev/null)")
_SHOWN_ONLY = re.compile(
    r"""^(?:[A-Za-z_]\w*=(?:""|'')?\s+
    |(?:CI|FORCE_COLOR|NO_COLOR|CLICOLOR(?:_FORCE)?|TERM|PAGER|GIT_PAGER|COLUMNS|LINES|LANG|LC_\w+|PYTHONUNBUFFERED
    |PYTHONDONTWRITEBYTECODE|TZ)=\S*\s+
    |(?:g?timeout)\s+(?:-\S+\s+)*\d+[smh]?\s+|(?:time|nohup|command)\s+)""",
    re.VERBOSE,
)


def normal(stage: str, root: str) -> str:
    """A simple command as it is run from the project's root: paths of the project relative, without redirections,
    timers and settings that only change what is shown.

    >>> normal("CI=1 timeout 60 pytest /home/me/app/tests -q 2>&1", "/home/me/app")
    'pytest tests -q'
    """
    text = " ".join(_REDIRECTED.sub("", stage.replace("\\\n", " ")).split())
    while (shorter := _SHOWN_ONLY.sub("", text)) != text:
        text = shorter
    home = root.rstrip("/")
    if home:
        text = re.sub(rf"{re.escape(home)}/(?=[\w.*@-])", "", text)
        text = re.sub(rf"{re.escape(home)}/?(?![\w/.-])", ".", text)
    return text.removeprefix("cd . && ")
