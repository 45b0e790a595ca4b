#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Sweeps by mpirun and by Slurm: the real tools, on this machine only.

usage: sweep_cluster_test.py RNICSIM
"""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

RNICSIM = ""
SWEEP = """schema = 1
workload = "write-4k"
[set]
measure.warmup = "0 s"
measure.duration = "20 us"
[vary]
flow.qps = "1..12"
"""


class Cluster(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.file = self.folder / "own.toml"
        self.file.write_text(SWEEP)
        self.out = self.folder / "out"

    def check(self):
        results = json.loads((self.out / "results.json").read_text())
        self.assertEqual([run["status"] for point in results["points"] for run in point["runs"]], ["done"] * 12)

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "Open MPI's mpirun is not here")
    def test_open_mpi(self):
        subprocess.run(["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "3", RNICSIM, "sweep",
                        self.file, "--out", self.out], check=True, timeout=600, capture_output=True)
        self.check()

    @unittest.skipUnless(shutil.which("mpiexec.hydra"), "MPICH's mpiexec is not here")
    def test_mpich(self):
        subprocess.run(["mpiexec.hydra", "-n", "3", RNICSIM, "sweep", self.file, "--out", self.out], check=True,
                       timeout=600, capture_output=True)
        self.check()

    @unittest.skipUnless(os.geteuid() == 0, "Slurm's daemons want to be root")
    @unittest.skipUnless(all(shutil.which(name) for name in ("slurmctld", "slurmd", "munged")), "Slurm is not here")
    def test_slurm(self):
        with Slurm(self.folder) as environment:
            done = subprocess.run([RNICSIM, "sweep", self.file, "--out", self.out, "--slurm", "--tasks", "4",
                                   "--sbatch=--partition=all"], env=environment, timeout=600, capture_output=True,
                                  text=True)
            logs = {path.name: path.read_text() for path in (self.out / "slurm").glob("*.log")}
            self.assertEqual(done.returncode, 0, (done, logs))
            self.assertEqual(len(logs), 4, logs)
            self.check()
            self.assertIn("12 of 12 runs done", done.stdout)
            # Ranks of a step; then a batch script with several tasks, which Slurm runs only once.
            self.out = self.folder / "ranks"
            subprocess.run(["srun", "--ntasks=2", "--overcommit", RNICSIM, "sweep", self.file, "--out", self.out],
                           env=environment, check=True, timeout=600, capture_output=True)
            self.check()
            self.out = self.folder / "batch"
            subprocess.run(["sbatch", "--wait", "--ntasks=2", "--overcommit", f"--output={self.folder}/batch.log",
                            f"--wrap={RNICSIM} sweep {self.file} --out {self.out}"], env=environment, check=True,
                           timeout=600, capture_output=True)
            self.check()


class Slurm(contextlib.ExitStack):
    """slurmctld, slurmd and munged with separate files, on free ports. The context's value is the environment for
    Slurm's commands."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def __enter__(self):
        super().__enter__()
        self.daemon(["munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket",
                     f"--key-file={self.key()}", f"--log-file={self.folder}/munged.log",
                     f"--pid-file={self.folder}/munged.pid", f"--seed-file={self.folder}/munged.seed"])
        self.await_file("munge.socket")
        environment = dict(os.environ, SLURM_CONF=str(self.configuration()))
        for daemon in (["slurmctld", "-D"], ["slurmd", "-D", "-N", self.host]):
            self.daemon(daemon, env=environment)
        for _ in range(300):
            state = subprocess.run(["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True, text=True)
            if state.stdout.strip() == "idle":
                return environment
            time.sleep(0.1)
        logs = "".join(path.read_text()[-2000:] for path in self.folder.glob("slurm*.log"))
        raise AssertionError(f"Slurm did not come up: {state.stdout}{state.stderr}\n{logs}")

    host = socket.gethostname().split(".")[0]

    def daemon(self, command, **more):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
        self.callback(process.wait)
        self.callback(process.terminate)

    def key(self):
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.folder.chmod(0o755)
        return key

    def await_file(self, name):
        for _ in range(100):
            if (self.folder / name).exists():
                return
            time.sleep(0.1)
        raise AssertionError(f"{name} did not come")

    def configuration(self):
        ports = []
        for _ in range(2):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                ports.append(free.getsockname()[1])
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        path = self.folder / "slurm.conf"
        path.write_text(f"""ClusterName=test
SlurmctldHost={self.host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge.socket
CredType=cred/munge
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.pid
SlurmctldLogFile={self.folder}/slurmctld.log
SlurmdLogFile={self.folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName={self.host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=all Nodes={self.host} Default=YES MaxTime=10 State=UP
""")
        return path


if __name__ == "__main__":
    RNICSIM = sys.argv.pop(1)
    unittest.main(verbosity=2)
