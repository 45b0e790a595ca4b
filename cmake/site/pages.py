# SPDX-License-Identifier: Apache-2.0
"""Markdown pages: their links, and the anchors of their headings by GitHub's rules."""

import re
import unicodedata

FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s+<?([^\s>]+)>?")
NAMED = re.compile(r"<[a-z]+\s[^>]*\b(?:id|name)=\"([^\"]+)\"")


def prose(text):
    """Pairs of line number and line outside of blocks of code and of comments."""
    text = COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        mark = FENCE.match(line)
        if fence is None and mark:
            fence = mark[1]
        elif fence is not None:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = None
        else:
            yield number, line


def is_local(target):
    return not re.match(r"[a-z][a-z0-9+.-]*:", target, re.IGNORECASE)


def links(text):
    """Pairs of line number and target, for each link to a file or an anchor of the repository."""
    found = []
    for number, line in prose(text):
        line = CODE.sub("", line)
        found += [(number, target) for target in [*LINK.findall(line), *DEFINITION.findall(line)] if is_local(target)]
    return found


def slug(heading, separator="-"):
    """The anchor of a heading: lower case, without punctuation, a hyphen for each space."""
    kept = [character for character in heading.strip().lower()
            if character in "-_ " or unicodedata.category(character)[0] in "LNM"]
    return "".join(kept).replace(" ", separator)


def anchors(text):
    """The anchors of a page. The second heading of one text gets -1, the third -2."""
    found = set(NAMED.findall(text))
    times = {}
    for _, line in prose(text):
        heading = HEADING.match(line)
        if not heading:
            continue
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", CODE.sub(r"\2", heading[2]))
        anchor = slug(re.sub(r"(\*\*?|__)(.+?)\1", r"\2", plain))
        times[anchor] = times.get(anchor, -1) + 1
        found.add(anchor if times[anchor] == 0 else f"{anchor}-{times[anchor]}")
    return found
