"""Collections with questions whose answers are known, read from disk. ``docs/eval.md`` describes every shape.

A reader turns one published shape into the same few nouns; the table at the end tells them apart. Knows nothing about
stores, models or how an answer is judged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from grounded_mcp.errors import InputError
from grounded_mcp.values import Kind
from grounded_mcp.when import parse_time

ALL = "all"
TURN_SECONDS = 30.0
"""LoCoMo dates sessions, not turns: they follow one another at this distance."""


@dataclass(frozen=True, slots=True)
class Document:
    """One thing that can be an answer. ``path``: the file that a ``doc`` is stored as; ``at`` in epoch seconds."""

    id: str
    text: str
    kind: Kind = "doc"
    path: str = ""
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """``gold``: grades by document id. ``groups``: the rows it counts in. ``cluster``: what the bootstrap draws."""

    text: str
    gold: Mapping[str, float]
    groups: tuple[str, ...] = (ALL,)
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class Collection:
    """What goes into one store: documents, or a folder of Claude Code's ``transcripts``."""

    questions: tuple[Question, ...]
    documents: tuple[Document, ...] = ()
    transcripts: Path | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """Its collections are asked each in a store of its own, and counted together."""

    name: str
    shape: str
    collections: tuple[Collection, ...]
    groups: tuple[str, ...] = (ALL,)
    """In the order of the report."""


def read(path: Path) -> Dataset:
    """The data set at ``path``: a folder, or the file with its questions.

    Raises: InputError for a folder of no known shape, one with several files of questions, or a malformed file.
    """
    folder = path.parent if path.is_file() else path
    shape = next((shape for shape in SHAPES if (folder / shape.mark).exists()), None)
    shape = shape or next((each for each in SHAPES if any(folder.glob(each.mark))), None)
    if shape is None:
        known = ", ".join(f"{each.name} ({each.mark})" for each in SHAPES)
        raise InputError("dataset", f"{str(path)!r} is no data set of a known shape.", f"Known by a file: {known}.")
    chosen = path if path.is_file() else _only(folder, shape)
    try:
        dataset = shape.read(folder, chosen)
    except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        wrong = f"{str(chosen)!r} cannot be read as {shape.name}: {error!r}."
        raise InputError("dataset", wrong, "docs/eval.md describes the shape.") from error
    if not any(collection.questions for collection in dataset.collections):
        raise InputError("dataset", f"{str(chosen)!r} has no question with an answer in it.", "See docs/eval.md.")
    return dataset


def _only(folder: Path, shape: Shape) -> Path:
    found = sorted(folder.glob(shape.questions))
    if len(found) != 1:
        names = ", ".join(each.name for each in found) or f"none like {shape.questions}"
        raise InputError("dataset", f"{str(folder)!r} has {len(found)} files of questions: {names}.", "Name one file.")
    return found[0]


# --- the plain shape --------------------------------------------------------------------------------------


def _plain(folder: Path, chosen: Path) -> Dataset:
    documents = tuple(_document(each) for each in _lines(folder / "documents.jsonl"))
    questions = [
        Question(each["query"], _grades(each["gold"]), _plain_groups(each), str(each.get("cluster", "")))
        for each in _lines(chosen)
    ]
    named = dict.fromkeys(group for question in questions for group in question.groups)
    order = tuple(sorted(named, key=lambda group: group == ALL))
    return Dataset(folder.name, "plain", (Collection(_answered(questions, documents), documents),), order)


def _document(each: Mapping[str, Any]) -> Document:
    kind, id_ = each.get("kind", "doc"), str(each["id"])
    if kind not in ("doc", "session", "fact"):
        raise ValueError(f"kind {kind!r} is none of doc, session, fact")
    title = str(each.get("title", ""))
    text = f"# {title}\n\n{each['text']}" if title and kind == "doc" else str(each["text"])
    at = parse_time(each["at"], field="at", now=0.0) if "at" in each else None
    return Document(id_, text, kind, _inside(str(each.get("path") or f"{_name(id_)}.md")), at)


def _plain_groups(each: Mapping[str, Any]) -> tuple[str, ...]:
    return (str(each["group"]), ALL) if each.get("group") else (ALL,)


def _grades(gold: Mapping[str, float] | Sequence[object]) -> dict[str, float]:
    if isinstance(gold, Mapping):
        return {str(id_): float(grade) for id_, grade in gold.items()}
    if isinstance(gold, str):
        raise TypeError("gold is a text where a list of ids or an object of grades is needed")
    return {str(id_): 1.0 for id_ in gold}


# --- documentation and code -------------------------------------------------------------------------------


def _passages(folder: Path, chosen: Path) -> Dataset:
    """Sections with a ``chunk_link``, or files with their ``chunks``. The gold is one of these, so each is a document
    of its own: passages of one document are one result."""
    documents = tuple(
        document
        for each in _json(folder / "documents.json")
        for document in (_chunks(each) if "chunks" in each else [_section(each)])
    )
    questions = [Question(each["query"], _grades(each["gold"])) for each in _json(chosen)]
    return Dataset(folder.name, "passages", (Collection(_answered(questions, documents), documents),))


