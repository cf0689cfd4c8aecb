"""The analyzer, judged by what a full-text index finds with its tokens.

The index here is FTS5 with a tokenizer that splits at spaces and does nothing else, which is all that the analyzer
asks of an engine.
"""

import hashlib
import json
import threading
import time
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

import apsw
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grounded_mcp.text import Analyzer, AnalyzerOptions, estimate_tokens, fingerprint
from grounded_mcp.tokens import MAX_TOKEN

CASES = json.loads((Path(__file__).parent / "data/tokenizer/cases.json").read_text(encoding="utf-8"))
SPLIT_AT_SPACES = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* Co'"

STEMMED = Analyzer()
EXACT = Analyzer(AnalyzerOptions(stemming=False))


class Index:
    """An FTS5 table over the analyzer's tokens."""

    def __init__(self, documents: Mapping[int, str], analyzer: Analyzer = STEMMED) -> None:
        self.analyzer = analyzer
        self.db = apsw.Connection(":memory:")
        self.db.execute(f'create virtual table t using fts5(x, tokenize="{SPLIT_AT_SPACES}")')
        self.db.execute("create virtual table v using fts5vocab(t, instance)")
        self.db.executemany(
            "insert into t(rowid, x) values (?, ?)",
            [(key, " ".join(analyzer.index(text))) for key, text in documents.items()],
        )

    def search(self, query: str) -> list[int]:
        """Keys of the documents that match, best first."""
        terms = self.analyzer.query(query)
        if not terms:
            return []
        match = " OR ".join('"{}"'.format(term.replace('"', '""')) for term in terms)
        rows = self.db.execute("select rowid from t where t match ? order by bm25(t), rowid", (match,))
        return [key for (key,) in rows]

    def tokens(self) -> list[str]:
        """What FTS5 made of the documents, in order."""
        return [term for (term,) in self.db.execute("select term from v order by doc, offset")]


def found(query: str, *documents: str) -> list[str]:
    """The documents that match, best first."""
    return [documents[key] for key in Index(dict(enumerate(documents))).search(query)]


# --- the catalogues ---------------------------------------------------------------------------------------


def misjudged(index: Index) -> list[str]:
    """The queries of the catalogue that miss a document they must hit, or hit one they must not."""
    wrong = []
    for case in CASES["queries"]:
        hits = set(index.search(case["query"]))
        if not hits.issuperset(case["must_hit"]) or not hits.isdisjoint(case["must_not_hit"]):
            wrong.append(case["query"])
    return wrong


def test_case_19_every_tokenizer_query_hits_and_misses_what_it_must() -> None:
    documents = {int(key): text for key, text in CASES["documents"].items()}
    assert len(CASES["queries"]) == 41
    assert misjudged(Index(documents)) == []
    assert misjudged(Index(documents, EXACT)) == ["run"], "run finds running by its stem"


T15 = [
    *("POL-358", "multi-agent", "don't", "auth.ts", "a:b", '"unbalanced', "foo(", "AND", "NOT x", "C++"),
    *("@scope/pkg", "src/a.py:42", "--no-verify", "${HOME}"),
]
T15_NEAR = [
    *("POL-359 and 358 pears", "several agents, multi tenant", "do or do n t", "auth written in ts"),
    *("a letter, b letter", "bar(", "x marks y", "C is not C#", "scope of the pkg", "src of a py file 42"),
    *("no, verify it", "go home, home is near"),
]


@pytest.mark.parametrize("query", T15)
def test_t15_a_note_that_holds_the_literal_ranks_first(query: str) -> None:
    notes = [f"remember {literal} for later" for literal in T15] + T15_NEAR
    assert found(query, *notes)[0] == f"remember {query} for later"


@pytest.mark.parametrize("query", ["", "   ", "*", '""', "((((", "\x00", "\ud800", "🎉", "…", "___", "-- : /"])
def test_t15_a_query_without_a_letter_or_digit_asks_for_nothing(query: str) -> None:
    assert STEMMED.query(query) == ()


