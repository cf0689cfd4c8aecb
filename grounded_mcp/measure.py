"""How long a text is for a model. Pure and light: what runs at every prompt measures by it, too."""

from __future__ import annotations

import re

_PIECES = re.compile(r"[A-Za-z]{1,4}|[0-9]{1,2}|[^A-Za-z0-9\s]")


def estimate_tokens(text: str) -> int:
    """About how many word pieces a model reads, rather more than fewer.

    Up to four ASCII letters are a piece, up to two digits, and every other character that is not white space.
    Against the tokenizer of all-MiniLM-L6-v2 the median is 1.1 (code) to 1.3 (prose) times its count.
    """
    return len(_PIECES.findall(text))
