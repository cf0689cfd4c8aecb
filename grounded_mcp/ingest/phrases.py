"""By what words a sentence decides something, concludes something or leaves something open. English. Pure.

Rules are for precision: a decision that is missed can still be recalled from its conversation, a sentence that is none
makes a digest noise. Each rule is a phrase; what weighs, asks, reports a fault or speaks of tests and comments is out.
Knows nothing about conversations or digests.
"""

from __future__ import annotations

import re

MIN_DECISION_WORDS = 7
MIN_CONCLUSION_WORDS = MIN_QUESTION_WORDS = 8
ANSWER = re.compile(r'"[^"]{8,}\?"="[^"?]{2,}"')
"""A question that an agent put to a person, with what the person chose, as agents' question tools write it."""


def _any(*phrases: str) -> re.Pattern[str]:
    return re.compile("|".join(phrases), re.IGNORECASE)


# --- decisions --------------------------------------------------------------------------------------------

_EITHER = r"\b(?:instead of|rather than|in favou?r of) "
_CHANGED = (
    r"(?:used?|changed?|replaced?|switch(?:ed)?|moved?|renamed?|read|wr(?:ite|ote)|stored?|keep|kept|call|leave|left"
    r"|put|show|dropped|made)"
)
_DECIDES = _any(
    r"\b(?:I|we|team)(?:'ve| have|'d)? (?:decided|opted|agreed|settled|chose|picked)\b",
    r"\bwas (?:chosen|selected|picked)\b",
    r"^\*{0,2}decision\*{0,2}:",
    r"\bwe(?:'ll| will|'re going to| are going to) (?:use|go with|keep|stick (?:with|to)|switch to)\b",
    rf"\bI(?:'ll| will) (?:use|go with|keep|put|make)\b.*(?:{_EITHER}|\bbecause\b|, since\b)",
    r"\blet'?s (?:go with|use|keep|stick (?:with|to)|switch to|drop)\b",
    r"\bgoing with\b|\bgo with (?:option|approach)\b|\bwent with\b",
    r"\bthe reason (?:is|was|we|I|for (?:this|that|the))\b",
    rf"^(?:\*\*[^*]+\*\*:? )?(?:[-–—] )?{_CHANGED}\b.*{_EITHER}",
    rf"\b(?:I|we) {_CHANGED}\b.*{_EITHER}",
    rf"\bnow (?:\w+s|stored|sorted|called|read|use|call|share)\b.*{_EITHER}",
    r"\b(?:I|we) (?:kept|used|put|left|dropped|avoided|skipped|made|moved)\b.* because\b",
    r"\b(?:I|we) (?:switched|migrated) (?:away )?(?:from .+ )?to ",
)
_WEIGHED = _any(
    r"\?",
    r"^\W*(?:if|when|while|why|whether|should|alternatively|or|but|either|suggestion)\b",
    r"^\W*(?:option|alternative|approach)\b(?! \w+ was\b)",
    r"^\W*(?:problem|before|pros|cons|missing|example|points to)\b",
    r"\b(?:could|would|might|may|perhaps|maybe|whether|either|consider|wonder(?:ing)?|suggest|recommend(?:ed)?)\b",
    r"\b(?:let me|I need to|I just|skill)\b|,\ or\b|\bif (?:we|I)'ll\b",
    r"\b(?:bug|incorrect(?:ly)?|wrong(?:ly)?|problem|issue|fails?|expect(?:s|ed)?|currently)\b",
    r"\b(?:tests?|assertions?|comments?|descriptions?|references|PR title)\b",
)
# A person who asks for work decides little; one who picks, rules out or keeps something does.
_PERSON_DECIDES = _any(
    r"\blet'?s (?:not|go (?:with|for)|use|keep|drop|remove|stick|switch|rename|skip|leave|call it)\b",
    r"\bfrom now on\b",
    r"\bwe (?:(?:do not|don't) want|won't|shouldn't|decided|agreed|never|always|will use|'ll use)\b",
    r"\bI(?:'d| would) (?:go with|prefer|keep|rather)\b|\bI (?:prefer|decided|chose|don't want)\b",
    r"\b(?:go|going) with\b",
    r"\b(?:always|never|don't|do not) (?:use|commit|run)\b",
    r"\b(?:we|I|you|us|let's|please|ok|okay|yes)\b.*\b(?:instead|rather than)\b",
    r"^(?:use|make|keep|call|put)\b.*\binstead\b",
)
_WONDERED = _any(
    r"\?",
    r"\b(?:could|should|shall|can|do|how) (?:we|you|I|it)\b",
    r"\b(?:why|wonder|maybe|perhaps|considering|in theory)",
    r"\bwe (?:don't|do not) (?:have|know|see|get|seem)\b|\bseem",
)
# A question about what to do next decides nothing about the work.
_PROCEDURE = _any(r"\b(?:ready to|do next|proceed|which (?:PR|issue)|review|commit(?:ted)?|push|PRs?)\b")


