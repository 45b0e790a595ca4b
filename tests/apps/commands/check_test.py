#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
rnicsim check, as used for a regression gate of a user's own.

usage: check_test.py path/to/rnicsim
"""
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

import jsonschema

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402
import trace_file  # noqa: E402

ALL_PASSED, NOT_ALL, NONE_RUN = 0, 1, 2
DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"

WORKLOAD = """schema = 1
workload = "write-4k"
set = ["measure.duration=5us", "measure.warmup=0ns", "flow[0].qps=2"{sets}]
"""
TRACE = '[trace]\nfile = "{name}.trace"\n{more}\n'


class Check(apps.TestCase):
    def setUp(self):
        folder = apps.folder()
        self.path = folder.__enter__()
        self.addCleanup(folder.__exit__, None, None, None)

    def put(self, name, text):
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def workload(self, name, more="", sets=()):
        return self.put(f"{name}.toml", WORKLOAD.format(sets="".join(f', "{each}"' for each in sets)) + more)

    def traced(self, name, more="", sets=()):
        return self.workload(name, TRACE.format(name=name, more=more), sets)

    def check(self, status, *options, **more):
        result = apps.call("check", self.path, *options, **more)
        self.assertEqual(result.status, status, result)
        return result.out

    def update(self, status=ALL_PASSED, *options):
        return self.check(status, "--update", "--yes", *options)


class Outcomes(Check):
    def test_a_trace_that_is_as_expected(self):
        self.traced("a")
        self.update()
        self.assertEqual(self.check(ALL_PASSED), "passed  a\n1 case: 1 passed, 0 failed, 0 broken\n")

    def test_a_trace_of_a_newer_program(self):
        self.traced("a", 'leave_out = ["frame_sent"]')
        self.update()
        trace = self.path / "a.trace"
        trace.write_bytes(trace_file.with_schema(trace.read_bytes(), '"frame_sent: ', '"frame_left: '))
        self.assertRegex(self.check(ALL_PASSED), r"\Apassed  a\n  \S+a\.trace: \d+ events of the kind 'frame_left' "
                                                 r"\(bytes\) are left out: this program does not know the kind\n")

    def test_the_first_difference_and_what_led_to_it(self):
        self.traced("a")
        self.update()
        self.traced("a", sets=["nic.tx.latency=171ns"])
        text = self.check(NOT_ALL)
        self.assertRegex(text, r"^FAILED  a: event \d+: time \+1 ns\n  the last events of h0, the same in both:\n"
                               r"(      .* h0  .*\n){8}  A:  .* frame_sent  .*\n")
        self.assertIn("\n  nic.tx.latency: 170 ns | 171 ns\n", text)

    def test_times_within_a_tolerance(self):
        self.traced("a")
        self.update()
        for times, status in (('"1 ns"', NOT_ALL), ('"50 ns"', ALL_PASSED), ('["1 ns", "20 %"]', ALL_PASSED)):
            self.traced("a", f"times = {times}", ["nic.rx.latency=180ns"])
            text = self.check(status)
            if status == NOT_ALL:
                self.assertRegex(text, r"FAILED  a: event \d+: \+10 ns: .* after the event before in A, .* in B; 1 ns ")

    def test_results_and_properties(self):
        results = '[results]\nfile = "a.json"\n'
        self.workload("a", results)
        self.update()
        self.check(ALL_PASSED)
        self.workload("a", results, ["nic.tx.latency=300ns"])
        self.assertRegex(self.check(NOT_ALL), r"FAILED  a: .*latency_ps\.\w+: .* expected, not .*\n  and \d+ more of ")
        file = self.path / "a.json"
        frames = json.loads(file.read_text())["hosts"]["h0"]["counters"]["nic.port.tx_frames"]
        self.put("a.json", json.dumps({"hosts": {"h0": {"counters": {"nic.port.tx_frames": frames + 5}}}}))
        self.workload("a", results + f'may_differ = [{{ value = "*.nic.port.*", by = {frames + 5} }}]\n')
        self.check(ALL_PASSED)
        self.workload("a", '[[property]]\nvalue = "flows[0].operations"\nequals = 0\n')
        self.assertRegex(self.check(NOT_ALL),
                         r"FAILED  a: property\[0\]\.equals: flows\[0\]\.operations is \d+, not equal to 0\n")

    def test_a_broken_case_does_not_keep_the_rest(self):
        self.workload("good")
        self.put("no_toml.toml", "schema =")
        self.put("unknown/case.toml", 'schema = 1\nworkload = "write-4k"\nworkloads = 1\n')
        self.put("absent.toml", 'schema = 1\nrun = "no-such-program"\n')
        self.put("absent_simulator.toml", 'schema = 1\nsimulator = "no-such-program"\n')
        self.put("crash.toml", "schema = 1\nsimulator = \"sh -c 'kill -SEGV $$'\"\n")
        self.traced("no_trace")
        self.put("damaged.trace", "something")
        self.traced("damaged")
        self.put("no_results.toml",
                 'schema = 1\nsimulator = "true @results"\n[[property]]\nvalue = "end_ps"\nequals = "1 us"\n')
        self.workload("no_value", '[[property]]\nvalue = "h0.nic.port.tx_frame"\nequals = 0\n')
        text = self.check(NOT_ALL)
        for line in (r"BROKEN  absent: the run ended with status 2, not 0\n  rnicsim: h0: no-such-program: ",
                     r"BROKEN  absent_simulator: no-such-program: No such file or directory; --path names ",
                     r"BROKEN  crash: killed by signal 11 \(Segmentation fault\)\n",
                     r"BROKEN  damaged: .*/damaged\.trace: not a trace: ",
                     r"passed  good\n",
                     r"BROKEN  no_results: the run wrote no results\n",
                     r"BROKEN  no_toml: .*/no_toml\.toml:1: ",
                     r"BROKEN  no_trace: .*/no_trace\.trace: No such file or directory; --update creates this file\n",
                     r"BROKEN  no_value: .*/no_value\.toml: property\[0\]\.equals: the results have no value "
                     r"'h0\.nic\.port\.tx_frame'; did you mean h0\.nic\.port\.tx_frames\?\n",
                     r"BROKEN  unknown: .*/unknown/case\.toml: workloads: unknown key; did you mean workload",
                     r"\n10 cases: 1 passed, 0 failed, 9 broken\n$"):
            self.assertRegex(text, line)

    def test_what_is_no_file(self):
        self.traced("a_pipe")
        os.mkfifo(self.path / "a_pipe.trace")
        self.traced("b_folder")
        (self.path / "b_folder.trace").mkdir()
        self.workload("c_results", '[results]\nfile = "c.json"\n')
        os.mkfifo(self.path / "c.json")
        self.put("d_left.toml", 'schema = 1\nsimulator = "mkfifo @trace"\n[trace]\nfile = "absent.trace"\n')
        self.put("e_left.toml",
                 'schema = 1\nsimulator = "mkfifo @results"\n[[property]]\nvalue = "end_ps"\nequals = "1 us"\n')
        for text in (self.check(NONE_RUN), self.update(NONE_RUN)):
            for line in (r"a_pipe: .*/a_pipe\.trace: not a file", r"b_folder: .*/b_folder\.trace: not a file",
                         r"c_results: .*/c\.json: not a file", "d_left: .*: not a file",
                         "e_left: the run wrote no results"):
                self.assertRegex(text, f"BROKEN  {line}\n")

    def test_the_status_that_is_right(self):
        self.put("a.toml", "schema = 1\nsimulator = \"sh -c 'echo woe >&2; exit 3'\"\n")
        self.assertIn("FAILED  a: the run ended with status 3, not 0\n  woe\n", self.check(NOT_ALL))
        self.put("a.toml", "schema = 1\nstatus = 3\nsimulator = \"sh -c 'exit 3'\"\n")
        self.check(ALL_PASSED)

    def test_a_wrong_status_and_where_it_began(self):
        self.traced("a")
        self.traced("b", sets=["nic.tx.latency=171ns"])
        self.update()
        self.put("a.toml", f"""schema = 1\nsimulator = "sh -c 'cp {self.path}/b.trace @trace; exit 1'"\n"""
                 + TRACE.format(name="a", more=""))
        for options in ([], ["--update", "--yes"]):
            text = self.check(NOT_ALL, *options)
            self.assertRegex(text, r"FAILED  a: the run ended with status 1, not 0\n  event \d+: time \+1 ns\n")
            self.assertNotIn("written", text)

    def test_what_cannot_be_run(self):
        self.assertIn("no case in this folder", apps.call("check", self.path).err)
        self.check(NONE_RUN)
        result = apps.call("check", self.path / "absent")
        self.assertEqual((result.status, result.err),
                         (NONE_RUN, f"rnicsim: {self.path / 'absent'}: No such file or directory\n"))
        self.workload("good")
        self.assertIn("no case is called 'goof'; did you mean good?", apps.call("check", self.path, "goof").err)
        self.put("bad.toml", "")
        self.check(NONE_RUN, "bad")
        self.check(ALL_PASSED, "good")

    def test_jobs_change_nothing(self):
        for i in range(6):
            self.traced(f"c{i}", sets=[f"flow[0].window={i + 1}"])
        self.update()
        self.traced("c3", sets=["flow[0].window=9"])
        self.assertEqual(self.check(NOT_ALL, "-j", 1), self.check(NOT_ALL, "-j", 4))

    def test_a_simulator_of_ones_own(self):
        self.traced("a")
        self.update()
        (self.path / "bin").mkdir()
        mine = self.put("bin/mine", f'#!/bin/sh\nexec cp "{self.path}/a.trace" "$1"\n')
        mine.chmod(0o755)
        (self.path / "bin").rename(self.path / "_bin")
        self.put("b.toml", 'schema = 1\nsimulator = "mine @trace"\n[trace]\nfile = "a.trace"\n')
        self.check(NOT_ALL)
        self.check(ALL_PASSED, "--path", self.path / "_bin")

    def test_what_ran_is_kept(self):
        self.traced("a", "\n[[property]]\nvalue = \"flows[0].operations\"\nabove = 0\n")
        self.update()
        kept = self.path / "_kept"
        self.check(ALL_PASSED, "--out", kept)
        self.assertEqual((kept / "a" / "trace").read_bytes(), (self.path / "a.trace").read_bytes())
        self.assertGreater(json.loads((kept / "a" / "results.json").read_text())["flows"][0]["operations"], 0)


class Limits(Check):
    SPIN = "schema = 1\nlimit = \"{limit}\"\nsimulator = \"sh -c 'sleep 1000 & echo $! >>{pids}; wait'\"\n"

    def spin(self, limit):
        pids = self.path / "_pids"
        self.put("spin.toml", self.SPIN.format(limit=limit, pids=pids))
        return pids

    def assert_ended(self, pids):
        for pid in pids.read_text().split():
            deadline = time.monotonic() + apps.RUN_SECONDS
            while pathlib.Path(f"/proc/{pid}").exists() and self.state(pid) != "Z":
                self.assertLess(time.monotonic(), deadline, f"process {pid} is still there")
                time.sleep(0.02)

    @staticmethod
    def state(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return "Z"

    def test_no_end(self):
        pids = self.spin("1500 ms")
        self.workload("good")
        text = self.check(NOT_ALL)
        self.assertIn("BROKEN  spin: not ended after 1.5 s (limit)\n", text)
        self.assertIn("passed  good\n", text)
        self.assert_ended(pids)

    def test_no_end_in_simulated_time(self):
        """Same result on every machine: the limit does not depend on real time."""
        sleeps = 'schema = 1\nrun = "sh -c \\"sleep 5; exit 124\\""\nsimulated_limit = "{limit}"\n{more}'
        self.put("long.toml", sleeps.format(limit="2 s", more=""))
        self.put("right.toml", sleeps.format(limit="6 s", more="status = 124\n"))
        self.put("bench.toml", WORKLOAD.format(sets="") + 'simulated_limit = "1 us"\n')
        text = self.check(NOT_ALL)
        self.assertIn("FAILED  bench: not ended after 1 us of simulated time (simulated_limit)\n", text)
        self.assertIn("FAILED  long: not ended after 2 s of simulated time (simulated_limit)\n", text)
        self.assertIn("passed  right\n", text)

    def test_told_to_end(self):
        pids = self.spin("1000 s")
        # An ignored signal, as under nohup, does not end the check. Children are waited for although SIGCHLD is
        # ignored.
        process = apps.start("check", self.path, preexec_fn=lambda: [
            signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGCHLD)])
        deadline = time.monotonic() + apps.RUN_SECONDS
        while not (pids.exists() and pids.read_text().endswith("\n")):
            self.assertLess(time.monotonic(), deadline, "the case did not start")
            time.sleep(0.02)
        process.send_signal(signal.SIGHUP)
        # timeout(1) signals its child, and then the whole process group.
        process.send_signal(signal.SIGTERM)
        time.sleep(0.002)
        process.send_signal(signal.SIGTERM)
        result = apps.finish(process)
        self.assertEqual(result.status, 128 + signal.SIGTERM)
        self.assertIn("rnicsim: ended by signal 15\n", result.err)
        self.assert_ended(pids)


class Update(Check):
    def on_terminal(self, answer):
        leader, terminal = pty.openpty()
        process = subprocess.Popen([apps.rnicsim(), "check", self.path, "--update"], stdin=terminal,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        os.close(terminal)
        os.write(leader, answer.encode() + b"\n")
        out, _ = process.communicate(timeout=apps.RUN_SECONDS)
        os.close(leader)
        return process.returncode, out

    def test_shows_and_asks(self):
        self.traced("a")
        self.traced("b")
        self.update()
        before = {name: (self.path / f"{name}.trace").stat() for name in "ab"}
        old = (self.path / "a.trace").read_bytes()
        self.traced("a", sets=["nic.tx.latency=171ns"])
        status, text = self.on_terminal("n")
        self.assertEqual(status, NOT_ALL, text)
        self.assertRegex(text, r"FAILED  a: event \d+: time \+1 ns\n")
        self.assertIn("1 file would change. Write it? [y/N] ", text)
        self.assertEqual((self.path / "a.trace").read_bytes(), old)
        status, text = self.on_terminal("y")
        self.assertEqual(status, ALL_PASSED, text)
        self.assertIn(f"written: {self.path / 'a.trace'}\n", text)
        self.assertNotEqual((self.path / "a.trace").read_bytes(), old)
        after = (self.path / "b.trace").stat()
        self.assertEqual((after.st_ino, after.st_mtime_ns), (before["b"].st_ino, before["b"].st_mtime_ns))
        self.check(ALL_PASSED)

    def test_nobody_to_ask(self):
        self.traced("a")
        result = apps.call("check", self.path, "--update")
        self.assertEqual(result.status, NONE_RUN)
        self.assertRegex(result.err,
                         "^rnicsim: --update asks before writing, but standard input is no terminal; --yes .*\n$")
        self.assertFalse((self.path / "a.trace").exists())

    def test_what_no_file_mends(self):
        self.traced("a", '\n[[property]]\nvalue = "flows[0].operations"\nequals = 0\n')
        self.assertIn("written: ", self.update(NOT_ALL))
        self.assertIn("FAILED  a: property[0].equals", self.check(NOT_ALL))
        self.put("b.toml", "schema =")
        self.assertIn("BROKEN  b: ", self.update(NOT_ALL))
        self.assertEqual((self.path / "b.toml").read_text(), "schema =")

    def test_a_damaged_file_is_made_anew(self):
        self.traced("a")
        self.put("a.trace", "something")
        self.update()
        self.check(ALL_PASSED)

    def test_all_or_nothing(self):
        self.traced("a")
        self.update()
        old = (self.path / "a.trace").read_bytes()
        self.traced("a", sets=["nic.tx.latency=171ns"])
        self.traced("b")
        (self.path / "b.trace").symlink_to("/dev/full")
        result = apps.call("check", self.path, "--update", "--yes")
        self.assertEqual((result.status, result.err),
                         (NONE_RUN, f"rnicsim: {self.path / 'b.trace'}: cannot be written: No space left on device\n"))
        self.assertEqual((self.path / "a.trace").read_bytes(), old)
        self.assertEqual(sorted(file.name for file in self.path.iterdir()), ["a.toml", "a.trace", "b.toml", "b.trace"])


class ForMachines(Check):
    def test_junit_and_json(self):
        self.workload("good")
        self.put("bad.toml", 'schema = 1\nworkload = "<&>"\n')
        self.workload("fails", '[[property]]\nvalue = "flows[0].operations"\nequals = 0\n')
        junit = self.path / "_junit.xml"
        result = apps.call("check", self.path, "--junit", junit, "--json", "-")
        suite = xml.etree.ElementTree.parse(junit).getroot().find("testsuite")
        self.assertEqual([suite.get(name) for name in ("tests", "failures", "errors", "skipped")], ["3", "1", "1", "0"])
        cases = {case.get("name"): case for case in suite.findall("testcase")}
        self.assertEqual(sorted(cases), ["bad", "fails", "good"])
        self.assertIn("'<&>'", cases["bad"].find("error").text)
        self.assertRegex(cases["fails"].find("failure").get("message"), r"^property\[0\]\.equals: ")
        self.assertEqual(list(cases["good"]), [])
        told = json.loads(result.out)
        schema = json.loads((DOCS / "results.schema.json").read_text())
        jsonschema.Draft202012Validator(schema).validate(told)
        self.assertEqual((told["command"], told["passed"], told["failed"], told["broken"]), ("check", 1, 1, 1))
        self.assertEqual([case["outcome"] for case in told["cases"]], ["broken", "failed", "passed"])
        self.assertIn("passed  good\n", result.err)

    def test_a_disk_that_is_full_and_a_folder_that_is_not_there(self):
        self.workload("good")
        for option in ("--junit", "--json"):
            result = apps.call("check", self.path, option, "/dev/full")
            self.assertEqual(result.status, NONE_RUN)
            self.assertRegex(result.err, r"^rnicsim: /dev/full: .*No space left on device\n$")
            self.assertIn("passed  good\n", result.out)
            result = apps.call("check", self.path, option, self.path / "absent" / "file")
            self.assertEqual(result.status, NONE_RUN)
            self.assertRegex(result.err, r"^rnicsim: .*/absent/file: .*No such file or directory\n$")
            self.assertEqual(result.out, "")


class Manual(Check):
    def test_its_examples_pass(self):
        text = (DOCS / "check.md").read_text()
        examples = re.findall(r"```toml\n(schema = .*?)```", text, re.S)
        self.assertEqual(len(examples), 3)
        part = re.search(r"```toml\n(\[results\].*?)```", text, re.S)[1]
        for number, example in enumerate([*examples, WORKLOAD.format(sets="") + part]):
            self.put(f"example{number}.toml", example)
        self.update()
        self.check(ALL_PASSED)


if __name__ == "__main__":
    apps.main()
