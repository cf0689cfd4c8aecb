"""Settings: defaults < user file < project file < environment < flags; every mistake is named (G1, F4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from grounded_mcp.config import _CHOICES, Values, defaults, load
from grounded_mcp.errors import ConfigError
from grounded_mcp.models.catalog import PROVIDERS
from grounded_mcp.recall.fusion import FusionOptions
from grounded_mcp.settings import Settings, settings
from tests.candidates import BOOSTS, RENDER, SHAPE

REPOSITORY = Path(__file__).parent.parent
WEIGHTS = {"lexical": 1.0, "vector": 1.0, "graph": 0.3, "temporal": 0.5}


class Machine:
    """A data directory, a project folder and an environment."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = root / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.env = {"GROUNDED_HOME": str(self.home)}

    def user(self, text: str) -> None:
        (self.home / "config.toml").write_text(text, encoding="utf-8")

    def of_project(self, text: str) -> None:
        (self.project / ".grounded.toml").write_text(text, encoding="utf-8")

    def load(self, flags: Mapping[str, object] | None = None, **env: str) -> Values:
        return load(cwd=self.project, flags=flags, env=self.env | env)

    def refused(self, flags: Mapping[str, object] | None = None, **env: str) -> str:
        with pytest.raises(ConfigError) as error:
            self.load(flags, **env)
        assert error.value.remedy
        return str(error.value)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def shipped() -> Settings:
    return settings(load(cwd=REPOSITORY / "tests", env={"GROUNDED_HOME": "/nonexistent"}))


def test_the_shipped_numbers_are_the_ones_of_the_reference_page() -> None:
    ours = shipped()
    assert ours.recall.boosts == BOOSTS
    assert ours.recall.shape == SHAPE
    assert ours.render == RENDER
    assert (ours.ask.limit, ours.ask.max_limit, ours.ask.mode) == (20, 100, "hybrid")
    gather = ours.recall.lanes.gather
    assert (gather.candidate_factor, gather.candidate_minimum, gather.depth(20), gather.depth(5)) == (3, 30, 60, 30)
    assert ours.recall.lanes.fusion == FusionOptions("normalized", 60, "min_max", WEIGHTS)
    assert ours.facts.importance == 0.6
    assert ours.recall.lanes.floor is None


@pytest.mark.parametrize("stage", ["store", "embedding", "analyzer", "chunks", "documents", "redaction", "server"])
def test_the_defaults_of_a_stages_own_options_are_the_shipped_ones(stage: str) -> None:
    ours = getattr(shipped(), stage)
    expected = type(ours)()
    if stage == "embedding":
        expected = replace(expected, cache_dir=str(Path("/nonexistent/models")))
    for field in fields(ours):
        assert getattr(ours, field.name) == getattr(expected, field.name), field.name


def test_every_provider_that_may_be_configured_is_one_that_can_be_loaded() -> None:
    assert set(_CHOICES["embedding.provider"]) == {*PROVIDERS, "none"}


def test_each_layer_overrides_the_one_before(machine: Machine) -> None:
    said = [machine.load()["recall.limit"]]
    machine.user("[recall]\nlimit = 2")
    said.append(machine.load()["recall.limit"])
    machine.of_project("[recall]\nlimit = 3")
    said.append(machine.load()["recall.limit"])
    said.append(machine.load(GROUNDED_RECALL__LIMIT="4")["recall.limit"])
    said.append(machine.load({"recall.limit": 5}, GROUNDED_RECALL__LIMIT="4")["recall.limit"])
    assert said == [20, 2, 3, 4, 5]


def test_the_sources_are_named_in_the_order_they_apply(machine: Machine) -> None:
    machine.user("[recall]\nlimit = 2")
    machine.of_project("[recall]\nlimit = 3")
    assert machine.load({"recall.limit": 5}, GROUNDED_RECALL__LIMIT="4").places.sources == (
        "defaults",
        str(machine.home / "config.toml"),
        str(machine.project / ".grounded.toml"),
        "environment",
        "flags",
    )
    machine.user("")
    machine.of_project("# nothing")
    assert machine.load().places.sources == ("defaults",)


def test_a_layer_leaves_what_it_does_not_name(machine: Machine) -> None:
    machine.user("[recall.boosts]\ndoc_active = 1")
    values = machine.load()
    assert (values["recall.boosts.doc_active"], values["recall.boosts.session_half_life_days"]) == (1, 30.0)
    assert values["recall.boosts.fact_importance"] == 1.5


