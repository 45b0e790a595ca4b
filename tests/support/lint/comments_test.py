#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds comments whose subject is missing: a comment that begins with a word of BEGINS or contains a word of
CONTAINS. Docstrings of Python count as comments. CONTRIBUTING.md has the rule (Plain words).

comment_exceptions.txt lists the comments that may stay, one a line: the file, a colon, the comment's line. Nothing is
added to the list. The test fails if a line of the list is not needed any more.

usage: comments_test.py ROOT | --self-test
"""

import io
import pathlib
import re
import sys
import tokenize

from sources import kind_of, read_sources

EXCEPTIONS = pathlib.Path(__file__).with_name("comment_exceptions.txt")
MOST_EXCEPTIONS = 39
BEGINS = re.compile(r"(Of|What|Whose|Who|That|Its|Nobody|Whatever|Whoever)\b(?!\s+(is|this|the following)\b)")
CONTAINS = re.compile(r"\b(who|nobody|somebody)\b", re.IGNORECASE)
# Characters of C and SystemVerilog: a string, a character, a raw string, or a comment.
C_TOKENS = re.compile(r'R"(?P<end>[^\s()\\]*)\(.*?\)(?P=end)"'
                      r'|"(?:\\.|[^"\\\n])*"'
                      r"|(?<![\w])'(?:\\.|[^'\\\n])+'"
                      r"|(?P<line>//(?:\\\n|[^\n])*)|/\*(?P<block>.*?)\*/", re.DOTALL)
# A number sign begins a comment at a word's begin only; the alternatives before are strings and escaped characters.
SCRIPT_TOKENS = {
    "cmake": re.compile(r'"(?:\\.|[^"\\])*"|#?\[(?P<level>=*)\[.*?\](?P=level)\]|\\.|(?P<line>#[^\n]*)', re.DOTALL),
    "shell": re.compile(r"""\\.|"(?:\\.|[^"\\])*"|'[^']*'|(?<!\S)(?P<line>#[^\n]*)""", re.DOTALL),
}


def c_comments(text):
    for match in C_TOKENS.finditer(text):
        comment = match["line"] if match["line"] is not None else match["block"]
        if comment is None:
            continue
        first = text.count("\n", 0, match.start()) + 1
        for number, line in enumerate(comment.split("\n"), first):
            yield number, line.strip(" \t/*!<\\")


def python_comments(text):
    """Comments and docstrings."""
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#! ")
        elif token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            for number, line in enumerate(token.string.split("\n"), token.start[0]):
                yield number, line.strip(' \t"\'')
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.type


def script_comments(kind, text):
    for match in SCRIPT_TOKENS[kind].finditer(text):
        if match["line"] is not None:
            yield text.count("\n", 0, match.start()) + 1, match["line"].lstrip("#! ")


def comments_of(kind, text):
    """Pairs of line number and text, one for each line of each comment."""
    if kind == "c":
        return c_comments(text)
    return python_comments(text) if kind == "python" else script_comments(kind, text)


def fault_of(comment):
    begin = BEGINS.match(comment)
    if begin:
        return f"begins with {begin[1]}"
    word = CONTAINS.search(comment)
    return f"has the word {word[1]}" if word else None


def check(sources, exceptions):
    """The lines to print for `sources`, a list of path, kind and text; `exceptions` are the lines of the list."""
    found = []
    unused = list(dict.fromkeys(exceptions))
    for path, kind, text in sources:
        for number, comment in comments_of(kind, text):
            fault = fault_of(comment)
            excepted = f"{path}: {comment}"
            if fault and excepted not in exceptions:
                found.append(f"{path}:{number}: {fault}: {comment}")
            elif fault and excepted in unused:
                unused.remove(excepted)
    found += [f"{EXCEPTIONS.name}: no comment needs this exception, delete it: {line}" for line in unused]
    if len(exceptions) > MOST_EXCEPTIONS:
        found.append(f"{EXCEPTIONS.name}: {len(exceptions)} exceptions, at most {MOST_EXCEPTIONS} are allowed")
    return found


def self_test():
    """Each text with its kind, and the numbers of the lines that have a fault."""
    cases = [
        ("c", "int a;  // Of the first kind.\nint b;  // A b.\n", [1]),
        ("c", "// That is right.\n// What this does.\n// That follows.\n", [3]),
        ("c", "/* One.\n * Its second line, after a newline.\n */\n// Office, Whatsoever.\n", [2]),
        ("c", "/// Whose turn it is.\n//! Whatever comes.\n///< Nobody.\n", [1, 2, 3]),
        ("c", 'auto a = "// Who";\nauto b = R"(\n// Who\n)";\nauto c = \'"\';  // Who\n', [5]),
        ("c", "auto million = 1'000'000;  // somebody's\n", [1]),
        ("c", "// the one who waits\n// the one whole\n", [1]),
        ("python", '"""Of a docstring."""\na = "# Of a string"  # Of a comment\n#! Who\n', [1, 2, 3]),
        ("shell", "#!/bin/sh\n# Of it\necho \"# Who\" '# Who' ${#} $# a#Who \\# Who # Who\n", [2, 3]),
        ("shell", "echo \"it's\"  # nobody\n", [1]),
        ("cmake", 'set(a "# Of")  # Of\n#[[ Of ]]\n# That is good\nset(b [=[ # Of ]] ]=])\n', [1]),
    ]
    failures = 0
    for kind, text, expected in cases:
        got = [number for number, comment in comments_of(kind, text) if fault_of(comment)]
        if got != expected:
            failures += 1
            print(f"self-test: {text!r}: expected lines {expected}, got {got}")
    a = [("a.h", "c", "// Of one.\n// Of one.\n// Of two.\n")]
    for exceptions, expected in [
        (["a.h: Of one."], ["a.h:3: begins with Of: Of two."]),
        (["a.h: Of one.", "a.h: Of two."], []),
        (["a.h: Of one.", "a.h: Of two.", "b.h: Of one."],
         [f"{EXCEPTIONS.name}: no comment needs this exception, delete it: b.h: Of one."]),
    ]:
        if check(a, exceptions) != expected:
            failures += 1
            print(f"self-test: exceptions {exceptions}: expected {expected}, got {check(a, exceptions)}")
    if [kind_of(pathlib.PurePath(name), first) for name, first in
            [("a.svh", ""), ("a.py", ""), ("run", "#!/usr/bin/env bash"), ("CMakeLists.txt", ""), ("a.md", "")]] != [
                "c", "python", "shell", "cmake", None]:
        failures += 1
        print("self-test: kinds of files")
    print(f"{failures} failed")
    return failures == 0


def main(arguments):
    if arguments == ["--self-test"]:
        return 0 if self_test() else 1
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    sources = read_sources(pathlib.Path(arguments[0]))
    exceptions = [line for line in EXCEPTIONS.read_text().splitlines() if line and not line.startswith("#")]
    found = check(sources, exceptions)
    print("\n".join(found))
    print(f"{len(sources)} files, {len(found)} faults")
    # Few files: the path is wrong.
    return 0 if len(sources) > 100 and not found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
