#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The page of `rnicsim report` in headless Chromium: positions of the drawn marks.

usage: report_page_test.py RNICSIM [TESTS]      (needs chromium)
"""

import html.parser
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import sweep_folder  # noqa: E402

RNICSIM = ""
QPS = ["4", "16", "64", "256"]
CACHES = ["256", "512"]
RATES = {(cache, qps): 1e6 * (2 + i + 3 * j) for j, cache in enumerate(CACHES) for i, qps in enumerate(QPS)}
STAGES = {"post": 70_000, "wire": 430_000, "poll": 100_000}
VOID = {"meta", "link", "img", "input", "br", "hr", "source"}


class Node:
    def __init__(self, tag, attributes, parent):
        self.tag, self.attributes, self.parent, self.children, self.text = tag, dict(attributes), parent, [], ""
        self.classes = (self.attributes.get("class") or "").split()

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()

    def all(self, tag=None, of_class=None):
        return [node for node in self.walk() if tag in (None, node.tag)
                and (of_class is None or set(of_class.split()) <= set(node.classes))]

    def one(self, of_id):
        found = [node for node in self.walk() if node.attributes.get("id") == of_id]
        assert len(found) == 1, f"{len(found)} elements are called {of_id}"
        return found[0]

    def all_text(self):
        return self.text + "".join(child.all_text() for child in self.children)


class Tree(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.root = self.node = Node("", {}, None)
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        node = Node(tag, attributes, self.node)
        self.node.children.append(node)
        if tag not in VOID:
            self.node = node

    def handle_startendtag(self, tag, attributes):
        self.node.children.append(Node(tag, attributes, self.node))

    def handle_endtag(self, tag):
        node = self.node
        while node.parent and node.tag != tag:
            node = node.parent
        if node.parent:
            self.node = node.parent

    def handle_data(self, data):
        self.node.text += data


def places(trace):
    """Positions of a trace's marks, in pixels."""
    marks = [re.search(r"translate\(([-\d.]+),([-\d.]+)\)", node.attributes["transform"])
             for node in trace.all("path", "point")]
    return [tuple(float(part) for part in mark.groups()) for mark in marks]


def colour(node):
    return re.search(r"fill: ([^;]+);", node.attributes["style"]).group(1)


class Browser(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.page = self.folder / "report.html"

    def report(self, *results):
        subprocess.run([RNICSIM, "report", *results, "-o", self.page], check=True, capture_output=True, timeout=600)

    def browse(self, width=1400, dark=False, **view):
        """The page's elements after its scripts have run, and the errors on the browser's console."""
        address = self.page.as_uri() + ("#" + urllib.parse.urlencode(view) if view else "")
        theme = ["--blink-settings=preferredColorScheme=0"] if dark else []
        done = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
             "--disable-component-update", "--no-first-run", f"--user-data-dir={self.folder / 'profile'}",
             "--enable-logging=stderr", f"--window-size={width},2000", *theme, "--dump-dom", address],
            capture_output=True, text=True, timeout=600)
        # Chromium's own pages print errors on a busy machine.
        complaints = [line for line in done.stderr.splitlines() if ":CONSOLE" in line and "source: chrome:" not in line]
        return Tree(done.stdout).root, complaints

    def opened(self, **view):
        root, complaints = self.browse(**view)
        self.assertEqual(complaints, [], "nothing is asked of a network, and no script fails")
        self.assertIn("data-opened-ms", root.all("html")[0].attributes, "the page's script came to its end")
        return root


