# SPDX-License-Identifier: Apache-2.0
"""Recorded traces as arrays: the events that `rnicsim trace` prints, filters, refusals, the manual's example."""

import contextlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from rnicsim import trace

ROOT = pathlib.Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "traces" / "golden"
PROGRAM = os.environ["RNICSIM_PROGRAM"]


def printed(*arguments):
    return subprocess.run([PROGRAM, "trace", *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def as_exported(run, block):
    """The events of a block in the order of time as the members that `export` gives them."""
    events = []
    for kind, array in block.items():
        for row in array:
            event = {"time_ps": int(row["time_ps"]), "host": run.header["hosts"][row["host"]], "kind": kind}
            for name in trace.fields(kind):
                text = trace.value_text(kind, name, row[name])
                is_number = re.fullmatch(r"\d+|0x[0-9a-f]+|[\d.]+ \w+", text)
                event["doorbell_kind" if name == "kind" else name] = int(row[name]) if is_number else text
            events.append(event)
    return events


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.trace")), ids=lambda file: file.stem)
def test_the_same_events_as_the_command(file):
    run = trace.open(file)
    exported = [json.loads(line) for line in printed("export", file).splitlines()]
    found = [event for block in run.blocks(events=7) for event in as_exported(run, block)]
    assert len(found) == len(exported)
    # A block has lost the order between kinds of events; fields that `export` omits are 0.
    key = lambda event: sorted((name, str(value)) for name, value in event.items() if value not in (0, "-"))
    zero = {(kind, name): trace.value_text(kind, name, 0) for kind in trace.kinds() for name in trace.fields(kind)}
    for event in exported:
        for name in trace.fields(event["kind"]):
            member = "doorbell_kind" if name == "kind" else name
            text = zero[event["kind"], name]
            event.setdefault(member, 0 if re.fullmatch(r"0|0x0|0 \w+", text) else text)
    assert sorted(map(key, found)) == sorted(map(key, exported))


def test_the_header():
    header = trace.open(GOLDEN / "rc_send.trace").header
    assert header["hosts"] == ["h0", "h1"] and header["time"] == "sim" and isinstance(header["seed"], int)
    assert header["title"] and header["program"] and header["commands"] == []
    assert header["configuration"]["nic.port.rate"].endswith("b/s")


@pytest.mark.parametrize("filter, options", [
    ({"hosts": ["h1"]}, ["--host", "h1"]), ({"kinds": ["packet*", "cqe"]}, ["--kind", "packet*,cqe"]),
    ({"qps": [0x40]}, ["--qp", "0x40"]), ({"psns": [1193047]}, ["--psn", "1193047"]),
    ({"from_ps": 2_000_000, "to_ps": 4_000_000}, ["--from", "2us", "--to", "4us"]),
    ({"hosts": ["h0"], "kinds": ["packet_sent"], "qps": [0x40], "to_ps": 9_000_000},
     ["--host", "h0", "--kind", "packet_sent", "--qp", "0x40", "--to", "9us"])])
def test_filters(filter, options):
    file = GOLDEN / "sequence_error.trace"
    lines = printed("export", file, *options).splitlines()
    times = sorted(json.loads(line)["time_ps"] for line in lines)
    blocks = list(trace.open(file).blocks(**filter))
    assert sorted(int(at) for block in blocks for array in block.values() for at in array["time_ps"]) == times
    assert {kind for block in blocks for kind in block} == {json.loads(line)["kind"] for line in lines}


def test_blocks_and_whole_arrays():
    run = trace.open(GOLDEN / "rc_send.trace")
    sizes = [sum(map(len, block.values())) for block in run.blocks(events=10)]
    assert set(sizes[:-1]) == {10} and 0 < sizes[-1] <= 10
    cqes = run.array("cqe")
    assert cqes.dtype == trace.dtype("cqe") and cqes.dtype.names == ("time_ps", "host", *trace.fields("cqe"))
    assert list(cqes["time_ps"]) == sorted(cqes["time_ps"]) and set(cqes["syndrome"]) == {0}
    none = run.array("cqe", to_ps=0)
    assert len(none) == 0 and none.dtype == trace.dtype("cqe")
    block = next(run.blocks())
    assert block["cqe"].base is not None, "a view, not a copy"
    assert "cqe: " in repr(block)


def test_what_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        trace.open(tmp_path / "none")
    (tmp_path / "text").write_text("no trace")
    with pytest.raises(trace.TraceError, match="not a trace"):
        trace.open(tmp_path / "text")
    run = trace.open(GOLDEN / "rc_send.trace")
    for error, told, filter in ((trace.ConfigError, "no host 'h7'", {"hosts": ["h7"]}),
                                (trace.ConfigError, "unknown kind of event 'packets'", {"kinds": ["packets"]}),
                                (TypeError, "unknown filter 'host'", {"host": ["h0"]}),
                                (TypeError, "list of names", {"hosts": "h0"}),
                                (ValueError, "qps: 16777216", {"qps": [1 << 24]}),
                                (ValueError, "to_ps: -1", {"to_ps": -1}), (TypeError, "integer", {"psns": ["many"]}),
                                (ValueError, "1 event or more", {"events": 0})):
        with pytest.raises(error, match=told):
            run.blocks(**filter)
    with pytest.raises(trace.ConfigError, match="unknown kind of event 'packet'"):
        run.array("packet")
    with pytest.raises(KeyError):
        trace.value_text("cqe", "psn", 0)


def test_a_damaged_trace_gives_what_is_before_the_damage(tmp_path):
    data = (GOLDEN / "rc_send.trace").read_bytes()
    whole = sum(len(array) for block in trace.open(GOLDEN / "rc_send.trace").blocks() for array in block.values())
    frames = [found.start() for found in re.finditer(re.escape(b"\x28\xb5\x2f\xfd"), data)]
    file = tmp_path / "cut.trace"
    file.write_bytes(data[:-1])
    with pytest.raises(trace.TraceError, match="cut.trace: after 0 events: the file ends in the middle of a frame"):
        list(trace.open(file).blocks())
    # Two copies of the frame of events: the second follows the end mark.
    file.write_bytes(data + data[frames[-1]:])
    blocks = trace.open(file).blocks()
    assert sum(map(len, next(blocks).values())) == whole
    with pytest.raises(trace.TraceError, match="there are bytes after the end mark"):
        next(blocks)


def test_a_trace_of_a_newer_program(tmp_path):
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    import trace_file
    old, new = tmp_path / "old.trace", tmp_path / "new.trace"
    subprocess.run([PROGRAM, "bench", "write-4k", "--set", "measure.duration=5us", "--record", old], check=True,
                   stdout=subprocess.DEVNULL)
    new.write_bytes(trace_file.with_schema(old.read_bytes(), '"frame_sent: bytes', '"frame_sent: weight'))
    with pytest.warns(UserWarning, match="events 'frame_sent' are read without the fields weight"):
        assert not any(trace.open(new).array("frame_sent")["bytes"])


def test_pandas():
    pandas = pytest.importorskip("pandas")
    run = trace.open(GOLDEN / "rc_send.trace")
    frame = run.to_pandas("cqe")
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == list(trace.dtype("cqe").names)
    assert set(frame["host"]) == {"h0", "h1"} and set(frame["syndrome"]) == {"success"}
    assert len(next(run.blocks()).to_pandas("wqe")) == len(run.array("wqe"))
    assert len(run.to_pandas("cqe", to_ps=0)) == 0


@pytest.mark.parametrize("missing, code, told", [
    ("numpy", "import rnicsim; from rnicsim import trace", "rnicsim.trace needs NumPy: apt-get install python3-numpy"),
    ("pandas", f"from rnicsim import trace; trace.open({str(GOLDEN / 'rc_send.trace')!r}).to_pandas('cqe')",
     "to_pandas() needs pandas: apt-get install python3-pandas")])
def test_libraries_that_are_missing(missing, code, told):
    result = subprocess.run([sys.executable, "-c", f"import sys; sys.modules[{missing!r}] = None\n{code}"],
                            capture_output=True, text=True)
    assert result.stderr.splitlines()[-1] == f"ImportError: {told}"


def test_the_example_of_the_manual(tmp_path, monkeypatch):
    """Runs the Python example of docs/trace.md on a golden trace, and compares the output with the page."""
    page = (ROOT / "docs" / "trace.md").read_text()
    example = re.search(r"```python\n(.*?)```", page, re.S)[1]
    (tmp_path / "a.trace").write_bytes((GOLDEN / "sequence_error.trace").read_bytes())
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(example, {})
    mean = re.search(r"WQE to CQE   mean ([\d.]+) us", printed("stat", "a.trace"))[1]
    assert out.getvalue().splitlines() == [f"h0 QP 0x40: 1 WQEs, mean {float(mean):.3f} us"]
