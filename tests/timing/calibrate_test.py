#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiments of `rnicsim calibrate` are within their tolerances.

usage: calibrate_test.py path/to/rnicsim [ROW...]
"""
import subprocess
import sys

sys.exit(subprocess.run([sys.argv[1], "calibrate", "--jobs", "2", *sys.argv[2:]], check=False).returncode)
