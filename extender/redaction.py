"""Takes secrets out of free texts: tokens, passwords, keys. The one place that knows what a secret looks like.

Texts that others have written (errors of the API server, of libraries, of credential plugins) go through it where they become ours:
ApiError, IdentityError, Finding, events, log lines, and what a command says of a failure.
Kubernetes: k8s.io/client-go/transport/round_trippers.go (maskValue); Go: net/url's URL.Redacted
"""

from __future__ import annotations

import re

REDACTED = "[redacted]"

_NAME = (
    r"(?:(?:access|refresh|id|bearer|auth|session)[-_]?)?tokens?(?:[-_]data)?|pass(?:word|wd|phrase)|(?:client[-_]?)?secret(?:[-_]?key)?"
    r"|(?:client[-_]?)?key[-_]?data|client[-_]?certificate[-_]?data|api[-_]?key|private[-_]?key"
)
_QUOTE = r"\\*[\"']"  # as JSON in JSON has it
_WORD = r"[^\s\"',;&\[\]{}\\]"
_VALUE = (
    rf"(?P<quote>{_QUOTE})(?:(?!(?P=quote)).)+(?P=quote)"  # in quotes, which stay
    rf"|(?<==){_WORD}+|(?<==\s){_WORD}+"  # after a =
    rf"|(?<=[:\s])(?={_WORD}*\d|{_WORD}{{20}}){_WORD}+"  # after a colon, where it is no word of a sentence
)
_SEARCHES = tuple(
    (re.compile(pattern, flags), by)
    for pattern, flags, by in (
        # PEM of a key or a certificate, also cut in the middle of it, or with its line breaks written out
        (
            r"-----BEGIN [A-Z0-9 ]+-----(?:[A-Za-z0-9+/=\s]|\\+(?:[rn]|x0[ad]))*(?:-----END [A-Z0-9 ]+-----)?",
            0,
            REDACTED,
        ),
        # the same in base64, as kubeconfigs have it
        (r"LS0tLS1CRUdJTi[A-Za-z0-9+/=]*", 0, REDACTED),
        # a JSON web token, also a part of one
        (r"\bey[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?", 0, REDACTED),
        # user and password of a URL
        (r"(?<=://)[^\s/@\"'<>]+(?=@)", 0, REDACTED),
        # Authorization: Bearer TOKEN, Basic BASE64
        (
            r"\b(Bearer|Basic|Negotiate)\s+(?=[A-Za-z0-9._~+/=-]*[\d.=+/])[A-Za-z0-9._~+/=-]{6,}",
            re.IGNORECASE,
            rf"\g<1> {REDACTED}",
        ),
        # "password": "...", token=...
        (
            rf"(?P<name>(?<![A-Za-z0-9])(?:{_NAME})(?:{_QUOTE})?\s?[:=]\s?)(?:{_VALUE})",
            re.IGNORECASE,
            rf"\g<name>\g<quote>{REDACTED}\g<quote>",
        ),
    )
)
# A text without any of these has no secret: nearly all are told so by their words, which costs a tenth of the search.
_WORDS = ("-----begin", "ls0tls1", "ey", "://", "bearer", "basic", "negotiate", "token", "pass", "secret", "key")
_SUSPECT = re.compile(
    r"-----BEGIN|LS0tLS1|\bey[A-Za-z0-9_-]{6}|://|bearer|basic|negotiate|token|pass|secret|key", re.IGNORECASE
)


def redacted(text: str) -> str:
    """The text with each secret in it replaced; quotes stay, so that JSON stays JSON. The same again changes nothing more."""
    if _is_plain(text) or _SUSPECT.search(text) is None:
        return text
    for search, by in _SEARCHES:
        text = search.sub(by, text)
    return text


def _is_plain(text: str) -> bool:
    """Whether it has none of the words. Beyond ASCII there are letters that a search takes for those of a word."""
    if not text.isascii():
        return False
    lower = text.lower()
    return not any(word in lower for word in _WORDS)