def test_t16_words_are_found_in_any_order_and_form() -> None:
    guide = "schema migration guide for the database"
    assert found("database migration", guide, "a cake recipe") == [guide]
    assert found("how do we migrate the database schema?", guide, "a cake recipe for you") == [guide]


IDENTIFIERS = (
    "call getUserById first",
    "call get_user_by_id first",
    "call UserByIdCache first",
    "call parseHTMLResponse first",
    "call parseHTML first",
    "get the user by their id, parse the html",
)


@pytest.mark.parametrize(
    ("query", "hits"),
    [
        ("getUserById", [0, 1, 2]),
        ("get_user_by_id", [1, 0, 2]),
        ("UserByIdCache", [2, 0, 1]),
        ("user_id", [0, 1, 2]),
        ("parseHTML", [4, 3]),
        ("parseHTMLResponse", [3, 4]),
        ("parsehtmlresponse", [3]),
    ],
)
def test_t17_the_exact_identifier_is_first_and_prose_is_not_hit(query: str, hits: list[int]) -> None:
    assert found(query, *IDENTIFIERS) == [IDENTIFIERS[hit] for hit in hits]


def test_t17_the_parts_of_identifiers_are_words() -> None:
    assert set(found("user by id", *IDENTIFIERS)) == {IDENTIFIERS[hit] for hit in (0, 1, 2, 5)}
    assert set(found("html", *IDENTIFIERS)) == {IDENTIFIERS[hit] for hit in (3, 4, 5)}


def test_t17_the_exact_identifier_outranks_short_notes_crowded_with_its_parts() -> None:
    exact = "a long note on sessions that says once, near its end, that getUserById is called when nothing is cached"
    crowd = [f"user_id getUser userId id_user get_id user_get {number}" for number in range(20)]
    assert found("getUserById", *crowd, exact, *(f"filler {number}" for number in range(200)))[0] == exact


@pytest.mark.parametrize(("query", "hits"), [("1.0.21", 3), ('"1.0.21"', 3), ("v1.0.21", 3), ("1021", 0)])
def test_t18_a_version_is_found_with_and_without_its_v(query: str, hits: int) -> None:
    notes = ["pinned sdk 1.0.21", "pinned sdk v1.0.21.", "release/v1.0.21", "sdk 1.0.210", "sdk 1.0.2", "sdk 11.0.21"]
    assert len(found(query, *notes)) == hits


@pytest.mark.parametrize("other", ["v2.30", "v12.3", "v2.3.1", "v1.2.3", "2.30.1", "v2 with 3 parts", "23"])
def test_t18_a_version_is_never_found_inside_another(other: str) -> None:
    assert found("v2.3", f"release {other}") == []


CJK = (
    "サンドボックス修正テスト",
    "用户服务器部署在腾讯云国内节点",
    "设备清单(devices) NAS",
    "오늘 끝말잇기 게임을 했다",
    "L0录入流程",
    "the English note about a sandbox on the NAS",
)


@pytest.mark.parametrize(
    ("query", "hits"),
    [
        ("サンドボックス", [0]),
        ("腾讯云", [1]),
        ("设备", [2]),
        ("게임", [3]),
        ("录入", [4]),
        ("NAS", [2, 5]),
        ("云", [1]),
    ],
)
def test_t19_chinese_japanese_and_korean_are_found_down_to_one_character(query: str, hits: list[int]) -> None:
    assert sorted(found(query, *CJK)) == sorted(CJK[hit] for hit in hits)


def test_t19_the_order_of_english_notes_does_not_depend_on_their_neighbours() -> None:
    english = ["sandbox", "a sandbox and a test", "sandbox test sandbox"]
    assert [note for note in found("sandbox test", *english, *CJK[:5]) if note in english] == found(
        "sandbox test", *english
    )


@pytest.mark.parametrize("query", ["the", "to be or not to be", "go", "C", "R", "it is what it is"])
def test_t22_a_query_of_short_words_still_searches(query: str) -> None:
    notes = ["or not to be the", "go is a language", "C is a language", "R is a language", "it is what it is", "C++"]
    hits = found(query, *notes)
    assert hits
    if len(query) <= 2:
        assert hits == [f"{query} is a language"]
    assert found(query, "unrelated") == []