def _section(each: Mapping[str, Any]) -> Document:
    heading, text = each["chunk_heading"], each["text"]
    body = text.removeprefix(heading).lstrip("\n") if text.startswith(heading) else text
    page, _, anchor = re.sub(r"^\w+://[^/]*/", "", each["chunk_link"]).partition("#")
    path = "/".join(filter(None, (page.strip("/"), anchor))) or "page"
    return Document(each["chunk_link"], f"# {heading}\n\n{body}", path=_inside(f"{path}.md"))


def _chunks(each: Mapping[str, Any]) -> Iterator[Document]:
    """A chunk is a file: the number stands in front, so that the path stays the one that was given."""
    for number, chunk in enumerate(each["chunks"]):
        yield Document(chunk["id"], chunk["text"], path=_inside(f"{number}/{each['path'].lstrip('/')}"))


def _functions(folder: Path, chosen: Path) -> Dataset:
    """CoSQA: functions without a file, so each is one that is named by its number."""
    functions = _json(folder / "code_idx_map.json")
    documents = tuple(Document(str(number), code, path=f"{number}.py") for code, number in functions.items())
    questions = [Question(each["doc"], {str(each["retrieval_idx"]): 1.0}) for each in _json(chosen) if each["label"]]
    return Dataset(folder.name, "functions", (Collection(_answered(questions, documents), documents),))


# --- talk and sessions ------------------------------------------------------------------------------------

_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
"""LoCoMo's; 5 is adversarial: nothing in the conversation answers it."""
_TURN_ID = re.compile(r"D\d+:\d+")


def _talk(folder: Path, chosen: Path) -> Dataset:
    """LoCoMo: the evidence is turns, so each turn is a session of its own, dated, with its speaker in the text."""
    collections = tuple(_conversation(each) for each in _json(chosen))
    return Dataset(folder.name, "talk", collections, (*_CATEGORIES.values(), ALL))


def _conversation(each: Mapping[str, Any]) -> Collection:
    talk = each["conversation"]
    documents = tuple(
        Document(turn["dia_id"], _said(turn), "session", at=_began(talk[f"{name}_date_time"]) + number * TURN_SECONDS)
        for name, turns in talk.items()
        if isinstance(turns, list)
        for number, turn in enumerate(turns)
    )
    questions = (
        Question(
            asked["question"],
            dict.fromkeys(_TURN_ID.findall(" ".join(asked["evidence"])), 1.0),
            (_CATEGORIES[asked["category"]], ALL),
        )
        for asked in each["qa"]
        if asked["category"] in _CATEGORIES
    )
    return Collection(_answered(questions, documents), documents)


def _said(turn: Mapping[str, Any]) -> str:
    picture = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"{turn['speaker']}: {turn['text']}{picture}"


def _began(text: str) -> float:
    """ "1:56 pm on 8 May, 2023", taken as UTC."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).timestamp()


def _sessions(folder: Path, chosen: Path) -> Dataset:
    """Transcripts, imported as any others. Time questions ask for a window, not for likeness: no row over all kinds."""
    questions = tuple(_about_sessions(each) for each in _lines(chosen))
    groups = tuple(dict.fromkeys(group for question in questions for group in question.groups))
    return Dataset(folder.name, "sessions", (Collection(questions, transcripts=folder / "sessions"),), groups)


def _about_sessions(each: Mapping[str, Any]) -> Question:
    kind = each["kind"]
    groups = (kind, f"{kind}, subject only") if each.get("form") == "subject" else (kind,)
    gold = _grades(each.get("grades") or each["gold_sessions"])
    return Question(each["query"], gold, groups, cluster=min(gold))


# --- reading ----------------------------------------------------------------------------------------------


def _answered(questions: Iterable[Question], documents: Sequence[Document]) -> tuple[Question, ...]:
    """The questions that have an answer here; ids of documents that are not there are no answers."""
    ids = {document.id for document in documents}
    if len(ids) < len(documents):
        raise ValueError("two documents have the same id")
    kept = []
    for question in questions:
        gold = {id_: grade for id_, grade in question.gold.items() if id_ in ids and grade > 0}
        if gold:
            kept.append(Question(question.text, gold, question.groups, question.cluster))
    return tuple(kept)


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _name(id_: str) -> str:
    return re.sub(r"[^\w.-]+", "_", id_)[:120].strip(".") or "document"


def _inside(path: str) -> str:
    """A relative path whose parts name nothing but themselves."""
    parts = [_name(part) for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    return "/".join(parts) or "document"


@dataclass(frozen=True, slots=True)
class Shape:
    """``mark``: the file a folder of this shape is known by; ``questions``: what its file of questions is called."""

    name: str
    mark: str
    questions: str
    read: Callable[[Path, Path], Dataset] = field(repr=False)


SHAPES: tuple[Shape, ...] = (
    Shape("plain", "documents.jsonl", "queries*.jsonl", _plain),
    Shape("passages", "documents.json", "queries*.json", _passages),
    Shape("functions", "code_idx_map.json", "queries*.json", _functions),
    Shape("sessions", "sessions", "queries*.jsonl", _sessions),
    Shape("talk", "conversations*.json", "conversations*.json", _talk),
)
