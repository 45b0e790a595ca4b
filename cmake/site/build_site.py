#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the site: the pages of the repository as HTML, with search, by MkDocs. The pages are README.md and the pages
that it links to, directly or by other pages. Linked files that are no pages are copied; a link to a folder of sources
becomes text. At the end each link and each anchor of the HTML must exist in the site.

usage: build_site.py OUTPUT
"""

import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

import pages

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INDEX = "docs/README.md"
FIRST_PAGES = ("README.md", INDEX)
LAST_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


class BuildError(Exception):
    pass


def resolve(page, target):
    """The path from the root that a link of a page names, or None for an anchor of the page."""
    path = target.partition("#")[0]
    return os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else None


def reachable_pages():
    """The pages, and the other files and the folders to which the pages link."""
    texts = {}
    others = set()
    ahead = list(FIRST_PAGES + LAST_PAGES)
    while ahead:
        page = ahead.pop()
        if page in texts:
            continue
        texts[page] = (ROOT / page).read_text()
        for number, target in pages.links(texts[page]):
            path = resolve(page, target)
            if path and not (ROOT / path).exists():
                raise BuildError(f"{page}:{number}: the link to {target} names no file")
            if path and path.endswith(".md"):
                ahead.append(path)
            elif path:
                others.add(path)
    return texts, others


def prepared(page, text):
    """The text of a page for MkDocs: links to folders as text, and an empty line behind each comment."""
    def replaced(link):
        path = resolve(page, link[2])
        return link[1] if pages.is_local(link[2]) and path and (ROOT / path).is_dir() else link[0]

    text = re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", replaced, text)
    return re.sub(r"-->\n(?=\|)", "-->\n\n", text)


def title_of(text):
    return next(match[2] for _, line in pages.prose(text) if (match := pages.HEADING.match(line))).replace("`", "")


def navigation(texts):
    """The order of the pages: a part for each table of the last section of docs/README.md."""
    parts = [["rnicsim", list(FIRST_PAGES)]]
    section = texts[INDEX].partition("\n## All pages\n")[2]
    for line in section.splitlines():
        part = re.match(r"\| ([^|\[]+) \| \|$", line)
        if part:
            parts.append([part[1], []])
        listed = [resolve(INDEX, target) for _, target in pages.links(line)]
        parts[-1][1] += [page for page in listed if page in texts]
    named = {page for _, listed in parts for page in listed} | set(LAST_PAGES)
    parts.append(["more", [*LAST_PAGES, *sorted(texts.keys() - named)]])
    lines = ["nav:"]
    for part, listed in parts:
        lines.append(f'  - "{part}":')
        lines += [f'    - "{title_of(texts[page])}": "{page}"' for page in dict.fromkeys(listed)]
    return "\n".join(lines) + "\n"


def stage(folder):
    """Writes the sources of the site into `folder`, and its configuration beside."""
    texts, others = reachable_pages()
    for page, text in texts.items():
        file = folder / "pages" / page
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(prepared(page, text))
    for path in others:
        if (ROOT / path).is_file():
            (folder / "pages" / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, folder / "pages" / path)
    configuration = (HERE / "mkdocs.yml").read_text() + "docs_dir: pages\n" + navigation(texts)
    (folder / "mkdocs.yml").write_text(configuration)


class HtmlPage(html.parser.HTMLParser):
    """The anchors and the links of a page, and the addresses of scripts, styles and images."""

    def __init__(self, text):
        super().__init__()
        self.anchors = {"", "#"}
        self.links = []
        self.loaded = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors.update(values[name] for name in ("id", "name") if values.get(name))
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        address = values.get("href") if tag == "link" and values.get("rel") != "canonical" else values.get("src")
        if address:
            self.loaded.append(address)


def faults_of_site(site):
    """A line for each link that names no file or no anchor of the site, and for each file from the network."""
    html_pages = {path: HtmlPage(path.read_text()) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in html_pages.items():
        if path.name == "404.html":
            continue
        for link in page.links + page.loaded:
            if not pages.is_local(link) and not link.startswith("//"):
                if link in page.loaded:
                    found.append(f"{path.relative_to(site)}: loads {link} from the network")
                continue
            target, _, anchor = urllib.parse.unquote(link).partition("#")
            file = pathlib.Path(os.path.normpath(path.parent / target)) if target else path
            if not file.exists():
                found.append(f"{path.relative_to(site)}: {link} names no file of the site")
            elif file in html_pages and anchor not in html_pages[file].anchors:
                found.append(f"{path.relative_to(site)}: {link} names no anchor")
    return found


def build(output):
    if not shutil.which("mkdocs"):
        raise BuildError("mkdocs is not installed: it is a package of cmake/packages, section [test]")
    with tempfile.TemporaryDirectory(prefix="rnicsim_site_") as name:
        folder = pathlib.Path(name)
        stage(folder)
        site = folder / "site"
        result = subprocess.run(["mkdocs", "build", "--strict", "--quiet", "-f", folder / "mkdocs.yml", "-d", site],
                                env={**os.environ, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"})
        if result.returncode:
            raise BuildError(f"mkdocs failed with status {result.returncode}")
        found = faults_of_site(site)
        if found:
            raise BuildError("\n".join(found))
        shutil.rmtree(output, ignore_errors=True)
        output.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(site, output)
    return len(list(output.rglob("*.html")))


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    output = pathlib.Path(arguments[0]).resolve()
    try:
        count = build(output)
    except BuildError as error:
        print(f"site: {error}", file=sys.stderr)
        return 1
    print(f"site: {count} pages in {output}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