def test_t22_stop_words_are_left_out_while_there_is_something_else() -> None:
    assert STEMMED.query("What is the port of it?") == ("port",)
    assert STEMMED.query("what is it") == ("what", "is", "it")
    assert STEMMED.query("do not use it") == ("not", "use")


SYNTAX = r"""
    don't a-b -x " * foo:bar C++ NEAR( AND ^a col:x a* - -- a--b ' 's a' 'a'b' \ \n C:\ / // a//b ./a ../a ~user
    ^9f86d08 % $ ${ ${} # @ . .. ... a..b _ __ _a_ = a=b a+b ++ c++17 #! <a> [a] | 😀 ﷺ ½ …
"""
CHARACTERS = [
    "",
    "   ",
    "\t\n",
    "a OR",
    "{a b}",
    "(" * 300,
    "\x00",
    "a\x00b",
    "\ud800a",
    "a\udfff",
    "\u202ea",
    "a\u200bb",
]
AWKWARD = SYNTAX.split() + CHARACTERS


@pytest.mark.parametrize("query", AWKWARD)
def test_case_15_an_awkward_query_is_data(query: str) -> None:
    assert Index({1: query, 2: "other"}).search(query) == ([1] if STEMMED.query(query) else [])


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        "word " * 50_000,
        " ".join(f"getUser{n}" for n in range(50_000)),
        "数" * 1_000_000,
        "a/" * 500_000,
    ],
    ids=["one token", "one word repeated", "50,000 identifiers", "one run of Han", "one path"],
)
def test_case_41_a_huge_text_is_searched_with_few_terms_in_little_time(text: str) -> None:
    began = time.perf_counter()
    terms = STEMMED.query(text)
    assert time.perf_counter() - began < 1.0
    assert 1 <= len(terms) <= 64


@pytest.mark.parametrize(
    "text", ["x" * 1_000_000, "aB" * 500_000, "a.b:" * 250_000, "数a" * 500_000, "e\u0301" * 500_000]
)
def test_case_41_a_huge_text_is_indexed_in_little_time(text: str) -> None:
    began = time.perf_counter()
    assert STEMMED.index(text)
    assert time.perf_counter() - began < 5.0


