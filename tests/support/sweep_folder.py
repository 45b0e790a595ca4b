# SPDX-License-Identifier: Apache-2.0
"""Writes a folder as `rnicsim sweep` leaves it, with numbers that a test knows."""

import copy
import itertools
import json
import math
import pathlib
import statistics

T_QUANTILE = {1: 12.7062047, 2: 4.3026527, 3: 3.1824463}  # two-sided, 95 %


def interval(values, unit):
    mean = statistics.fmean(values)
    reach = 0
    if len(values) > 1:
        reach = T_QUANTILE[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values))
    return {"mean": mean, "low": mean - reach, "high": mean + reach, "n": len(values), "unit": unit}


def run_results(seed=1, rate=1e6, latency=2_000_000, stages=None, uses=(), parameters=None, counters=None):
    """A short form of the results that `bench --json` writes for a run."""
    spread = lambda ps: {"sum_ps": 10 * ps, "mean_ps": ps, "p50_ps": ps, "p99_ps": ps, "least_ps": ps, "most_ps": ps}
    limit = {"host": uses[0][0], "resource": uses[0][1], "use": uses[0][2], "queue": 2.5} if uses else None
    return {
        "schema": 1, "command": "bench", "rnicsim": "0.1.0", "workload": {"file": "w.toml", "crc32": "00000000"},
        "nic": {"file": "cx5-100g.toml", "crc32": "00000000"}, "topology": "back-to-back", "seed": seed,
        "flows": [{"rate_per_s": rate, "goodput_bits_per_s": 8 * rate, "parameters": {"qps": 4},
                   "latency_ps": {"mean": latency, "p50": latency, "p99": 2 * latency, "p99.9": 3 * latency}}],
        "agents": [{"flow": 0, "host": "h0", "thread": 0, "end": "from", "cpu_busy_share": 0.25}],
        "hosts": {"h0": {"counters": counters or {"nic.tx.packets": 7},
                         "derived": {"nic.units.transmit_busy_share": 0.5, "nic.contexts.qpc.hit_rate": None}}},
        "utilization": [{"host": host, "resource": resource, "use": use, "queue": 2.5, "growth": 0.0}
                        for host, resource, use in uses],
        "limit": {**limit, "text": f"{limit['host']} {limit['resource']} {100 * limit['use']:.0f} %"} if limit else
                 {"resource": "latency", "host": "", "use": 0.1, "text": "latency: no resource is fully used"},
        "waterfall": {"operations": [] if stages is None else [
            {"operation": "WRITE", "one_way": False, "work_requests": 10, "latency": spread(sum(stages.values())),
             "stages": {name: spread(ps) for name, ps in stages.items()}}]},
        "parameters": {"nic.mtu": "4 KiB", **(parameters or {})},
    }


def write_sweep(folder, axes, run, seeds=(1, 2, 3), name="sweep", references=(), failed=(), missing=()):
    """axes: {key: (values, spacing)}. run(at, seed): a run's results. failed, missing: numbers of points."""
    folder = pathlib.Path(folder)
    (folder / "points").mkdir(parents=True)
    points = []
    for number, values in enumerate(itertools.product(*(values for values, _ in axes.values()))):
        at = dict(zip(axes, values))
        point = {"number": number, "values": at, "runs": [], "metrics": {}}
        done = []
        for seed in seeds:
            if number in failed:
                point["runs"].append({"seed": seed, "status": "failed", "error": f"no such luck at {number}"})
            elif number in missing:
                point["runs"].append({"seed": seed, "status": "missing"})
            else:
                file = f"points/{number}-{seed}.json"
                done.append(run(at, seed))
                (folder / file).write_text(json.dumps(done[-1]))
                point["runs"].append({"seed": seed, "status": "done", "file": file})
        if done:
            point["limit"] = done[0]["limit"]
            point["metrics"] = {
                "flow[0].rate_per_s": interval([of["flows"][0]["rate_per_s"] for of in done], "op/s"),
                "flow[0].latency_ps.p99": interval([of["flows"][0]["latency_ps"]["p99"] for of in done], "ps")}
        points.append(point)
    results = {
        "schema": 1, "command": "sweep", "rnicsim": "0.1.0", "invocation": ["rnicsim", "sweep", "it's.toml"],
        "name": name, "base": {"workload": "w", "sets": ["nic.mtu=4 KiB"], "faults": [], "waterfall": True},
        "axes": [{"key": key, "values": list(values), "spacing": spacing} for key, (values, spacing) in axes.items()],
        "seeds": list(seeds), "metrics": [], "points": points, "references": list(references)}
    (folder / "results.json").write_text(json.dumps(results))
    return copy.deepcopy(results)