def decides(sentence: str, *, by_person: bool) -> bool:
    """Whether something is decided in it. An answered question is a person's decision, unless it is about procedure."""
    if ANSWER.fullmatch(sentence):
        return by_person and not _PROCEDURE.search(sentence)
    if len(sentence.split()) < MIN_DECISION_WORDS or sentence.endswith(":"):
        return False
    says, unless = (_PERSON_DECIDES, _WONDERED) if by_person else (_DECIDES, _WEIGHED)
    return bool(says.search(sentence)) and not unless.search(sentence)


# --- conclusions ------------------------------------------------------------------------------------------

_WHOLE = re.compile(r"[A-Z`*\"“(0-9].*[.!][\"”’')*`]*", re.DOTALL)
_EMPTY = _any(
    r"^(?:now |ok(?:ay)?,? )?(?:let me|let's|I'll|I will|I need|I'm going to|I (?:think|see|understand|can see))\b",
    r"^(?:good|great|perfect|excellent|sure|yes|no|nothing|you're right|here(?:'s| is| are)|this is a new|branch)\b",
    r"^\W*(?:summary|changes|problem|expected|agent id|based on the summary)",
    r"\b(?:committed|pushed|unstaged|replied|ready to commit|diagnostics?)\b",
)
_DEPENDENT = _any(r"^\W*(?:this|these|those|that|it|they|but|and|so|also|interesting|bug|solution|to your)\b")
_PASSED = _any(r"\b(?:tests?|checks?|lint\w*|build)\b.*\b(?:pass\w*|clean|green|succeed\w*)\b")


def concludes(sentence: str) -> bool:
    """Whether it may stand for how a conversation ended: a whole statement that announces or greets nothing."""
    return bool(_WHOLE.fullmatch(sentence)) and not _EMPTY.search(sentence)


def is_weak(conclusion: str) -> bool:
    """Whether it is short, says only that checks passed, or needs the sentence before it."""
    short = len(conclusion.split()) < MIN_CONCLUSION_WORDS
    return short or bool(_PASSED.search(conclusion) or _DEPENDENT.search(conclusion))


# --- open ends --------------------------------------------------------------------------------------------

_OPEN = _any(
    r"\bTODO\b|\bnext steps?\b|\bfollow-?ups?\b|\bout of scope\b|\bknown (?:issues?|limitations?)\b",
    r"\bremaining (?:work|tasks?|steps?|issues?|items?|problems?|failures?)\b",
    r"\bstill (?:needs?\b|to do|fail|missing|open|unresolved)|\bleft to (?:do|fix)\b",
    r"\bnot (?:yet|done|implemented|tested|verified|addressed)\b",
    r"\b(?:you|we)(?:'ll| will)? (?:still )?need to\b|\bhas to be\b",
)
_SETTLED = _any(r"\?|^\W*(?:no|not yet)\b", r"\b(?:no|removed|deleted|acknowledged)\b")
_OFFER = _any(
    r"\b(?:commit|push|PR|pull request|proceed|continue|go ahead|approach|make that|make this|help (?:you|with))\b",
    r"^or\b|\bwhat would you like\b|\b(?:this|that|it|them|those|these)\?",
)


def leaves_open(sentence: str) -> bool:
    """Whether it says that something is still to be done."""
    return bool(_OPEN.search(sentence)) and not _SETTLED.search(sentence)


def asks(sentence: str) -> bool:
    """Whether it is a question about something, and no mere offer to go on ("Want me to commit this?")."""
    asked = sentence.rstrip("*\"')").endswith("?") and len(sentence.split()) >= MIN_QUESTION_WORDS
    return asked and not ANSWER.search(sentence) and not _OFFER.search(sentence)