class Page(Browser):
    def sweep(self, name="a", factor=1.0, **more):
        def run(at, seed):
            rate = factor * RATES[at["nic.contexts.qpc.l1_entries"], at["flow.qps"]]
            limit = "nic.units.transmit" if at["flow.qps"] == "4" else "nic.dma.to_host"
            return sweep_folder.run_results(seed, rate * (1 + 0.01 * (seed - 2)), stages=STAGES,
                                            uses=[("h0", limit, 0.9)], parameters=at)
        axes = {"nic.contexts.qpc.l1_entries": (CACHES, "list"), "flow.qps": (QPS, "geometric")}
        sweep_folder.write_sweep(self.folder / name, axes, run, name=name, **more)
        return self.folder / name

    def traces(self, root, axes):
        """Traces of the upper plot on a pair of axes."""
        layers = [node for node in root.one("plot-curve").all("g", axes) if "overplot" in node.parent.classes]
        return [trace for layer in layers for trace in layer.all("g", "trace scatter")]

    def legend(self, root, plot):
        """The entries of the legends behind a plot."""
        plot = root.one(plot)
        lists, behind = [], plot.parent.children[plot.parent.children.index(plot) + 1:]
        for node in behind:
            if "legend" not in node.classes:
                break
            lists += [button.all_text() for button in node.all("button")]
        return lists

    def curves(self, root):
        """The marks of each curve."""
        return [marks for marks in map(places, self.traces(root, "xy")) if marks]

    def rows(self, root, table):
        return [[cell.all_text() for cell in row.all("td")] for row in root.one(table).all("tr") if row.all("td")]

    def assert_on_a_line(self, pairs, message):
        """Pixels are a linear function of values: the two ends define the line, and all other pairs must lie on it."""
        pairs = sorted(pairs)
        (first, from_pixel), (last, to_pixel) = pairs[0], pairs[-1]
        slope = (to_pixel - from_pixel) / (last - first)
        self.assertGreater(abs(to_pixel - from_pixel), 100, message)
        for value, pixel in pairs:
            self.assertAlmostEqual(pixel, from_pixel + slope * (value - first), delta=0.6, msg=message)
        return slope

    def test_marks_stand_where_the_results_are(self):
        reference = {"label": "published", "key": "flow[0].rate_per_s", "x": {"flow.qps": "16"}, "value": 5e6}
        self.report(self.sweep(references=[reference]))
        root = self.opened()
        *curves, published = self.curves(root)
        self.assertEqual([len(curve) for curve in curves], [4, 4])
        values = [(RATES[cache, qps], curves[j][i][1]) for j, cache in enumerate(CACHES) for i, qps in enumerate(QPS)]
        self.assertLess(self.assert_on_a_line(values + [(5e6, published[0][1])], "y by value"), 0, "more is higher")
        # The axis is geometric: steps are equal.
        places_x = [(i, mark[0]) for curve in curves for i, mark in enumerate(curve)] + [(1, published[0][0])]
        self.assertGreater(self.assert_on_a_line(places_x, "x by the logarithm"), 0)
        bands = [path for path in root.one("plot-curve").all("path", "js-fill") if path.attributes.get("d")]
        self.assertEqual(len(bands), 2, "a band a curve: the seeds differ")
        limits = [path for trace in self.traces(root, "xy3") for path in trace.all("path", "point")]
        self.assertEqual(len(limits), 8)
        self.assertEqual(len({colour(path) for path in limits}), 2, "two resources limit")
        self.assertIn("published", self.legend(root, "plot-curve"))

    def test_the_first_axis_has_numbers(self):
        axes = {"nic": (["cx5-100g", "cx6-200g"], "list"), "flow.doorbell": (["plain", "blueflame"], "list"),
                "flow.window": (["1", "4", "16"], "geometric")}
        sweep_folder.write_sweep(self.folder / "a", axes, lambda at, seed: sweep_folder.run_results(seed))
        self.report(self.folder / "a")
        root = self.opened()
        self.assertEqual([len(curve) for curve in self.curves(root)], [3] * 4)
        self.assertEqual(len([option for option in root.one("controls").all("option")
                              if "selected" in option.attributes and option.all_text() == "flow.window"]), 1)

    def test_many_curves_are_told_apart(self):
        axes = {"flow.qps": (["1", "2", "3"], "list"), "flow.window": ([str(i) for i in range(1, 25)], "linear")}
        sweep_folder.write_sweep(self.folder / "a", axes, lambda at, seed: sweep_folder.run_results(
            seed, 1e6 * int(at["flow.window"])))
        self.report(self.folder / "a")
        root = self.opened(x="flow.qps")
        self.assertEqual([text for text in self.legend(root, "plot-curve") if "window" in text],
                         [f"window = {i}" for i in range(1, 25)])
        buttons = [button for node in root.all("ul", "legend") for button in node.all("button")
                   if "window" in button.all_text()]
        looks = {(button.all("line")[0].attributes["stroke"], button.all("line")[0].attributes["stroke-dasharray"],
                  button.all("path")[0].attributes["d"]) for button in buttons}
        self.assertEqual(len(looks), 24, "no two curves look alike")

    def test_narrow_screens_have_plots(self):
        axes = {"nic.contexts.qpc.l1_entries": (CACHES, "list"), "flow.qps": (QPS, "geometric"),
                "nic": (["cx5-100g", "cx6-200g", "cx7-400g"], "list")}
        sweep_folder.write_sweep(self.folder / "a", axes, lambda at, seed: sweep_folder.run_results(seed))
        self.report(self.folder / "a")
        for width in (420, 800, 1400):
            root = self.opened(width=width, x="flow.qps")
            places_x = [x for curve in self.curves(root) for x, _ in curve]
            self.assertGreater(max(places_x) - min(places_x), 0.4 * width, width)

    def test_texts_do_not_overlap_at_many_points(self):
        axes = {"flow.qps": ([str(i) for i in range(1, 101)], "linear"),
                "flow.window": ([str(i) for i in range(1, 21)], "linear")}
        sweep_folder.write_sweep(self.folder / "a", axes, lambda at, seed: sweep_folder.run_results(
            seed, uses=[("h0", "nic.port.tx", 0.95)]), seeds=(1,))
        self.report(self.folder / "a")
        root = self.opened(width=800)
        for axis, apart in (("y3tick", 11), ("xtick", 25)):
            marks = [re.search(r"translate\(([-\d.]+),([-\d.]+)\)", text.attributes["transform"])
                     for tick in root.one("plot-curve").all("g", axis) for text in tick.all("text")]
            places = sorted(float(mark.group(1 if axis == "xtick" else 2)) for mark in marks)
            self.assertGreater(len(places), 3, axis)
            for place, following in zip(places, places[1:]):
                self.assertGreater(following - place, apart, axis)
        self.assertEqual([node for trace in self.traces(root, "xy3") for node in trace.all("text")], [],
                         "no room for a text beside each mark")

    def test_dark_where_the_browser_is(self):
        self.report(self.sweep())
        grounds = [self.opened(dark=dark, x="flow.qps").one("plot-curve").all("svg", "main-svg")[0].attributes["style"]
                   for dark in (False, True)]
        self.assertIn("background: rgb(255, 255, 255)", grounds[0])
        self.assertIn("background: rgb(29, 33, 38)", grounds[1])

    def test_the_view_is_chosen_in_the_address(self):
        self.report(self.sweep())
        root = self.opened(x="nic.contexts.qpc.l1_entries", y="flow[0].latency_ps.p99", log=0)
        self.assertEqual([len(curve) for curve in self.curves(root)], [2] * len(QPS))
        root = self.opened(**{"x": "flow.qps", "only.nic.contexts.qpc.l1_entries": "number 512"})
        self.assertEqual([len(curve) for curve in self.curves(root)], [4])

    def test_stages_are_stacked(self):
        self.report(self.sweep())
        bars = self.opened(x="flow.qps").one("stages-0").all("g", "trace bars")
        heights = []
        for trace in bars:
            paths = [re.match(r"M[-\d.]+,([-\d.]+)V([-\d.]+)", path.attributes["d"]) for path in trace.all("path")]
            heights.append([abs(float(path.group(1)) - float(path.group(2))) for path in paths])
        self.assertEqual([len(of) for of in heights], [4] * 3)
        for stage, of in zip(STAGES.values(), heights):
            self.assertAlmostEqual(of[0] / heights[0][0], stage / STAGES["post"], delta=0.2)

    def test_what_failed_is_seen(self):
        self.report(self.sweep(failed=[1], missing=[7]))
        root = self.opened(x="flow.qps")
        self.assertEqual([len(curve) for curve in self.curves(root)], [3, 3])
        marks = [len(places(trace)) for trace in self.traces(root, "xy2")]
        self.assertEqual(marks, [1, 1], "one failed, one was not run")
        self.assertEqual(root.one("failures-title").all_text(), "3 runs failed, 3 runs not done yet")
        self.assertIn("no such luck at 1", root.one("failures-table").all_text())
        self.assertEqual([row[3] for row in self.rows(root, "points-table")],
                         ["3 done", "3 failed", *["3 done"] * 5, "3 not run"])

    def test_nothing_but_failures(self):
        self.report(self.sweep(failed=range(8)))
        root = self.opened()
        self.assertEqual(len(self.rows(root, "points-table")), 8)

    def test_sets_side_by_side(self):
        self.report(self.sweep("a"), self.sweep("b", factor=2))
        root = self.opened(x="flow.qps")
        self.assertEqual([len(curve) for curve in self.curves(root)], [4] * 4)
        rows = self.rows(root, "points-table")
        self.assertEqual(sorted({row[0] for row in rows}), ["a", "b"])
        self.assertEqual({row[7] for row in rows if row[0] == "b"}, {"2"}, "twice the first set")
        ratio = [places(trace) for trace in root.one("plot-ratio").all("g", "trace scatter")]
        self.assertEqual([len(of) for of in ratio], [4, 4])
        self.assertEqual(len({round(mark[1], 1) for of in ratio for mark in of}), 1, "the same ratio everywhere")
        self.assertEqual(len(root.one("use").all("div", "plot")), 2)

    def test_other_shapes(self):
        """A single point; a single axis of names; three axes."""
        shapes = {
            "one": {},
            "names": {"flow.doorbell": (["plain", "blueflame"], "list")},
            "three": {"flow.qps": (["1", "2"], "list"), "flow.size": (["64 B", "4 KiB"], "list"),
                      "nic": (["cx5-100g", "cx6-200g"], "list")},
        }
        for name, axes in shapes.items():
            with self.subTest(name):
                sweep_folder.write_sweep(self.folder / name, axes, lambda at, seed: sweep_folder.run_results(seed),
                                         name=name)
                self.report(self.folder / name)
                root = self.opened()
                points = 1
                for values, _ in axes.values():
                    points *= len(values)
                self.assertEqual(sum(map(len, self.curves(root))), points)
                self.assertEqual(len(self.rows(root, "points-table")), points)

    def test_hostile_names_stay_texts(self):
        hostile = '</script><script>document.body.id="owned"</script><img src="http://192.0.2.1/x"><a href="http://x">'
        folder = self.sweep(hostile.replace("/", "\u2215"), failed=[0], references=[
            {"label": hostile, "key": "flow[0].rate_per_s", "x": {}, "value": 1e6}])
        file = folder / "results.json"
        results = json.loads(file.read_text())
        results["name"] = hostile
        results["axes"][0]["values"][0] = results["axes"][0]["key"] = hostile
        for point in results["points"]:
            value = point["values"].pop("nic.contexts.qpc.l1_entries")
            point["values"][hostile] = hostile if value == CACHES[0] else value
            for run in point["runs"]:
                if "error" in run:
                    run["error"] = hostile
            if "metrics" in point and point["metrics"]:
                point["metrics"][hostile] = {"mean": 1.0, "low": 1, "high": 1, "n": 3, "unit": hostile}
            point["limit"] = {"host": hostile, "resource": hostile, "use": 0.5, "queue": None, "growth": None,
                              "text": hostile}
        file.write_text(json.dumps(results))
        self.report(folder)
        root = self.opened()
        self.assertEqual(root.one("title").all_text(), hostile)
        self.assertIn(hostile, root.one("failures-table").all_text())
        self.assertEqual(root.all("img") + [a for a in root.all("a") if a.attributes.get("href")], [])
        self.assertNotIn("id", root.all("body")[0].attributes)

    def test_a_request_would_be_noticed(self):
        self.report(self.sweep())
        text = self.page.read_text()
        self.page.write_text(text.replace("<main>", '<main><img src="http://192.0.2.1/x.png">'))
        _, complaints = self.browse()
        self.assertTrue(any("192.0.2.1" in line for line in complaints), complaints)

    def test_no_button_uploads(self):
        self.report(self.sweep())
        titles = {node.attributes["data-title"] for node in self.opened().walk() if "data-title" in node.attributes}
        self.assertIn("Download plot as a PNG", titles)
        self.assertEqual({title for title in titles if "hare" in title or "loud" in title}, set())

    def test_a_large_sweep(self):
        """200 points of three seeds, with the counters and stages of real runs."""
        path = self.folder / "real.json"
        subprocess.run([RNICSIM, "bench", "write-4k", "--set", "flow.qps=8", "--set", "measure.duration=50us",
                        "--waterfall", "--json", path], check=True, capture_output=True, timeout=600)
        real = path.read_text()
        numbers = {"i": 0}

        def run(at, seed):
            numbers["i"] += 1
            results = json.loads(real)
            for kinds in results["hosts"].values():
                for kind, counters in kinds.items():
                    kinds[kind] = {key: value and value * (1 + numbers["i"] / 1000) for key, value in counters.items()}
            results["flows"][0]["rate_per_s"] = 1e6 + 1e4 * numbers["i"] + 5e4 * seed
            results["parameters"].update(at)
            return results

        axes = {"flow.qps": ([str(2 ** i) for i in range(20)], "geometric"),
                "flow.window": ([str(i) for i in range(1, 11)], "linear")}
        sweep_folder.write_sweep(self.folder / "large", axes, run)
        start = time.monotonic()
        self.report(self.folder / "large")
        made = time.monotonic() - start
        root = self.opened()
        size = self.page.stat().st_size
        self.assertEqual([len(curve) for curve in self.curves(root)], [20] * 10)
        self.assertLess(size, 5_000_000)
        print(f"200 points: {size / 1e6:.2f} MB, made in {made:.1f} s, opened in "
              f"{root.all('html')[0].attributes['data-opened-ms']} ms")