def test_names_may_be_written_in_camel_case(machine: Machine) -> None:
    machine.user("[recall]\nmaxLimit = 50\ntieBreakOrder = ['fact', 'doc', 'session']\n[recall.laneShare]\nfact = 1")
    machine.of_project("recall.boosts.sessionHalfLifeDays = 7")
    ours = settings(machine.load())
    assert (ours.ask.max_limit, ours.recall.shape.fact_share, ours.recall.boosts.session_half_life_days) == (50, 1, 7)
    assert ours.recall.shape.tie_break_order == ("fact", "doc", "session")


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("GROUNDED_RECALL__FUSION__MODE", "rrf", "recall.fusion.mode", "rrf"),
        ("GROUNDED_RECALL__LANE_SHARE__FACT", "0.5", "recall.lane_share.fact", 0.5),
        ("GROUNDED_RECALL__LANE_SHARE__FACT", "1", "recall.lane_share.fact", 1),
        ("GROUNDED_RECALL__VECTOR__FLOOR", "0.3", "recall.vector.floor", 0.3),
        ("GROUNDED_RECALL__VECTOR__FLOOR", "auto", "recall.vector.floor", "auto"),
        ("GROUNDED_RECALL__LEXICAL__STEMMING", "false", "recall.lexical.stemming", False),
        ("GROUNDED_RECALL__TIE_BREAK_ORDER", '["fact", "doc"]', "recall.tie_break_order", ["fact", "doc"]),
        ("GROUNDED_REDACTION__ENGINE", "re", "redaction.engine", "re"),
        ("GROUNDED_PROJECT__KEY", "12", "project.key", "12"),
        ("GROUNDED_EMBEDDING__PROVIDER", "none", "embedding.provider", "none"),
    ],
)
def test_an_environment_variable_sets_any_setting_in_its_type(
    machine: Machine, variable: str, text: str, name: str, value: Any
) -> None:
    assert machine.load(**{variable: text})[name] == value


def test_variables_of_others_are_left_alone(machine: Machine) -> None:
    assert machine.load(GROUNDED="x", GROUNDED_THEORY="y", OTHER__RECALL__LIMIT="z").places.sources == ("defaults",)