# --- single words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "tokens"),
    [
        ("Running", "run"),
        ("don’t", "don't"),
        ("user's", "user"),
        ("Jürgen", "jurgen"),
        ("ＦＵＬＬ", "full"),
        ("pass\u200bword", "password"),
        ("URLs", "url"),
        ("LLMs", "llms llm"),
        ("हिन्दी", "हिन्दी"),
        ("KB-4156", "kb-4156 kb 4156"),
        ("auth.ts.", "auth.ts auth ts"),
        ("auth.ts's", "auth.ts auth ts"),
        ("v2.3", "v2.3 2.3"),
        ("e0277", "e0277"),
        ("C++", "c++"),
        ("C++20", "c++20 c++"),
        ("F#", "f#"),
        (".NET", ".net net"),
        ("--no-verify", "--no-verify no-verify no verifi ~noverify ~no ~verifi"),
        ("@scope/pkg", "@scope/pkg scope/pkg scope pkg"),
        ("#12", "#12 12"),
        ("user_id", "user_id user id ~userid ~user ~id"),
        ("userId", "userid user id ~userid ~user ~id"),
        ("HTTPServer", "httpserver http server ~httpserver ~http ~server"),
        ("oauth2_client", "oauth2_client oauth2 client ~oauth2client"),
        ("__init__", "__init__ init"),
        ("src/a.py:42", "src/a.py:42 src/a.py src a py a.py src/a 42"),
        ("C:\\\\Temp\\x", "c:/temp/x c temp x c:/temp temp/x"),
        ("9F86d081884c7d65", "9f86d081884c7d65 ^9f86d08"),
        ("数据库", "数 据 库 数据 据库"),
        ("库x", "库 x"),
        ("~user", "user"),
    ],
)
def test_a_word_is_indexed_as(word: str, tokens: str) -> None:
    assert sorted(STEMMED.index(word)) == sorted(tokens.split())


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("KB-4156", "kb-4156"),
        ("v2.3", "v2.3 2.3"),
        ("2.3", "2.3"),
        ("getUserById", "getuserbyid ~getuserbyid ~get ~user ~id"),
        ("src/lib/a_b.py:7", "src/lib/a_b.py:7 src/lib/a_b.py lib/a_b.py a_b.py ~ab"),
        ("https://docs.example/setup", "https:/docs.example/setup docs.example/setup docs.example"),
        ("client/server", "client/server"),
        (".env", ".env"),
        ("-x", "-x"),
        ("#12", "#12 12"),
        ("${HOME}", "$home home"),
        ("9f86d081", "9f86d081 ^9f86d08"),
        ("数据库", "数据 据库"),
        ("库", "库"),
        ("port port PORT", "port"),
    ],
)
def test_a_query_asks_for(query: str, terms: str) -> None:
    assert STEMMED.query(query) == tuple(terms.split())


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("hbr-2291", "on internal-hbr-2291.pineapple.example"),
        ("sqlite_store.py", "see /home/u/dev/project/src/grounded/store/sqlite_store.py"),
        ("/home/u/dev/src/grounded/sqlite_store.py", "see sqlite_store.py"),
        ("src\\grounded\\store.py", "see src/grounded/store.py:12"),
        ("store/sqlite_store.py", "see a/b/c/d/e/f/store/sqlite_store.py:7:1"),
        ("getUserById.ts", "see a/b/c/d/e/f/getUserById.ts"),
        ("9f86d08", "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"),
        ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "commit 9f86d081"),
        ("2026-10-01", "at 2026-10-01T12:30:00Z"),
        ("8443", "port localhost:8443"),
        ("naïve", "a naive approach"),
        ("multi_agent", "a multi-agent system"),
        ("LLM", "several LLMs"),
        ("don't", "we don’t"),
    ],
)
def test_a_name_is_found_where_it_is_written_differently(query: str, text: str) -> None:
    assert found(query, text) == [text]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("KB-4156", "KB-4157 and 4156 apples, KB 4156"),
        ("internal-hbr-2291.pineapple.example", "internal-hbr-2292.pineapple.example"),
        ("getUserById", "get the user by their id"),
        ("snake_case", "a snake, a case"),
        ("run", "prune runtime rune"),
        ("C", "C++ and C#"),
        ("1021", "1.0.21 10.21 10-21"),
        ("9f86d08", "commit 9f86d18"),
        (".env", "the env of a process"),
    ],
)
def test_a_name_is_not_found_where_only_its_parts_are(query: str, text: str) -> None:
    assert found(query, text) == []


def test_r2_without_stemming_only_the_same_form_matches() -> None:
    index = Index({1: "running tests", 2: "run the test"}, EXACT)
    assert index.search("run") == [2]
    assert index.search("Tests") == [1]


# --- queries ----------------------------------------------------------------------------------------------


def test_a_query_is_read_up_to_its_last_whole_word_within_the_limit() -> None:
    short = Analyzer(AnalyzerOptions(max_query_chars=12))
    assert short.query("alpha beta gamma") == ("alpha", "beta")
    assert short.query("alphabetagammadelta") == ("alphabetagam",)


def test_when_a_query_is_cut_the_most_specific_terms_stay_in_their_order() -> None:
    few = Analyzer(AnalyzerOptions(max_terms=4))
    query = "the red fox read recentUser in src/a.py for KB-4156"
    assert few.query(query) == ("recentus", "src/a.py", "a.py", "kb-4156")
    assert [word.surface for word in few.query_words(query)] == ["recentUser", "src/a.py", "KB-4156"]


def test_an_identifier_part_counts_once_in_a_text() -> None:
    assert STEMMED.index("userId user_id").count("~user") == 1
    assert STEMMED.index("userId user_id").count("user") == 2


