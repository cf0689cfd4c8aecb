"""Whose memory may answer (R9, T30, case 60)."""

from __future__ import annotations

from grounded_mcp.recall.scope import admit, everything
from grounded_mcp.values import Project, ScopeFilter


def project(key: str, name: str | None = None) -> Project:
    return Project(key, name or key.rpartition("/")[2], "named", f"/home/me/{key}")


ALPHA = project("host/me/alpha")
BETA = project("host/me/beta")
OTHER_ALPHA = project("path:/tmp/alpha", "alpha")
STORED = (
    "global",
    "project:host/me/alpha",
    "project:host/me/beta",
    "machine:laptop",
    "agent:reviewer",
    "project:gamma",
)


def filter_of(
    declared: Project | None = None,
    named: list[str] | None = None,
    known: tuple[Project, ...] = (ALPHA, BETA),
    stored: tuple[str, ...] = STORED,
) -> ScopeFilter:
    return admit(ALPHA, declared=declared, fact_scopes=named, stored=stored, known=known)


def test_r9_a_declared_project_admits_global_and_its_own_rows_only() -> None:
    found = filter_of(BETA)
    assert found.facts == {"global", "project:host/me/beta", "project:beta"}
    assert found.others == {"global", "project:host/me/beta"}
    assert (found.source, found.declared) == ("project", "project:host/me/beta")


def test_t30_a_plain_name_that_two_projects_share_belongs_to_neither() -> None:
    assert filter_of(ALPHA, known=(ALPHA, OTHER_ALPHA)).facts == {"global", "project:host/me/alpha"}


def test_case_60_an_unknown_project_admits_nothing_but_global() -> None:
    found = filter_of(project("nowhere"))
    assert found.facts == {"global", "project:nowhere"}
    assert found.others == {"global", "project:nowhere"}


def test_r9_named_fact_scopes_are_admitted_exactly_and_global_always() -> None:
    found = filter_of(named=["machine:laptop", "project:host/me/beta"])
    assert found.facts == {"global", "machine:laptop", "project:host/me/beta"}
    assert found.others == {"global", "project:host/me/alpha"}
    assert (found.source, found.declared) == ("factScopes", None)


def test_r9_named_fact_scopes_keep_the_declared_project_for_documents_and_for_ranking() -> None:
    found = filter_of(BETA, named=[])
    assert found.facts == {"global"}
    assert found.others == {"global", "project:host/me/beta"}
    assert found.declared == "project:host/me/beta"


def test_r9_with_nothing_named_machine_agent_and_unclaimed_facts_pass_and_other_projects_do_not() -> None:
    found = filter_of()
    assert found.facts == {"global", "project:host/me/alpha", "machine:laptop", "agent:reviewer", "project:gamma"}
    assert found.others == {"global", "project:host/me/alpha"}
    assert (found.source, found.declared) == ("folder", None)


def test_with_nothing_named_facts_under_another_projects_plain_name_do_not_pass() -> None:
    assert "project:beta" not in (filter_of(stored=(*STORED, "project:beta")).facts or ())
    assert "project:alpha" in (filter_of(stored=(*STORED, "project:alpha")).facts or ())


def test_the_folders_own_scope_passes_before_anything_is_stored_or_known() -> None:
    assert filter_of(known=(), stored=()).facts == {"global", "project:host/me/alpha"}


def test_r9_every_project_lifts_the_filter_and_named_fact_scopes_still_filter_facts() -> None:
    def anywhere(named: list[str] | None) -> ScopeFilter:
        return admit(ALPHA, declared=None, fact_scopes=named, stored=STORED, known=(ALPHA, BETA), anywhere=True)

    assert anywhere(None) == everything() == ScopeFilter(facts=None, others=None, source="none")
    assert anywhere(["agent:reviewer"]) == ScopeFilter(frozenset({"global", "agent:reviewer"}), None, "factScopes")
