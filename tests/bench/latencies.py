# SPDX-License-Identifier: Apache-2.0
"""Latencies that stock programs and MPI print, in us of simulated time, beside those of perftest.

    latencies.py RNICSIM

The programs wait in many ways: for a completion, for memory and completions, in a progress engine. Not a test.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SHELL = f"python3 {HERE.parent / 'apps' / 'remote_shell.py'}"
SECONDS = 280


def run(rnicsim, server, client, hosts=("h0", "h1")):
    """The output of the client."""
    command = [rnicsim, "run", "--on", hosts[0], server, "--on", hosts[1], client]
    result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    mark = f"{hosts[1]}| "
    lines = [line[len(mark):] for line in result.stdout.splitlines() if line.startswith(mark)]
    if result.returncode != 0:
        print(f"  status {result.returncode}: {client}", file=sys.stderr)
    return lines


def perftest(rnicsim, program):
    lines = run(rnicsim, f"{program} -n 1000", f"{program} -n 1000 h0")
    rows = [line.split() for line in lines if re.fullmatch(r"[\s\d.]+", line) and line.strip()]
    return rows[-1][4] if rows else "none"


def ucx(rnicsim, transport, test, *more):
    environment = f"env UCX_TLS={'rc_v' if transport == 'rc_verbs' else transport} UCX_NET_DEVICES=rnic0:1"
    options = " ".join((f"-t {test}", f"-x {transport} -d rnic0:1" if test in ("put_lat", "add_lat", "am_lat") else "",
                        "-n 1000 -w 100", *more))
    lines = run(rnicsim, f"{environment} ucx_perftest {options}", f"{environment} ucx_perftest h0 {options}")
    found = [re.match(r"Final:\s+\d+\s+([\d.]+)\s+([\d.]+)", line) for line in lines]
    return next((match[2] for match in found if match), "none")


def libfabric(rnicsim):
    program = "fi_pingpong -p 'verbs;ofi_rxm' -e rdm -I 1000 -S 64"
    lines = run(rnicsim, program, f"{program} h0")
    rows = [line.split() for line in lines if re.match(r"64\s", line)]
    return rows[-1][-2] if rows else "none"


def mpi(rnicsim, program, *arguments):
    layer = "--mca pml ucx --mca osc ucx --mca btl ^openib -x UCX_TLS=rc_v,self -x UCX_NET_DEVICES=rnic0:1"
    mpirun = (f"mpirun --allow-run-as-root --mca plm_rsh_agent '{SHELL}' --host h0,h1 -np 2 --map-by node {layer} "
              f"{program} {' '.join(arguments)}")
    return run(rnicsim, SHELL, mpirun, ("h1", "h0"))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rnicsim = os.path.abspath(sys.argv[1])
    for program in ("ib_write_lat", "ib_send_lat", "ib_read_lat", "ib_atomic_lat"):
        print(f"{program:40}{perftest(rnicsim, program):>10}", flush=True)
    print(f"{'fi_pingpong, verbs;ofi_rxm, 64 B':40}{libfabric(rnicsim):>10}", flush=True)
    for transport, test in (("rc_verbs", "put_lat"), ("rc_verbs", "add_lat"), ("rc_verbs", "am_lat"),
                            ("ud_verbs", "am_lat"), ("rc_verbs", "tag_lat"), ("rc_verbs", "ucp_get"),
                            ("ud_v", "ucp_get")):
        name = f"ucx_perftest {test}, {transport}"
        print(f"{name:40}{ucx(rnicsim, transport, test):>10}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "mpi_latency"
        subprocess.run(["mpicc", "-O1", "-o", program, HERE / "mpi_latency.c"], check=True)
        for line in mpi(rnicsim, program):
            if re.fullmatch(r"\d+ [\d.]+", line):
                size, half = line.split()
                name = f"MPI, half a round trip, {size} B"
                print(f"{name:40}{half:>10}", flush=True)
        for line in mpi(rnicsim, program, "one-sided"):
            found = re.fullmatch(r"put ([\d.]+) get ([\d.]+)", line)
            if found:
                print(f"{'MPI_Put and flush, 8 B':40}{found[1]:>10}")
                print(f"{'MPI_Get and flush, 8 B':40}{found[2]:>10}", flush=True)


if __name__ == "__main__":
    main()
