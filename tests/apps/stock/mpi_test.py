#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
MPI over UCX, libfabric and TCP: a program on two hosts, and on four, which mpirun starts through a shell of the
simulated network; Open MPI, and MPICH with its default settings.

usage: mpi_test.py path/to/rnicsim
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import apps  # noqa: E402

SHELL = f"python3 {apps.REMOTE_SHELL}"
UCX = "--mca pml ucx --mca btl ^openib"
# libfabric's message endpoints connect by librdmacm.
LIBFABRIC = "--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs"
# TCP over the simulated network; Open MPI asks the host for devices and routes.
TCP = "--mca pml ob1 --mca btl tcp,self"


def by(transport):
    return f"{UCX} -x UCX_TLS={transport},self -x UCX_NET_DEVICES=rnic0:1"


class Mpi(apps.TestCase):
    def ring(self, hosts, ranks, layer):
        with apps.folder() as folder:
            program = folder / "mpi_ring"
            subprocess.run(["mpicc", "-O1", "-o", program, apps.PROGRAMS / "verbs" / "mpi_ring.c"], check=True)
            mpirun = (f"mpirun --allow-run-as-root --mca plm_rsh_agent '{SHELL}' --host {','.join(hosts)} "
                      f"-np {ranks} --oversubscribe --map-by node {layer} {program}")
            result = apps.run_on([*((host, SHELL) for host in hosts[1:]), (hosts[0], mpirun)], "--topology",
                                 f"star:{len(hosts)}")
        self.assertEqual(result.status, 0, result)
        expected = [f"rank {rank} of {ranks} on {hosts[rank % len(hosts)]}: right" for rank in range(ranks)]
        self.assertEqual(sorted(line for line in result.lines(hosts[0]) if line.startswith("rank ")), expected, result)

    def test_two_hosts_by_default(self):
        """UCX chooses the transports, and must recognize that the hosts are different."""
        self.ring(["h0", "h1"], 2, UCX)

    def test_two_hosts(self):
        self.ring(["h0", "h1"], 2, by("rc_v"))

    def test_two_hosts_with_datagrams(self):
        self.ring(["h0", "h1"], 2, by("ud_verbs"))

    def test_four_hosts(self):
        self.ring(["h0", "h1", "h2", "h3"], 4, by("rc_v"))

    def test_libfabric(self):
        self.ring(["h0", "h1"], 2, LIBFABRIC)

    def test_tcp(self):
        self.ring(["h0", "h1"], 4, TCP)


class Mpich(apps.TestCase):
    def ring(self, folder, launcher, hosts, servers):
        program = folder / "mpi_ring"
        subprocess.run(["mpicc.mpich", "-O1", "-o", program, apps.PROGRAMS / "verbs" / "mpi_ring.c"], check=True)
        mpiexec = f"mpiexec.mpich {launcher} -n 2 {program}"
        result = apps.run_on([*servers, ("h0", mpiexec)])
        self.assertEqual(result.status, 0, result)
        expected = [f"rank {rank} of 2 on {host}: right" for rank, host in enumerate(hosts)]
        self.assertEqual(sorted(line for line in result.lines("h0") if line.startswith("rank ")), expected, result)

    def test_one_host(self):
        """MPICH's ranks share memory and spin on it."""
        with apps.folder() as folder:
            self.ring(folder, "", ["h0", "h0"], [])

    def test_two_hosts(self):
        with apps.folder() as folder:
            # MPICH's launcher calls the replacement as ssh, with an option.
            shell = folder / "ssh"
            shell.write_text(f'#!/bin/sh\n[ "$1" = -x ] && shift\nexec {SHELL} "$@"\n')
            shell.chmod(0o755)
            self.ring(folder, f"-launcher ssh -launcher-exec {shell} -hosts h0,h1", ["h0", "h1"], [("h1", SHELL)])


if __name__ == "__main__":
    apps.main()
