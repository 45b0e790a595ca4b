#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each link of a Markdown page names an existing file, and an existing heading if it has an anchor. docs/README.md
names each page of docs.

usage: links_test.py ROOT | --self-test
"""

import os
import pathlib
import sys
import tempfile

from sources import all_files

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "cmake" / "site"))
import pages  # noqa: E402


def fault_of(root, page, target, anchors):
    path, _, anchor = target.partition("#")
    if path.startswith("/"):
        return "is absolute"
    file = pathlib.PurePosixPath(os.path.normpath(page.parent / path)) if path else page
    if file.parts[0] == "..":
        return "leaves the repository"
    if not (root / file).exists():
        return "names no file"
    if anchor and file in anchors and anchor not in anchors[file]:
        return "names no heading"
    return None


def check(root):
    """The number of links, and the lines to print."""
    texts = {pathlib.PurePosixPath(path): (root / path).read_text() for path in all_files(root)
             if path.suffix == ".md"}
    anchors = {page: pages.anchors(text) for page, text in texts.items()}
    links = [(page, number, target) for page, text in texts.items() for number, target in pages.links(text)]
    found = []
    for page, number, target in links:
        fault = fault_of(root, page, target, anchors)
        if fault:
            found.append(f"{page}:{number}: the link to {target} {fault}")
    index = pathlib.PurePosixPath("docs/README.md")
    named = {target.partition("#")[0] for page, _, target in links if page == index}
    found += [f"{index}: no link to {page.name}" for page in texts
              if page.parent == index.parent and page != index and page.name not in named]
    return len(links), found


def self_test():
    files = {
        "README.md": "[a](docs/a.md#a-code--more) [b](docs) [c](https://x/y) `[d](gone)`\n![e](docs/e.png)\n",
        "docs/README.md": "[a](a.md)\n[x](b.md \"title\")\n[self](#two-1) [self](#two-2)\n# Two\n## Two\n",
        "docs/a.md": "# A `code` & more\n```sh\n[f](gone)\n# No heading\n```\n[g](#no-heading) [h](../../u) [i](/top)\n"
                     "<!-- [j](gone) -->\n<a name=\"own\"></a>\n[k](#own)\n[l]: gone\n",
        "docs/b.md": "~~~\n```\n~~~\n[m](a.md#a_b)\n# a_b\n",
        "docs/c.md": "",
        "docs/e.png": "",
        "build/gone.md": "[n](gone)",
    }
    expected = [
        "docs/README.md:3: the link to #two-2 names no heading",
        "docs/a.md:6: the link to #no-heading names no heading",
        "docs/a.md:6: the link to ../../u leaves the repository",
        "docs/a.md:6: the link to /top is absolute",
        "docs/a.md:10: the link to gone names no file",
        "docs/b.md:4: the link to a.md#a_b names no heading",
        "docs/README.md: no link to c.md",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        count, got = check(pathlib.Path(folder))
    if got != expected:
        print("self-test: expected", *expected, "got", *got, sep="\n  ")
    return got == expected and count == 13


def main(arguments):
    if arguments == ["--self-test"]:
        return 0 if self_test() else 1
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    count, found = check(pathlib.Path(arguments[0]))
    print("\n".join(found))
    print(f"{count} links, {len(found)} faults")
    # Few links: the path is wrong.
    return 0 if count > 100 and not found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
