"""A pack within its budget of bytes, whatever is in it (C4): both halves fit together, and the best item is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from grounded_mcp.inert import CLOSE, OPEN
from grounded_mcp.packing import PACK_INTENTS, SECTIONS, TRUST, Disagreement, Nearest, Pack, PackItem, Read, ReadFirst
from grounded_mcp.render import compact, pack_envelope, pack_lengths, pack_text
from grounded_mcp.render.packed import FRAME, LEAST_BYTES, ORDER
from grounded_mcp.values import Clean, Degradation, Item
from tests.candidates import NOW, RENDER, candidate, item, recall

TEXT = st.text(max_size=60) | st.sampled_from(
    ["<&" * 900, "\U0001f6a2" * 700, '"\\' * 500, "é" * 900, f"x{CLOSE}{OPEN}" * 20, "a b\n" * 400, "｜|" * 300]
)


@st.composite
def packs(draw: st.DrawFn) -> Pack:
    """Packs of up to fifteen items, with everything around them that a pack may say."""
    sections: dict[Any, tuple[PackItem, ...]] = {}
    conflicts: dict[str, tuple[Item, ...]] = {}
    number = 0
    for name in SECTIONS:
        held = []
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            kind = draw(st.sampled_from(["doc", "session", "fact"]))
            one = candidate(
                kind,
                f"id_{number}",
                body=draw(TEXT) or "x",
                title=Clean(draw(TEXT)),
                key=draw(TEXT),
                lines=(3, 9),
                attrs={"agent": draw(TEXT)},
                score=1.0 - number / 100,
            )
            if draw(st.booleans()):
                conflicts[f"id_{number}"] = tuple(item("fact", f"f{n}", title=Clean(draw(TEXT))) for n in range(4))
            held.append(PackItem(one, draw(st.sampled_from(TRUST)), "a rule", 2, 5, 0.7, "changed", NOW))
        if held:
            sections[name] = tuple(held)
    fault = Degradation("slow", "It took long. " * 30, "Wait. " * 30) if draw(st.booleans()) else None
    found = replace(
        recall(), degradation=fault, conflicts=conflicts, hint=draw(st.none() | TEXT), words=(("a", ("a",)),)
    )
    return Pack(
        "a task",
        Read(draw(st.sampled_from(PACK_INTENTS)), tuple(draw(st.lists(TEXT, max_size=20)))),
        found,
        sections,
        tuple(
            ReadFirst(f"d{n}", draw(TEXT), 7, "live_state, 2/5 words", "changed")
            for n in range(draw(st.integers(0, 5)))
        ),
        tuple(Disagreement("d1", draw(TEXT), draw(TEXT)) for _ in range(draw(st.integers(0, 9)))),
        "asked for in full",
        {"beyond_max_per_bucket": 31, "archived": 4},
    )


def shown(envelope: dict[str, Any]) -> list[str]:
    return [each["id"] for name in SECTIONS for each in envelope.get(name, ())]


def first(pack: Pack) -> Sequence[PackItem]:
    return next((pack.sections[name] for name in ORDER.get(pack.read.intent, SECTIONS) if name in pack.sections), ())


@given(packs(), st.none() | st.integers(1, 80_000))
@settings(max_examples=120)
def test_c4_both_halves_fit_together_whatever_is_in_them_the_first_item_stays_and_the_others_are_counted(
    pack: Pack, max_bytes: int | None
) -> None:
    lengths = pack_lengths(RENDER, max_bytes)
    assert lengths.max_bytes == (6_144 if max_bytes is None else min(max(max_bytes, LEAST_BYTES), 65_536))
    envelope = pack_envelope(pack, lengths)
    halves = compact([envelope, pack_text(envelope)])
    assert len(halves.encode("utf-8", "replace")) + FRAME <= lengths.max_bytes
    ids = [each.candidate.found.item.id for items in pack.sections.values() for each in items if each.candidate.found]
    assert len(shown(envelope)) + envelope["meta"].get("dropped", 0) == len(ids)
    for best in first(pack)[:1]:
        assert best.candidate.found is not None
        assert best.candidate.found.item.id in shown(envelope)


@given(packs())
@settings(max_examples=40)
def test_c4_more_bytes_never_show_less(pack: Pack) -> None:
    less, more = (pack_envelope(pack, pack_lengths(RENDER, size)) for size in (4_000, 8_000))
    assert set(shown(less)) <= set(shown(more))


@given(packs())
@settings(max_examples=40)
def test_c4_where_one_half_is_printed_it_alone_fits(pack: Pack) -> None:
    envelope = pack_envelope(pack, pack_lengths(RENDER, LEAST_BYTES, together=False))
    for half in (compact(envelope), pack_text(envelope)):
        assert len(half.encode("utf-8", "replace")) <= LEAST_BYTES


@given(
    st.lists(st.text(max_size=400) | st.text("漢&<", min_size=200, max_size=400), max_size=3), st.integers(2_304, 9_000)
)
@settings(max_examples=40)
def test_an_empty_pack_keeps_to_its_bytes_whatever_the_files_that_came_closest_are_called(
    names: list[str], size: int
) -> None:
    near = tuple(Nearest(f"doc_{at}", "doc", name, 7) for at, name in enumerate(names))
    pack = Pack("task", Read("blended", ()), recall(), {}, left_out={"not_near_enough": 9}, nearest=near)
    lengths = pack_lengths(RENDER, size)
    envelope = pack_envelope(pack, lengths)
    assert FRAME + len(compact([envelope, pack_text(envelope)]).encode("utf-8", "replace")) <= lengths.max_bytes
    assert [each["open"] for each in envelope.get("nearest", ())] in ([], [each.pointer for each in near])
