#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every symbol of libibverbs and librdmacm that installed binaries import, or that the installed libraries export,
exists in ours, at its version.

Debian's binaries are linked BIND_NOW: one missing symbol and the program dies at load.
usage: symbols_test.py path/to/libibverbs.so.1 path/to/librdmacm.so.1 path/to/verbs/ibverbs

The report tells what an imported symbol of libibverbs does here: implemented, EOPNOTSUPP (unsupported.cpp) or private
stub (private_stubs.cpp).
"""
import glob
import pathlib
import re
import subprocess
import sys

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
# Prefix of each library's version nodes.
NODES = {"libibverbs.so.1": "IBVERBS_", "librdmacm.so.1": "RDMACM_"}
PACKAGES = {
    "perftest": ["/usr/bin/ib_*", "/usr/bin/raw_ethernet_*"],
    "ibverbs-utils": ["/usr/bin/ibv_*"],
    "rdmacm-utils": ["/usr/bin/rping", "/usr/bin/ucmatose", "/usr/bin/udaddy", "/usr/bin/rdma_*", "/usr/bin/mckey",
                     "/usr/bin/cmtime", "/usr/bin/rstream", "/usr/bin/riostream", "/usr/bin/rcopy"],
    "librdmacm1": [f"{LIBRARIES}/librdmacm.so.1"],
    "qperf": ["/usr/bin/qperf"],
    "ucx": [f"{LIBRARIES}/libuc[spt]*.so.0", f"{LIBRARIES}/ucx/libuct_ib*.so*", f"{LIBRARIES}/ucx/libuct_rdmacm*.so*",
            "/usr/bin/ucx_*"],
    "libfabric": [f"{LIBRARIES}/libfabric.so.1", f"{LIBRARIES}/libfabric/*.so", "/usr/bin/fi_*"],
    "openmpi": [f"{LIBRARIES}/openmpi/lib/openmpi*/*.so", f"{LIBRARIES}/libopen-pal.so.40",
                f"{LIBRARIES}/libmpi.so.40"],
    "pyverbs": ["/usr/lib/python3/dist-packages/pyverbs/*.so", "/usr/lib/python3/dist-packages/pyverbs/*/*.so"],
    "libmlx5": [f"{LIBRARIES}/libmlx5.so.1"],
    "libmlx4": [f"{LIBRARIES}/libmlx4.so.1"],
    "libefa": [f"{LIBRARIES}/libefa.so.1"],
    "providers": [f"{LIBRARIES}/libibverbs/*.so"],
}


def dynamic_symbols(path):
    """Yields (section, kind, name, version) of a binary's dynamic symbols; the version is '' if there is none."""
    run = subprocess.run(["readelf", "--dyn-syms", "-W", path], capture_output=True, text=True, check=False)
    for line in run.stdout.splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0].endswith(":"):
            continue
        name, _, version = fields[7].replace("@@", "@").partition("@")
        yield fields[6], fields[3], name, version


def exports(path):
    return {(name, version) for section, _, name, version in dynamic_symbols(path) if section not in ("UND", "ABS")}


def imports(path):
    return {(name, version) for section, _, name, version in dynamic_symbols(path)
            if section == "UND" and version.startswith(tuple(NODES.values()))}


def names_in(source, *files):
    found = set()
    for file in files:
        path = source / file
        if path.exists():
            found |= set(re.findall(r"\b_*(?:ibv|verbs|execute|ioctl)\w+", path.read_text()))
    return found


def classify(name, version, refused, stubs):
    if version.startswith("IBVERBS_PRIVATE") and name in stubs:
        return "private stub"
    if name in refused and version != "IBVERBS_1.0":
        return "EOPNOTSUPP"
    return "implemented"


def report_packages(ours, source):
    """Prints a line for each package; returns missing symbols as (symbol, package)."""
    refused = names_in(source, "unsupported.cpp")
    stubs = names_in(source, "private_stubs.cpp")
    missing, absent = set(), []
    print(f"{'package':<15}{'files':>6}{'symbols':>9}{'implemented':>13}{'EOPNOTSUPP':>12}{'private stub':>14}"
          f"{'missing':>9}")
    for package, patterns in PACKAGES.items():
        files = sorted({file for pattern in patterns for file in glob.glob(pattern)})
        if not files:
            absent.append(package)
            continue
        wanted = set().union(*(imports(file) for file in files))
        lacking = wanted - ours
        missing |= {(symbol, package) for symbol in lacking}
        kinds = [classify(*symbol, refused, stubs) for symbol in wanted & ours]
        print(f"{package:<15}{len(files):>6}{len(wanted):>9}{kinds.count('implemented'):>13}"
              f"{kinds.count('EOPNOTSUPP'):>12}{kinds.count('private stub'):>14}{len(lacking):>9}")
    if absent:
        print("not installed:", ", ".join(absent))
    return missing


def report_library(name, ours):
    """Same check for the exports of the installed library."""
    original = exports(f"{LIBRARIES}/{name}")
    print(f"exported: {len(ours)}, by the installed {name}: {len(original)}")
    return {(symbol, "rdma-core itself") for symbol in original - ours}


def main(ibverbs, rdmacm, source):
    ours = {library: exports(library) for library in (ibverbs, rdmacm)}
    for library, symbols in ours.items():
        if not symbols:
            sys.exit(f"{library}: no dynamic symbols")
    missing = report_packages(ours[ibverbs] | ours[rdmacm], source)
    for name, library in zip(NODES, (ibverbs, rdmacm)):
        missing |= report_library(name, ours[library])
    for (name, version), package in sorted(missing):
        print(f"MISSING {name}@{version} for {package}")
    return 1 if missing else 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])))
