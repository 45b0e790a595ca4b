#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Two processes that meet, the second three seconds late: the first one waits without using CPU time.

usage: mpi_peers_test.py PROGRAM
"""

import os
import subprocess
import sys

environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_btl_vader_single_copy_mechanism="none")
done = subprocess.run(["mpirun", "--quiet", "--oversubscribe", "-n", "2", sys.argv[1]], env=environment, timeout=600)
sys.exit(done.returncode)
