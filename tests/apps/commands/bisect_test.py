#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rnicsim check --bisect: finds the first bad commit of a repository, in a worktree of its own.

usage: bisect_test.py path/to/rnicsim
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import jsonschema

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"
FOUND, SEVERAL, CANNOT = 0, 1, 2
CASE = """schema = 1
workload = "write-4k"
set = ["measure.duration=5us", "measure.warmup=0ns"]
nic = "../nic.toml"

[trace]
file = "write.trace"
"""


class Bisect(apps.TestCase):
    def setUp(self):
        folder = apps.folder()
        self.path = pathlib.Path(folder.__enter__())
        self.addCleanup(folder.__exit__, None, None, None)
        self.repository = self.path / "repository"
        self.temporary = self.path / "temporary"
        for each in (self.repository / "cases", self.temporary):
            each.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "A User")
        self.git("config", "user.email", "user@example.org")

    def git(self, *words):
        return subprocess.run(["git", "-C", self.repository, *words], check=True, capture_output=True,
                              text=True).stdout.strip()

    def commit(self, subject, files):
        for name, text in files.items():
            (self.repository / name).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-qm", subject)
        return self.git("rev-parse", "HEAD")

    def gate(self):
        """A case that passes, committed."""
        nic = 'base = "cx5-100g"\n'
        (self.repository / "nic.toml").write_text(nic)
        (self.repository / "cases" / "write.toml").write_text(CASE)
        self.assertEqual(apps.call("check", self.repository / "cases", "--update", "--yes").status, 0)
        return self.commit("a gate", {})

    def bisect(self, status, *options):
        result = apps.call("check", self.repository / "cases", "--bisect", *options,
                           env={**os.environ, "TMPDIR": str(self.temporary)})
        self.assertEqual(result.status, status, result)
        self.assert_nothing_left()
        return result

    def results_in(self, file):
        results = json.loads(file.read_text())
        schema = json.loads((DOCS / "results.schema.json").read_text())
        jsonschema.Draft202012Validator(schema).validate(results)
        return results

    def assert_nothing_left(self):
        self.assertEqual(list(self.temporary.iterdir()), [])
        self.assertEqual(len(self.git("worktree", "list").splitlines()), 1)

    def refused(self, *options):
        result = self.bisect(CANNOT, *options)
        self.assertEqual(len(result.err.splitlines()), 1, result)
        return result.err


class Commits(Bisect):
    def history(self, bad_at, broken_at=()):
        good = self.gate()
        commits = []
        text = 'base = "cx5-100g"\n'
        for number in range(1, 7):
            text += f"# {number}\n"
            if number == bad_at:
                text += 'nic.tx.latency = "171 ns"\n'
            broken = "nic.no_such_key = 1\n" if number in broken_at else ""
            commits.append(self.commit(f"change {number}", {"nic.toml": text + broken}))
        return good, commits

    def test_the_first_bad_commit_and_its_cause(self):
        good, commits = self.history(bad_at=4)
        # Uncommitted changes are kept, and have no effect.
        (self.repository / "nic.toml").write_text("not even TOML")
        (self.repository / "own.txt").write_text("mine")
        before = self.git("status", "--porcelain")
        result = self.bisect(FOUND, f"{good}..main", "-j", "1")
        self.assertIn(f"the first bad commit is {commits[3]} change 4\n", result.out)
        self.assertIn("FAILED  write: event ", result.out)
        self.assertIn("  cause: nic.tx.latency: 170 ns | 171 ns\n", result.out)
        self.assertIn(f"{commits[5][:10]}  bad   change 6\n", result.out)
        self.assertEqual(self.git("status", "--porcelain"), before)
        self.assertEqual(self.git("symbolic-ref", "HEAD"), "refs/heads/main")

    def test_files_for_machines_and_people(self):
        good, commits = self.history(bad_at=4)
        file, junit, html = (self.path / name for name in ("r.json", "r.xml", "r.html"))
        result = self.bisect(FOUND, f"{good}..main", "--json", file, "--junit", junit, "--html", html)
        results = self.results_in(file)
        self.assertEqual((results["failed"], results["folder"]), (1, str(self.repository / "cases")))
        found = results["bisect"]
        self.assertEqual((found["commit"], found["candidates"]),
                         (commits[3], [{"commit": commits[3], "subject": "change 4"}]))
        lines = [f"{each['commit'][:10]}  {each['state']:4}  {each['subject']}" for each in found["tested"]]
        self.assertEqual(lines, result.out.splitlines()[:len(lines)])
        self.assertIn("nic.tx.latency", results["cases"][0]["difference"]["cause"])
        self.assertIn(f"  A: {self.repository}/cases/write.trace\n", result.out)
        self.assertNotIn(str(self.temporary), result.out)
        for each in (file, junit, html):
            self.assertIn("nic.tx.latency", each.read_text())
            self.assertNotIn(str(self.temporary), each.read_text())

    def test_json_of_several_candidates(self):
        good, commits = self.history(bad_at=4, broken_at=(3, 4))
        file = self.path / "r.json"
        self.bisect(SEVERAL, f"{good}..main", "--json", file)
        results = self.results_in(file)
        self.assertEqual(results["bisect"]["commit"], commits[5])
        self.assertEqual({each["commit"] for each in results["bisect"]["candidates"]}, set(commits[2:5]))
        self.assertIn("reason", next(each for each in results["bisect"]["tested"] if each["state"] == "skip"))

    def test_commits_that_cannot_be_tested(self):
        good, commits = self.history(bad_at=5, broken_at=(3,))
        result = self.bisect(FOUND, f"{good}..main")
        self.assertIn(f"the first bad commit is {commits[4]} change 5\n", result.out)
        good, commits = commits[1], commits
        self.assertIn("skip", result.out + self.bisect(FOUND, f"{good}..main").out)

    def test_several_are_left(self):
        good, commits = self.history(bad_at=4, broken_at=(3, 4))
        result = self.bisect(SEVERAL, f"{good}..main")
        self.assertIn("the first bad commit is one of these", result.out)
        for number in (3, 4, 5):
            self.assertIn(f"{commits[number - 1][:7]}", result.out)

    def test_a_build(self):
        """Programs of the repository are built at each commit. A commit whose build fails is skipped."""
        case = 'schema = 1\nsimulator = "./result @results"\n[results]\nfile = "value.json"\n'
        script = "#!/bin/sh\nprintf '{\"value\": %s}' \"$(cat \"$(dirname \"$0\")/value\")\" > \"$1\"\n"
        (self.repository / "cases" / "own.toml").write_text(case)
        (self.repository / "cases" / "value.json").write_text('{"value": 1}')
        (self.repository / ".gitignore").write_text("/cases/result\n")
        good = self.commit("one", {"program": script, "cases/value": "1"})
        self.commit("no build", {"program": "exit 1", "cases/value": "1"})
        bad = self.commit("three", {"program": script, "cases/value": "2"})
        self.commit("four", {"cases/other": "x"})
        build = "grep -q printf program || exit 125; cp program cases/result; chmod +x cases/result"
        result = self.bisect(SEVERAL, f"{good}..main", "--build", build)
        self.assertIn("skip  no build\n  the build has exit status 125", result.out)
        self.assertIn(bad[:7], result.out)