class History(Browser):
    """`rnicsim report --history`."""
    CASE = ('schema = 1\nworkload = "write-4k"\nset = ["measure.duration=5us", "measure.warmup=0ns", "flow[0].qps=2", '
            '"nic.tx.latency={latency}"]\n[trace]\nfile = "{name}.trace"\n')

    def check(self, label, latency):
        cases = self.folder / "cases"
        cases.mkdir(exist_ok=True)
        for name, of in (("<b>&", latency), ("steady", "170ns")):
            (cases / f"{name}.toml").write_text(self.CASE.format(name=name, latency=of))
        if label == "v1":
            subprocess.run([RNICSIM, "check", cases, "--update", "--yes"], check=True, capture_output=True, timeout=600)
        subprocess.run([RNICSIM, "check", cases, "--history", self.folder / "history", "--label", label],
                       check=False, capture_output=True, timeout=600)

    def test_changes_plots_and_outcomes(self):
        for number in range(1, 6):
            self.check(f"v{number}", "170ns" if number < 4 else "370ns")
        self.report("--history", self.folder / "history")
        root = self.opened()
        self.assertEqual(root.one("summary").all_text(), "5 labels, 2 cases")
        rows = [[cell.all_text() for cell in row.all("td")] for row in root.one("changes").all("tr")[1:]]
        self.assertEqual({tuple(row[:2]) for row in rows}, {("v4", "<b>&")}, "of the case that changed alone")
        latency = next(row for row in rows if row[2] == "h0.WRITE.latency_ps.p50")
        self.assertRegex(latency[5], r"^\+[\d.]+ %$")
        plots = root.one("plots")
        self.assertEqual(len(plots.all("h3")), min(len(rows), 24))
        lines = [places(trace) for trace in plots.all("g", "trace scatter")]
        self.assertEqual([len(line) for line in lines[:2]], [5, 1], "five labels and a change")
        self.assertEqual(lines[1][0], lines[0][3], "which is at the fourth")
        outcomes = [[cell.all_text() for cell in row.all("td")] for row in root.one("outcomes").all("tr")[1:]]
        self.assertEqual([row[:3] for row in outcomes], [["v5", "<b>&", "failed"], ["v4", "<b>&", "failed"]])
        self.opened_is_dark()

    def opened_is_dark(self):
        _, complaints = self.browse(dark=True, width=400)
        self.assertEqual(complaints, [])


if __name__ == "__main__":
    RNICSIM = sys.argv.pop(1)
    unittest.main()
