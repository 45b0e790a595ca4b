#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rnicsim check as a gate: levels of comparison, causes, a page, histories and their page.

usage: check_gate_test.py path/to/rnicsim
"""
import html.parser
import json
import os
import pathlib
import re
import sqlite3
import sys
import xml.etree.ElementTree

import jsonschema

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

ALL_PASSED, NOT_ALL, NONE_RUN = 0, 1, 2
DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"

CASE = """schema = 1
workload = "write-4k"
set = ["measure.duration={duration}", "measure.warmup=0ns", "flow[0].qps=2"{sets}]
{more}
"""
TRACE = '[trace]\nfile = "{name}.trace"\n'
STATISTICS = """fault = ["drop=0.005"]
compare = "statistical"
[statistics]
file = "{name}.json"
seeds = [1, 2, 3, 4]
tolerance = "2 %"
{more}
"""


class Gate(apps.TestCase):
    def setUp(self):
        folder = apps.folder()
        self.path = folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)
        self.cases = self.path / "cases"
        self.cases.mkdir()

    def case(self, name, more, sets=(), duration="5us"):
        text = CASE.format(sets="".join(f', "{each}"' for each in sets), more=more, duration=duration)
        (self.cases / f"{name}.toml").write_text(text)

    def traced(self, name="a", sets=(), before=""):
        self.case(name, before + TRACE.format(name=name), sets)

    def statistical(self, name="s", sets=(), more=""):
        self.case(name, STATISTICS.format(name=name, more=more), sets, "100us")

    def check(self, status, *options):
        result = apps.call("check", self.cases, *options)
        self.assertEqual(result.status, status, result)
        return result.out

    def refused(self, *options):
        """The error line of a command that must fail with a single line and status 2."""
        result = apps.call(*options)
        self.assertEqual((result.status, result.err.count("\n")), (NONE_RUN, 1), result)
        return result.err

    def update(self):
        self.check(ALL_PASSED, "--update", "--yes")


class Levels(Gate):
    def test_the_order_alone(self):
        self.traced()
        self.update()
        self.traced(sets=["nic.tx.latency=171ns"])
        self.check(NOT_ALL)
        self.check(ALL_PASSED, "--level", "order")
        self.traced(sets=["nic.tx.latency=171ns"], before='compare = "order"\n')
        self.check(ALL_PASSED)
        self.assertIn("FAILED  a: event ", self.check(NOT_ALL, "--level", "exact"))
        self.traced(sets=["flow[0].window=5"], before='compare = "order"\n')
        text = self.check(NOT_ALL)
        self.assertRegex(text, r"FAILED  a: event \d+: .*\n  the last events of .* in A:\n")
        self.assertIn("  cause: ", text)

    def test_statistics_of_several_seeds(self):
        self.statistical()
        self.assertRegex(self.check(NONE_RUN), r"BROKEN  s: .*/s\.json: No such file or directory; --update creates "
                                                r"this file\n")
        self.update()
        self.assertIn("passed  s\n", self.check(ALL_PASSED))
        self.assertEqual(sorted(json.loads((self.cases / "s.json").read_text())["seeds"]), ["1", "2", "3", "4"])
        self.statistical(sets=["nic.tx.latency=180ns"])
        self.check(ALL_PASSED)
        self.statistical(sets=["nic.tx.latency=600ns"])
        text = self.check(NOT_ALL)
        self.assertRegex(text, r"FAILED  s: h0\S*: \+[\d.]+ % \([\d.]+ us \| [\d.]+ us, mean of 4 seeds\); "
                               r"the difference is within \+[\d.]+ % \.\. \+[\d.]+ %, the tolerance is 2 %\n")
        self.assertRegex(text, r"\n  \d+ of \d+ numbers differ\n  cause: nic\.tx\.latency: 170 ns \| 600 ns\n")
        self.statistical(sets=["nic.tx.latency=600ns"], more='may_differ = [{ value = "*.*.latency_ps.*" }, '
                                                             '{ value = "*.*.*.latency_ps.*" }, '
                                                             '{ value = "*.*_per_s", by = "90 %" }, '
                                                             '{ value = "*.*.*_per_s", by = "90 %" }]')
        self.check(ALL_PASSED)
        (self.cases / "s.json").unlink()
        self.statistical(sets=["nic.tx.latency=600ns"])
        self.update()
        self.assertEqual(self.check(ALL_PASSED, "-j", 1), self.check(ALL_PASSED, "-j", 4))

    def test_undecided_numbers_are_told(self):
        self.statistical(sets=["nic.tx.latency=300ns"])
        self.update()
        self.statistical(sets=["nic.tx.latency=310ns"], more='values = ["*.messages_per_s"]\nconfidence = "99 %"')
        file = self.cases / "s.json"
        expected = json.loads(file.read_text())
        for factor, numbers in zip((1.2, 0.85, 1.1, 0.9), expected["seeds"].values()):
            numbers["h0.messages_per_s"] *= factor
        file.write_text(json.dumps(expected))
        self.assertEqual(self.check(ALL_PASSED),
                         "passed  s\n  1 of 1 numbers are undecided: use more seeds or a greater tolerance\n"
                         "1 case: 1 passed, 0 failed, 0 broken\n")

    def test_files_of_statistics_that_are_none(self):
        self.statistical()
        self.update()
        file = self.cases / "s.json"
        text = file.read_text()
        for wrong, why in ((text[:-20], "not statistics written by --update"), ("{}", "not statistics"),
                           (text.replace('"4": {', '"5": {'), "statistics of other seeds than the case's; --update ")):
            file.write_text(wrong)
            self.assertIn(f"BROKEN  s: {file}: {why}", self.check(NONE_RUN))
            self.assertEqual(file.read_text(), wrong)
        self.update()
        self.check(ALL_PASSED)

    def test_a_seed_that_cannot_be_run(self):
        (self.cases / "s.toml").write_text(
            "schema = 1\nsimulator = \"sh -c 'test @seed -eq 1 || { echo woe >&2; exit 9; }; : >@trace'\"\n"
            'compare = "statistical"\n[statistics]\nfile = "s.json"\nseeds = [1, 2]\ntolerance = "1 %"\n')
        self.assertIn("FAILED  s: seed 2: the run ended with status 9, not 0\n  woe\n", self.check(NOT_ALL))

    def test_levels_that_do_not_fit(self):
        self.traced()
        self.statistical()
        self.update()
        self.assertRegex(self.check(NOT_ALL, "--level", "order"),
                         r"BROKEN  s: .*/s\.toml: --level order needs a table \[trace\]\n")
        self.assertRegex(self.check(NOT_ALL, "--level", "statistical"),
                         r"BROKEN  a: .*/a\.toml: --level statistical needs a table \[statistics\]\n")
        self.assertIn("--level: 'loose' is none of exact|order|statistical",
                      self.refused("check", self.cases, "--level", "loose"))


class Causes(Gate):
    """Parameters that differ, and the block that shows the first difference."""
    CHANGES = [
        ("nic.tx.latency=171ns", "nic.port of h0", "nic.tx.latency: 170 ns | 171 ns"),
        ("nic.rx.latency=181ns", "nic.rx of h1", "nic.rx.latency: "),
        ("nic.units.write=2us", "nic.engine of h0", "nic.units.write: "),
        ("nic.pcie.read_latency=404ns", "nic.command_unit of h0", "nic.pcie.read_latency: "),
        ("link.latency=300ns", "nic.port of h1", "link.latency: "),
        ("host.cpu.post_wqe=30ns", "nic.doorbell of h0", "host.cpu.post_wqe: "),
        ("host.cpu.command=6us", "nic.command_unit of h0", "host.cpu.command: "),
        ("flow[0].window=1", "nic.doorbell of h0", ""),
    ]

    def test_each_parameter_is_named(self):
        for number, (change, _, _) in enumerate(self.CHANGES):
            self.traced(f"c{number}")
        self.update()
        for number, (change, _, _) in enumerate(self.CHANGES):
            self.traced(f"c{number}", sets=[change])
        text = self.check(NOT_ALL)
        for number, (change, block, cause) in enumerate(self.CHANGES):
            with self.subTest(change):
                told = re.search(rf"FAILED  c{number}: (.*\n(?: .*\n)*)", text)[1]
                self.assertIn(f"  first in: {block}", told)
                self.assertIn(f"  cause: {cause}", told)

    def test_without_a_parameter_it_is_code(self):
        self.traced("a")
        self.update()
        cut = apps.call("trace", "cut", self.cases / "a.trace", "--kind", "doorbell,cqe", "-o", self.cases / "b.trace")
        self.assertEqual(cut.status, 0)
        (self.cases / "b.toml").write_text('schema = 1\nsimulator = "cp a.trace @trace"\n' + TRACE.format(name="b"))
        text = self.check(NOT_ALL, "b")
        self.assertIn("  cause: no parameter, seed, command or version differs: the code of the model, of a "
                      "library or of the program differs\n", text)

    def test_junit_and_json_have_them(self):
        self.traced()
        self.update()
        self.traced(sets=["nic.tx.latency=171ns"])
        junit = self.path / "junit.xml"
        result = apps.call("check", self.cases, "--junit", junit, "--json", "-")
        failure = xml.etree.ElementTree.parse(junit).getroot().find("testsuite/testcase/failure")
        self.assertRegex(failure.get("message"), r"^event \d+: time \+1 ns$")
        self.assertIn("\n  cause: nic.tx.latency: 170 ns | 171 ns\n", failure.text)
        told = json.loads(result.out)
        jsonschema.Draft202012Validator(json.loads((DOCS / "results.schema.json").read_text())).validate(told)
        difference = told["cases"][0]["difference"]
        self.assertEqual((difference["block"], difference["b"]), ("nic.port of h0", "this run"))
        self.assertEqual(difference["headers"], [{"name": "nic.tx.latency", "a": "170 ns", "b": "171 ns",
                                                  "is_parameter": True}])
        self.assertEqual(len(difference["before"]), 8)
        for side in ("events_a", "events_b"):
            self.assertIn("  h0  frame_sent  ", difference[side][0])


class Tags(html.parser.HTMLParser):
    """Checks that all elements are closed, and keeps the texts of cells, paragraphs and headings."""
    EMPTY = {"meta", "link", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.addresses = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        if tag not in self.EMPTY:
            self.open.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href")]
        if tag in ("td", "p", "h2"):
            self.texts.append("")

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes another element")

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "p", "h2", "b"):
            self.texts[-1] += data


class Page(Gate):
    def test_both_sides_beside_one_another(self):
        self.traced()
        self.traced("good")
        self.update()
        self.traced(sets=["nic.tx.latency=171ns"])
        (self.cases / "woe.toml").write_text(
            "schema = 1\nsimulator = \"sh -c 'printf \\\"<script>alert(1)</script>\\\\\\\\377\\\" >&2; exit 9'\"\n")
        page = self.path / "page.html"
        self.check(NOT_ALL, "--html", page)
        text = page.read_text(encoding="utf-8")
        tags = Tags(text)
        self.assertEqual(tags.open, [])
        self.assertEqual(tags.addresses, ["data:,"], "it asks no network")
        self.assertNotIn("<script", text)
        self.assertIn("&lt;script&gt;alert(1)", text)
        for title in ("a: failed", "good: passed", "woe: failed"):
            self.assertIn(title, tags.texts)
        first = [i for i, cell in enumerate(tags.texts) if "frame_sent" in cell]
        a, b = tags.texts[first[0]:first[0] + 2]
        time = [float(cell.split()[0]) for cell in (a, b)]
        self.assertAlmostEqual(time[1] - time[0], 0.001, 6)
        self.assertIn("First in nic.port of h0: the transmit pipeline and the port.", tags.texts)
        for cell in ("nic.tx.latency", "170 ns", "171 ns"):
            self.assertIn(cell, tags.texts)

    def test_a_page_that_cannot_be_written(self):
        self.traced()
        self.update()
        self.assertIn("/dev/full: cannot be written: No space left on device",
                      self.refused("check", self.cases, "--html", "/dev/full"))
        self.assertIn("No such file or directory",
                      self.refused("check", self.cases, "--html", self.path / "no" / "page"))


class Histories(Gate):
    def setUp(self):
        super().setUp()
        self.history = self.path / "history"

    def add(self, label, status=ALL_PASSED, *options):
        return self.check(status, "--history", self.history, "--label", label, *options)

    def rows(self, question):
        with sqlite3.connect(self.history / "history.sqlite") as database:
            return database.execute(question).fetchall()

    def test_numbers_and_change_points(self):
        self.traced()
        self.statistical()
        (self.cases / "plain.toml").write_text(
            CASE.format(duration="5us", sets="", more='[[property]]\nvalue = "h0.nic.port.tx_frames"\nabove = 1\n'))
        self.update()
        for label in ("v1", "v2", "v3"):
            self.add(label)
        self.traced(sets=["nic.tx.latency=171ns"])
        for label in ("v4", "v5"):
            self.add(label, NOT_ALL)
        self.assertEqual(self.rows("SELECT label FROM run ORDER BY id"), [(f"v{i}",) for i in range(1, 6)])
        self.assertEqual(self.rows("SELECT DISTINCT outcome FROM outcome WHERE name = 'a' AND run > 3"), [("failed",)])
        names = {name for name, in self.rows("SELECT DISTINCT number FROM number WHERE name = 'a'")}
        for name in ("end_ps", "events.packet_sent", "h0.messages_per_s", "h0.qp[0x40].goodput_bits_per_s",
                     "h0.WRITE.latency_ps.p50", "flows[0].rate_per_s"):
            self.assertIn(name, names)
        self.assertEqual(len(self.rows("SELECT DISTINCT seed FROM number WHERE name = 's'")), 4)
        self.assertEqual(len(self.rows("SELECT value FROM number WHERE number = 'h0.nic.port.tx_frames'")), 5)
        page = self.path / "page.html"
        result = apps.call("report", "--history", self.history, "-o", page)
        self.assertEqual(result.status, 0, result)
        self.assertRegex(result.out, r"page\.html: 5 labels, 3 cases, \d+ changes\n")
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(),
                                    re.S)[1])
        self.assertEqual(data["labels"], ["v1", "v2", "v3", "v4", "v5"])
        of = {case["name"]: {number["name"]: number for number in case["numbers"]} for case in data["cases"]}
        latency = of["a"]["h0.WRITE.latency_ps.p50"]
        self.assertEqual([change["at"] for change in latency["changes"]], [3])
        self.assertGreater(latency["changes"][0]["after"], latency["changes"][0]["before"])
        self.assertEqual([number for number in of["s"].values() if number["changes"]], [])

    def test_what_did_not_run_has_an_outcome_alone(self):
        (self.cases / "woe.toml").write_text('schema = 1\nsimulator = "no-such-program"\n')
        self.add("v1", NONE_RUN)
        self.assertEqual(self.rows("SELECT name, outcome FROM outcome"), [("woe", "broken")])
        self.assertEqual(self.rows("SELECT * FROM number"), [])

    def test_bad_histories(self):
        self.traced()
        self.update()
        self.add("v1")
        file = self.history / "history.sqlite"
        whole = file.read_bytes()
        command = ("check", self.cases, "--history", self.history, "--label", "v2")
        for damaged, why in ((b"no database", "file is not a database"), (whole[:1], "file is not a database"),
                             (whole[:4096], "damaged|malformed"),
                             (whole[:4096] + bytes(4096) + whole[8192:], "damaged|malformed")):
            file.write_bytes(damaged)
            for words in (command, ("report", "--history", self.history, "-o", self.path / "page.html")):
                self.assertRegex(self.refused(*words), rf"^rnicsim: {file}: .*({why}).*; the file is not changed\n$")
            self.assertEqual(file.read_bytes(), damaged)
        self.assertFalse((self.path / "page.html").exists())
        file.write_bytes(whole)
        self.add("v2")
        self.assertEqual(self.rows("SELECT COUNT(*) FROM run"), [(2,)])

    def test_a_locked_history(self):
        self.traced()
        self.update()
        self.add("v1")
        with sqlite3.connect(self.history / "history.sqlite", isolation_level=None) as other:
            other.execute("BEGIN EXCLUSIVE")
            told = self.refused("check", self.cases, "--history", self.history, "--label", "v2")
            self.assertEqual(told, f"rnicsim: {self.history}/history.sqlite: database is locked; no data was written\n")
            other.execute("ROLLBACK")
        self.assertEqual(self.rows("SELECT label FROM run"), [("v1",)])

    def test_options_that_do_not_fit(self):
        self.traced()
        self.assertIn("--history requires --label", self.refused("check", self.cases, "--history", self.history))
        self.assertIn("--label requires --history", self.refused("check", self.cases, "--label", "v1"))
        self.assertIn("give RESULTS or --history FOLDER", self.refused("report"))
        self.assertIn("unable to open database file", self.refused("report", "--history", self.history))
        self.assertFalse(self.history.exists())


if __name__ == "__main__":
    apps.main()