class BadInput(Bisect):
    def test_what_cannot_be_searched(self):
        good = self.gate()
        self.commit("nothing", {"other": "x"})
        for wrong in ("main", "..main", f"{good}..", f"{good}...main"):
            self.assertIn("is not GOOD..BAD", self.refused(wrong), wrong)
        self.assertIn("there is no commit 'missing'", self.refused("missing..main"))
        self.assertIn("is not among the commits before", self.refused(f"main..{good}"))
        self.assertRegex(self.refused(f"{good}..main"), r"BAD \S+ \(nothing\) is good: 1 case: 1 passed")

    def test_good_that_is_bad(self):
        self.gate()
        bad = self.commit("slow", {"nic.toml": 'base = "cx5-100g"\nnic.tx.latency = "171 ns"\n'})
        self.commit("nothing", {"other": "x"})
        self.assertRegex(self.refused(f"{bad}..main"), r"GOOD \S+ \(slow\) is bad")

    def test_no_repository(self):
        folder = self.path / "alone"
        folder.mkdir()
        result = apps.call("check", folder, "--bisect", "a..b")
        self.assertEqual((result.status, len(result.err.splitlines())), (CANNOT, 1), result)
        self.assertIn("not a git repository", result.err)

    def test_options_that_do_not_go_together(self):
        self.assertIn("--update", self.refused("a..b", "--update", "--yes"))
        self.assertIn("--history", self.refused("a..b", "--history", "h", "--label", "l"))
        result = apps.call("check", self.repository / "cases", "--build", "true")
        self.assertEqual((result.status, len(result.err.splitlines())), (CANNOT, 1), result)

    def test_it_is_interrupted(self):
        good = self.gate()
        self.commit("nothing", {"other": "x"})
        with subprocess.Popen([apps.rnicsim(), "check", self.repository / "cases", "--bisect", f"{good}..main",
                               "--build", "sleep 100"], env={**os.environ, "TMPDIR": str(self.temporary)},
                              stderr=subprocess.PIPE, text=True) as running:
            while not list(self.temporary.glob("*/build.out")):
                time.sleep(0.05)
            running.send_signal(signal.SIGTERM)
            err = running.communicate(timeout=60)[1]
        self.assertEqual((running.returncode, err), (128 + signal.SIGTERM, "rnicsim: ended by signal 15\n"))
        self.assert_nothing_left()


if __name__ == "__main__":
    apps.main()
