# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the fabric tests: flows, and a run of bench."""

import json
import pathlib
import subprocess
import tempfile

RNICSIM = ""     # path of the program


def flow(source, target, **keys):
    keys = {"op": "write", "size": "1 MiB", "window": 4, "mtu": 4096, **keys}
    lines = [f"{key} = {json.dumps(value)}" for key, value in {"from": source, "to": target, **keys}.items()]
    return "[[flow]]\n" + "\n".join(lines) + "\n"


def incast(senders, **keys):
    return [flow(f"h{i}", "h0", **keys) for i in range(1, senders + 1)]


def settings(sets):
    return [text for key, value in sets.items() for text in ("--set", f"{key}={value}")]


def without_payload(sets, options):
    """The same times and rates at less cost, unless a capture shows the payload."""
    return sets if "--pcap" in options else {"nic.timing_only": "true", **sets}


def named(topology, folder):
    """`topology`: a name, or the text of a topology file, which is written to the folder."""
    if "\n" not in topology:
        return topology
    (folder / "t.toml").write_text(topology)
    return str(folder / "t.toml")


def cabled(*cables):
    """The text of a topology from its cables: hosts are named h..., switches s..."""
    ends = dict.fromkeys(end for cable in cables for end in cable)
    kinds = {"h": "hosts", "s": "switches"}
    return ("".join(f'[[{kinds[end[0]]}]]\nname = "{end}"\n' for end in ends)
            + "".join(f'[[cables]]\nfrom = "{one}"\nto = "{other}"\n' for one, other in cables))


def bench(flows, sets, topology, warmup="5 ms", duration="5 ms", options=(), wrapper=()):
    with tempfile.TemporaryDirectory() as folder:
        path, results = pathlib.Path(folder) / "w.toml", pathlib.Path(folder) / "r.json"
        topology = named(topology, pathlib.Path(folder))
        path.write_text(f'schema = 1\ntopology = "{topology}"\n[measure]\nwarmup = "{warmup}"\n'
                        f'duration = "{duration}"\n' + "".join(flows))
        command = [*wrapper, RNICSIM, "bench", path, "--json", results, *options,
                   *settings(without_payload(sets, options))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1000, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return json.loads(results.read_text())


def told(flows, sets, topology, duration="1 ms"):
    """(exit status, warnings and errors, results); results are None if there are none."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        topology = named(topology, folder)
        (folder / "w.toml").write_text(f'schema = 1\ntopology = "{topology}"\n[measure]\nwarmup = "0 us"\n'
                                       f'duration = "{duration}"\n' + "".join(flows))
        done = subprocess.run([RNICSIM, "bench", "w.toml", "--json", "r.json", *settings(sets)], capture_output=True,
                              text=True, timeout=1000, check=False, cwd=folder)
        results = folder / "r.json"
        return done.returncode, done.stderr, json.loads(results.read_text()) if results.exists() else None


def goodputs(results):
    return [flow["goodput_bits_per_s"] for flow in results["flows"]]


def of_hosts(results, counter):
    return sum(host["counters"][counter] for host in results["hosts"].values())


def refused(text):
    """The error line for a refused setting."""
    told = subprocess.run([RNICSIM, "describe", "topology", "--topology", "star:8", *(part for one in text.split("; ")
                                                               for part in ("--set", one))],
                          capture_output=True, text=True, timeout=600, check=False)
    if (told.returncode, told.stderr.count("\n")) != (2, 1):
        raise AssertionError(f"{text}: {told}")
    return told.stderr
