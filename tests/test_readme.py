"""The README's promises that a machine can check."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_ci_runs_the_test_command_as_the_readme_has_it() -> None:
    command = re.search(r"^(python3 -m venv .*pytest)$", README, re.M)
    assert command is not None
    assert command[1] in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_every_relative_link_leads_to_a_file() -> None:
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_no_text_tells_anyone_to_install_the_unrelated_package_of_the_commands_name() -> None:
    for path in [*ROOT.glob("*.md"), *(ROOT / "grounded_mcp").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(pip3? install|uvx?|pipx install|uv tool install) +(-\S+ +)*grounded-mcp", text), path


def test_the_distribution_and_the_command_have_their_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == "grounded-memory-mcp"
    assert list(project["scripts"]) == ["grounded-mcp", "grounded-memory-mcp"]