def test_an_unknown_name_is_refused_with_the_nearest_one(machine: Machine) -> None:
    machine.user("[recall]\nlimmit = 5")
    assert machine.refused() == (
        f"{machine.home / 'config.toml'}: there is no setting recall.limmit. Did you mean recall.limit?"
    )
    machine.user("")
    assert machine.refused(GROUNDED_RECALL__LANE_SHARE__FACTS="1") == (
        "GROUNDED_RECALL__LANE_SHARE__FACTS: there is no setting recall.lane_share.facts. "
        "Did you mean recall.lane_share.fact?"
    )
    assert machine.refused({"zzz": 1}) == "flags: there is no setting zzz. config.toml lists every setting."


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("recall.limit = '5'", "recall.limit = '5' has the wrong type"),
        ("recall.limit = 2.5", "recall.limit = 2.5 has the wrong type"),
        ("recall.limit = true", "recall.limit = True has the wrong type"),
        ("recall.limit = 1979-05-27", "has the wrong type"),
        ("recall.limit.x = 1", "there is no setting recall.limit.x"),
        ("recall = 1", "there is no setting recall"),
        ("recall.lexical.stemming = 1", "recall.lexical.stemming = 1 has the wrong type"),
        ("recall.tie_break_order = 'doc'", "recall.tie_break_order = 'doc' has the wrong type"),
        ("recall.tie_break_order = ['doc', 1]", "recall.tie_break_order = ['doc', 1] is unknown"),
        ("recall.tie_break_order = ['docs']", "recall.tie_break_order = ['docs'] is unknown"),
        ("recall.vector.floor = 'high'", "recall.vector.floor = 'high' is unknown"),
        ("recall.mode = 'semantic'", "recall.mode = 'semantic' is unknown"),
        ("recall.fusion.mode = ['rrf']", "recall.fusion.mode = ['rrf'] has the wrong type"),
        ("embedding.provider = 'cloud'", "embedding.provider = 'cloud' is unknown"),
        ("recall.fusion.k = 0", "recall.fusion.k = 0 is out of range"),
        ("recall.limit = 0", "recall.limit = 0 is out of range"),
        ("recall.limit = -1", "recall.limit = -1 is out of range"),
        ("recall.limit = 9223372036854775807", "is out of range"),
        ("recall.boosts.doc_active = -0.5", "recall.boosts.doc_active = -0.5 is out of range"),
        ("recall.boosts.doc_active = nan", "recall.boosts.doc_active = nan is out of range"),
        ("recall.boosts.doc_active = inf", "recall.boosts.doc_active = inf is out of range"),
        ("recall.boosts.session_half_life_days = 0", "is out of range"),
        ("chunks.max_tokens = 1", "chunks.max_tokens = 1 is out of range"),
        ("embedding.batch_size = 0", "embedding.batch_size = 0 is out of range. Give a number from 1 to 4096."),
        ("embedding.query_timeout_s = 0", "embedding.query_timeout_s = 0 is out of range"),
        ("recall.lexical.max_terms = 65", "recall.lexical.max_terms = 65 is out of range. Give a number from 1 to 64."),
        ("server.port = 65536", "server.port = 65536 is out of range. Give a number from 0 to 65535."),
        ("server.max_line_bytes = 0", "server.max_line_bytes = 0 is out of range"),
        ("server.max_body_bytes = 0", "server.max_body_bytes = 0 is out of range"),
        ("server.max_reply_bytes = 0", "server.max_reply_bytes = 0 is out of range"),
        ("server.grace_seconds = 0", "server.grace_seconds = 0 is out of range"),
        ("server.max_sessions = 0", "server.max_sessions = 0 is out of range"),
        ("server.session_idle_seconds = 0", "server.session_idle_seconds = 0 is out of range"),
        ("server.max_connections = 0", "server.max_connections = 0 is out of range"),
        ("server.request_seconds = 0", "server.request_seconds = 0 is out of range"),
        ("facts.importance = 1.5", "facts.importance = 1.5 is out of range"),
        ("render.page_chars = 0", "render.page_chars = 0 is out of range"),
        ("project.folders.'/home/me' = 5", "project.folders./home/me = 5 has the wrong type"),
        ("recall.limit = ", "is not valid TOML"),
        ("recall.limit = 1\nrecall.limit = 2", "is not valid TOML"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_with_the_file_and_the_name(
    machine: Machine, line: str, why: str
) -> None:
    machine.user(line)
    message = machine.refused()
    assert message.startswith(str(machine.home / "config.toml"))
    assert why in message


@pytest.mark.parametrize(
    ("variable", "text"),
    [("GROUNDED_RECALL__LIMIT", "many"), ("GROUNDED_RECALL__LIMIT", ""), ("GROUNDED_RECALL__MODE", "all")],
)
def test_a_variable_that_cannot_be_used_is_named(machine: Machine, variable: str, text: str) -> None:
    assert machine.refused(**{variable: text}).startswith(f"{variable}: recall.")


@pytest.mark.parametrize(
    "line",
    [
        "store.location = '/tmp/evil.db'",
        "embedding.model = '/tmp/evil'",
        "embedding.allow_download = true",
        "project.key = 'other'",
        "project.folders.'/' = 'other'",
        "facts.importance = 1",
        "render.max_chars = 100000",
        "sync.max_file_bytes = 1",
        "sync.ignored = ['*']",
        "recall.lexical.stemming = false",
        "recall = 1",
        "unknown = 1",
    ],
)
def test_g1_a_projects_file_sets_nothing_but_ranking_and_what_to_leave_out(machine: Machine, line: str) -> None:
    machine.of_project("recall.limit = 3\n" + line if "=" in line and not line.startswith("recall =") else line)
    values = machine.load()
    assert values.flat == defaults()
    assert values.places.sources[-1].startswith(f"{machine.project / '.grounded.toml'} (ignored: it sets ")
    assert "may set only [recall.*] and sync.ignore" in values.places.sources[-1]


def test_g1_a_projects_file_may_leave_out_more_files_and_tune_ranking(machine: Machine) -> None:
    machine.user("sync.ignore = ['private/']")
    machine.of_project("sync.ignore = ['gen/', '!private/']\n[recall.fusion]\nmode = 'rrf'")
    values = machine.load()
    assert values["sync.ignore"] == ["gen/", "!private/", "private/"]
    assert values["recall.fusion.mode"] == "rrf"


def test_g1_a_projects_file_applies_below_it_only_as_far_as_its_git_checkout(machine: Machine) -> None:
    machine.of_project("recall.limit = 3")
    inside = machine.project / "src" / "deep"
    inside.mkdir(parents=True)
    assert load(cwd=inside, env=machine.env)["recall.limit"] == 20
    (machine.project / ".git").mkdir()
    assert load(cwd=inside, env=machine.env)["recall.limit"] == 3
    (machine.project / "src" / ".git").mkdir()
    assert load(cwd=inside, env=machine.env)["recall.limit"] == 20


def test_a_projects_file_above_a_relative_folder_is_found(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.of_project("recall.limit = 3")
    (machine.project / ".git").mkdir()
    (machine.project / "src").mkdir()
    monkeypatch.chdir(machine.project / "src")
    assert load(folder=Path(), env=machine.env)["recall.limit"] == 3


def test_a_projects_file_is_checked_like_any_other(machine: Machine) -> None:
    for text in ("recall.limit = 0", "recall.limits = 3", "no toml at all"):
        machine.of_project(text)
        values = machine.load()
        assert values["recall.limit"] == 20
        assert values.places.sources[-1].startswith(f"{machine.project / '.grounded.toml'} (ignored: ")


def test_a_project_that_a_client_names_is_preferred_to_the_working_directory(machine: Machine, tmp_path: Path) -> None:
    machine.of_project("recall.limit = 3")
    values = load(cwd=tmp_path, env=machine.env | {"CLAUDE_PROJECT_DIR": str(machine.project)})
    assert (values["recall.limit"], values.project_dir) == (3, machine.project)


def test_another_user_file_is_read_instead_when_named(machine: Machine, tmp_path: Path) -> None:
    machine.user("recall.limit = 2")
    other = tmp_path / "other.toml"
    other.write_text("\ufeffrecall.limit = 7\r\n", encoding="utf-8")
    assert machine.load(GROUNDED_CONFIG=str(other))["recall.limit"] == 7
    assert machine.load(GROUNDED_CONFIG="")["recall.limit"] == 2


def test_a_named_file_that_is_missing_is_refused(machine: Machine, tmp_path: Path) -> None:
    assert machine.refused(GROUNDED_CONFIG=str(tmp_path / "gone.toml")).startswith("GROUNDED_CONFIG names ")
    assert machine.refused(GROUNDED_CONFIG=str(tmp_path)).startswith("GROUNDED_CONFIG names ")
    assert machine.refused(GROUNDED_CONFIG="~nobody-of-that-name/x").startswith("GROUNDED_CONFIG names ")
    assert machine.refused(GROUNDED_HOME="~nobody-of-that-name").startswith("GROUNDED_HOME names ")


def test_a_file_that_cannot_be_read_is_refused(machine: Machine) -> None:
    (machine.home / "config.toml").write_bytes(b"recall.limit = 5 # \xff\xfe")
    assert "cannot be read" in machine.refused()
    (machine.home / "config.toml").unlink()
    (machine.home / "config.toml").mkdir()
    assert "cannot be read" in machine.refused()


def test_a_data_directory_that_is_not_there_means_defaults(machine: Machine, tmp_path: Path) -> None:
    values = machine.load(GROUNDED_HOME=str(tmp_path / "gone"))
    assert values.places.home == tmp_path / "gone"
    assert values.places.store == str(tmp_path / "gone" / "memory.db")
    assert not (tmp_path / "gone").exists()


def test_the_store_is_named_by_variable_then_setting_then_data_directory(machine: Machine) -> None:
    assert machine.load().places.store == str(machine.home / "memory.db")
    machine.user("store.location = '/data/a.db'")
    assert machine.load().places.store == "/data/a.db"
    assert machine.load(GROUNDED_STORE="/data/b.db").places.store == "/data/b.db"


def test_a_table_of_folders_keeps_the_users_own_keys(machine: Machine) -> None:
    machine.user("[project.folders]\n'/home/me/monoRepo/api.v2' = 'api'")
    assert settings(machine.load()).project_folders == {"/home/me/monoRepo/api.v2": "api"}


def test_every_default_passes_its_own_check(machine: Machine) -> None:
    assert machine.load(dict(defaults())).flat == defaults()