def test_the_words_of_a_query_are_shown_as_they_were_typed() -> None:
    words = STEMMED.query_words("Why does Jürgen's getUserById fail? 数据库")
    assert [word.surface for word in words] == ["Jürgen's", "getUserById", "get", "User", "Id", "fail", "数据", "据库"]


def test_an_analyzer_is_shared_between_threads() -> None:
    results: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: results.append(STEMMED.index("Running testsOf src/a.py"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert results == [Analyzer().index("Running testsOf src/a.py")] * 8


def test_the_fingerprint_names_what_changes_index_tokens_and_nothing_else() -> None:
    assert STEMMED.fingerprint == "tokens-1-english"
    assert EXACT.fingerprint == "tokens-1-exact"
    assert Analyzer(AnalyzerOptions(max_terms=3, max_query_chars=9)).fingerprint == STEMMED.fingerprint


def test_tokens_change_only_with_their_version() -> None:
    """Whoever breaks this raises TOKENS_VERSION, so that stores index again, and writes the new digest here."""
    texts = [*CASES["documents"].values(), *AWKWARD, *CJK, *T15, *IDENTIFIERS, "a/b/c/d/e_f/gH.py:1", "x" * 99]
    tokens = json.dumps([STEMMED.index(text) for text in texts]).encode()
    assert hashlib.sha256(tokens).hexdigest()[:16] == "550070a363e3c755"


# --- all inputs -------------------------------------------------------------------------------------------

WRITTEN = st.text(st.sampled_from("aBcD019éßЖ数かा語각'’_-./\\:@#$+~^{}()\" \n\x00\u200b\u0301\ud800"), max_size=60)
TEXTS = st.one_of(st.text(max_size=60), WRITTEN)


def well_formed(tokens: Sequence[str]) -> bool:
    return all(
        0 < len(token) <= MAX_TOKEN
        and token == token.casefold()
        and not any(unicodedata.category(character) in ("Cc", "Cs", "Zs", "Zl", "Zp") for character in token)
        for token in tokens
    )


@settings(max_examples=300, deadline=None)
@given(TEXTS)
@example("x" * 5000)
@example("/".join(["segment"] * 40))
@example("aB" * 400 + "-" + "数" * 100)
def test_every_token_is_lower_case_bounded_and_without_white_space(text: str) -> None:
    for analyzer in (STEMMED, EXACT):
        assert well_formed(analyzer.index(text))
        assert well_formed(analyzer.query(text))
        assert len(set(analyzer.query(text))) == len(analyzer.query(text))


@settings(max_examples=300, deadline=None)
@given(TEXTS)
@example("/".join(["a_b"] * 40))
@example("Aa" * 12 + "/.b/__c__/d-E1.f#9:1")
def test_r2_a_query_asks_only_for_what_the_same_text_is_indexed_as(text: str) -> None:
    for analyzer in (STEMMED, EXACT):
        assert set(analyzer.query(text)) <= set(analyzer.index(text))


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_fts5_splits_the_joined_tokens_into_the_same_tokens(texts: list[str]) -> None:
    index = Index(dict(enumerate(texts)))
    assert index.tokens() == [token for text in texts for token in STEMMED.index(text)]


def test_fts5_keeps_every_character_that_the_analyzer_keeps() -> None:
    characters = (chr(code) for code in range(0x20000))
    text = "\n".join(f"a{character}b" for character in characters if character.isalnum())
    assert Index({1: text}).tokens() == STEMMED.index(text)


# --- estimates and fingerprints ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (" \n\t", 0),
        ("the", 1),
        ("tokens", 2),
        ("8443", 2),
        ("a_b = f(x)", 8),
        ("数据库", 3),
        ("naïve", 3),
        ("\x00", 1),
    ],
)
def test_tokens_are_estimated(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_a_fingerprint_ignores_how_lines_end_and_nothing_else() -> None:
    assert fingerprint("a\nb\n") == "911169ddaaf146aff539f58c26c489af"
    assert fingerprint("a\r\nb\r") == fingerprint("a\nb\n")
    assert fingerprint("a\nb ") != fingerprint("a\nb")
    assert len(fingerprint("\ud800\x00")) == 32
