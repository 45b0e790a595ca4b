#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every #include of the tree against the table below: the rooms that each room may include.

usage: layering_test.py ROOT | --self-test
"""

import graphlib
import pathlib
import re
import sys
import tempfile

# room -> paths that its files may include besides the room itself. An entry is a folder; one header; a header and its
# source, without the suffix; or "folder/*": the files directly in the folder, without its subfolders. A file belongs to
# the longest room that is a prefix of its path. Rooms must not form a cycle.
ALLOWED = {
    "model/abi": [],
    "model/roce": ["model/base/fifo.h", "model/base/pooled_list.h", "model/base/units.h"],
    "model/roce/congestion": ["model/roce", "model/base/policy.h", "model/base/policy_params.h",
                              "model/base/params.h", "model/base/telemetry.h", "model/base/units.h"],
    "model/base": [],
    "model/cm": ["model/base/units.h"],
    # The NIC: files of model/nic itself compose the device. Each room below is above the rooms that it names.
    "model/nic": ["model/base", "model/roce"],
    "model/nic/capability_params": ["model/base", "model/nic/packets", "model/nic/personality"],
    # Personality: the device layouts as the NIC's blocks see them. Each device has a folder there; no other room
    # of the NIC contains layouts.
    "model/nic/personality": ["model/base", "model/roce"],
    "model/nic/personality/rnic": ["model/nic/personality", "model/base", "model/roce", "model/abi/big_endian.h",
                                   "model/abi/command.h", "model/abi/context.h", "model/abi/device.h",
                                   "model/abi/queue.h"],
    "model/nic/packets": ["model/base", "model/roce", "model/nic/personality"],
    # Interface between an engine and the other blocks.
    "model/nic/seam": ["model/base", "model/roce", "model/nic/packets", "model/nic/personality"],
    "model/nic/engine": ["model/base", "model/roce", "model/nic/packets", "model/nic/personality", "model/nic/seam"],
    "model/nic/pcie": ["model/base", "model/nic/personality", "model/nic/seam"],
    "model/nic/contexts": ["model/base", "model/roce", "model/nic/pcie", "model/nic/personality", "model/nic/seam"],
    "model/nic/queues": ["model/base", "model/roce", "model/nic/capability_params", "model/nic/contexts",
                         "model/nic/packets", "model/nic/pcie", "model/nic/personality", "model/nic/seam"],
    # The kernel agent reuses the verbs driver, through the interface that every process uses.
    "model/host": ["model/base", "model/abi", "model/cm", "verbs/provider", "verbs/port/device_port.h"],
    "model/fabric": ["model/base"],
    # The NIC as a module of another simulator's platform.
    "model/device": ["model/nic", "model/base", "model/abi"],
    # Checks a driver's accesses; knows device layouts only through the personality.
    "model/driver_check": ["model/nic", "model/base", "model/roce"],
    # A transport core in RTL; of the NIC it knows the engine interface and the capabilities.
    "rtl/cosim": ["model/nic/engine/engine_factory.h", "model/nic/engine/qp_context.h", "model/nic/seam/qp_engine.h",
                  "model/nic/capability_params.h", "model/roce", "model/base"],
    "verbs": ["model/abi"],
    # Joins the verbs library with a simulated host.
    "verbs/port/attached_port": ["model/abi", "verbs/port", "sim/host"],
    # A simulated Linux host, on the side of its programs.
    "sim/host": ["model/abi"],
    # The program's side of simulated time, from the lowest layer: session, turn, signal masks and actions, a thread's
    # steps and waits, its counter. Handlers and attaching compose them.
    "sim/host/shim/next": [],
    "sim/host/shim/raw_call": ["sim/host/shim/next"],
    "sim/host/shim/text": ["sim/host/shim/raw_call"],
    "sim/host/shim/session": ["model/abi", "sim/host/shim/next", "sim/host/shim/raw_call"],
    "sim/host/shim/cancellation": ["model/abi", "sim/host/shim/next", "sim/host/shim/session"],
    "sim/host/time/turn": ["model/abi", "sim/host/shim/cancellation", "sim/host/shim/raw_call",
                           "sim/host/shim/session"],
    "sim/host/shim/signal_stack": ["sim/host/shim/next", "sim/host/shim/raw_call"],
    "sim/host/shim/spin/cpu_state": [],
    "sim/host/shim/spin/instruction": ["sim/host/shim/text"],
    "sim/host/shim/spin/software_step": ["sim/host/shim/spin/instruction"],
    "sim/host/shim/spin/written_memory": ["sim/host/shim/spin/instruction"],
    "sim/host/shim/spin/loop_marks": ["sim/host/shim/text"],
    "sim/host/shim/spin/timed_look": ["model/abi", "sim/host/shim/spin/loop_marks", "sim/host/shim/session",
                                      "sim/host/time/turn"],
    "sim/host/shim/spin/timed_loop": ["model/abi", "sim/host/shim/spin/cpu_state", "sim/host/shim/spin/instruction",
                                      "sim/host/shim/spin/written_memory"],
    "sim/host/shim/counter/fast_counter": ["sim/host/time/turn"],
    "sim/host/shim/counter/counter_sites": ["sim/host/shim/counter/fast_counter", "sim/host/shim/spin/loop_marks",
                                            "sim/host/shim/raw_call", "sim/host/shim/text"],
    "sim/host/shim/protected_data": [],
    "sim/host/shim/counter/counter_trap": ["sim/host/shim/protected_data"],
    "sim/host/shim/counter/tsc": ["sim/host/shim/counter/counter_sites", "sim/host/shim/counter/counter_trap",
                                  "sim/host/shim/session", "sim/host/time/turn"],
    "sim/host/shim/spin/spin": ["sim/host/shim/counter/counter_sites", "sim/host/shim/spin/cpu_state",
                                "sim/host/shim/spin/instruction", "sim/host/shim/spin/loop_marks",
                                "sim/host/shim/raw_call", "sim/host/shim/session", "sim/host/shim/signal_stack",
                                "sim/host/shim/spin/software_step", "sim/host/time/turn",
                                "sim/host/shim/spin/written_memory", "sim/host/shim/mappings",
                                "sim/host/kernel/processes/threads", "sim/host/shim/spin/timed_look",
                                "sim/host/shim/spin/timed_loop"],
    # Below the calls: the words and the note of a system call, the sockets of the simulated network, the threads of
    # this process. Calls by number, starts of threads and forks are above all of them.
    "sim/host/shim/call_words": [],
    "sim/host/shim/noted_calls": ["sim/host/shim/session"],
    "sim/host/kernel/sockets/refused_options": [],
    "sim/host/kernel/sockets/simulated_sockets": ["model/abi", "sim/host/kernel/sockets/inet_address",
                                                  "sim/host/kernel/files/known_descriptors", "sim/host/shim/session",
                                                  "sim/host/time/turn"],
    "sim/host/kernel/processes/threads": ["model/abi", "sim/host/kernel/ipc/addresses", "sim/host/shim/cancellation",
                                          "sim/host/shim/next", "sim/host/shim/raw_call", "sim/host/shim/session",
                                          "sim/host/shim/signal_stack", "sim/host/shim/spin/timed_loop",
                                          "sim/host/time/timeline", "sim/host/time/turn"],
    # A separate library: it must not depend on the process that loads it.
    "verbs/provider": ["model/abi"],
    # For Linux guests: a provider for Debian's libibverbs, on the same rings.
    "verbs/linux/provider": ["model/abi", "verbs/provider", "verbs/linux/rnic_abi.h"],
    # Uses the verbs library as any program does; shares two headers of small tools.
    "verbs/rdmacm": ["model/abi", "verbs/port", "verbs/ibverbs/boundary.h", "verbs/ibverbs/queue_lock.h"],
    # Configuration of a run: parameters, topologies, fault rules. The lowest layer of sim.
    "sim/config": ["model", "rtl/cosim"],
    # Results and their formats; services of the operating system. Below the system.
    "sim/results": ["model/base", "sim/config"],
    "sim/os": ["model/base"],
    # The system, and the code that its users share.
    "sim/processes": ["model", "sim/config"],
    "sim/*": ["sim/processes", "sim/os", "sim/results", "model", "rtl/cosim", "sim/config"],
    # A trace as a file, without a system: kinds of events, reading, writing, comparison.
    "sim/trace_file": ["model", "sim/config/config_error.h", "sim/results/json.h", "sim/results/text_number.h"],
    # Observers of a system.
    "sim/waterfall": ["model", "sim/config", "sim/*", "sim/os", "sim/results"],
    "sim/recording": ["model", "sim/config", "sim/processes", "sim/trace_file", "sim/*", "sim/os", "sim/results"],
    "sim/observers": ["sim/*", "sim/os", "sim/results", "sim/recording", "sim/waterfall", "model/driver_check"],
    # Warnings about configurations and runs that miss their purpose.
    "sim/warnings": ["model", "sim/config", "sim/processes", "sim/*"],
    # Sources of work for a system; they do not know each other.
    "sim/attached": ["model", "sim/config", "sim/*", "sim/os", "sim/results", "sim/warnings", "sim/waterfall",
                     "sim/host/shim/counter/counter_trap"],
    "sim/guest": ["model", "sim/config", "sim/guest/transactor", "sim/*", "sim/os", "sim/results"],
    "sim/guest/transactor": ["model/base", "sim/config/config_error.h", "sim/os/descriptor.h", "sim/results/json.h"],
    # Virtual machines: the agent inside the guest, and the part outside.
    "sim/guest/agent": ["sim/os/descriptor.h"],
    "sim/guest/vm": ["model", "sim/config", "sim/guest", "sim/guest/transactor", "sim/guest/agent/frames.h", "sim/*",
                     "sim/os", "sim/results"],
    # Hosts outside the simulator, and their part in a run's network.
    "sim/guest/wire": ["model", "sim/config", "sim/*", "sim/os", "sim/results", "sim/guest/nic_function.h",
                       "sim/guest/transactor", "sim/attached/network/network.h",
                       "sim/attached/network/outside_world.h"],
    "sim/bench": ["model", "verbs/ibverbs", "sim/config", "sim/processes", "sim/*", "sim/os", "sim/results",
                  "sim/observers", "sim/warnings", "sim/waterfall"],
    # An engine without a system.
    "sim/replay": ["model", "sim/config", "sim/engine_choice.h", "sim/results/json.h", "sim/results/json_output.h",
                   "sim/results/results_json.h"],
    # Makes simulated hosts repeat the work of a capture's hosts.
    "sim/wire_workload": ["model", "verbs/ibverbs", "sim/config", "sim/recording", "sim/replay", "sim/bench/made.h",
                          "sim/*", "sim/os", "sim/results"],
    # Repeats a recorded run without its programs.
    "sim/rerun": ["model", "sim/config", "sim/observers", "sim/recording", "sim/trace", "sim/trace_file", "sim/*",
                  "sim/os", "sim/results"],
    "sim/python": ["model", "sim/config", "sim/recording", "sim/trace", "sim/trace_file",
                   "sim/results/counter_list.h"],
    # Many runs.
    "sim/sweep": ["model/base", "sim/bench", "sim/config", "sim/rerun", "sim/os/child_pool.h", "sim/results/json.h",
                  "sim/results/file_json.h", "sim/results/json_output.h", "sim/os/progress_line.h",
                  "sim/results/results_json.h", "sim/os/shell_word.h", "sim/results/staged_file.h"],
    "sim/calibrate": ["sim/bench", "sim/config", "sim/report", "sim/os/child_pool.h", "sim/results/json.h",
                      "sim/results/json_output.h", "sim/os/progress_line.h"],
    # Starts rnicsim in separate processes: reads cases, and compares the results.
    "sim/trace": ["model/abi/queue.h", "model/base/units.h", "model/roce", "sim/config/config_error.h",
                  "sim/results/histogram.h", "sim/results/json.h", "sim/results/part_file.h", "sim/trace_file",
                  "sim/results/text_number.h", "sim/waterfall/timeline_lines.h"],
    "sim/check": ["sim/config", "sim/history", "sim/trace", "sim/trace_file", "sim/bench/table_reader.h",
                  "sim/report/page.h", "model/abi/queue.h", "sim/adapter_counters.h", "sim/results/counter_results.h",
                  "sim/results/histogram.h", "sim/results/json.h", "sim/results/json_output.h",
                  "sim/os/progress_line.h", "sim/results/results_json.h", "sim/run_options.h",
                  "sim/results/staged_file.h", "model/base", "model/fabric/switch_params.h"],
    # Read only the results or the snapshots of a run.
    "sim/report": ["sim/config", "sim/sweep", "sim/results/json.h", "sim/results/json_output.h",
                   "sim/results/results_json.h"],
    # Results of checks over time.
    "sim/history": ["sim/config/config_error.h", "sim/results/json.h", "sim/results/json_output.h",
                    "sim/report/page.h"],
    "sim/top": ["sim/config/config_error.h", "sim/snapshot.h", "sim/snapshot_server.h", "sim/results/counter_list.h",
                "sim/results/counter_results.h", "sim/os/descriptor.h", "sim/results/json.h", "sim/os/local_socket.h",
                "sim/results/results_json.h", "model/base/units.h"],
    "sim/commands": ["model", "sim/config", "sim/processes", "sim/*", "sim/os", "sim/results", "sim/observers",
                     "sim/attached", "sim/bench", "sim/calibrate", "sim/check", "sim/guest", "sim/history",
                     "sim/guest/vm", "sim/guest/wire", "sim/recording", "sim/replay", "sim/report", "sim/rerun",
                     "sim/sweep", "sim/top", "sim/trace", "sim/trace_file", "sim/wire_workload"],
    "sim/main": ["model", "sim/commands", "sim/config", "sim/*", "sim/os", "sim/results"],
    "tests": ["model", "rtl", "verbs", "sim"],
}

# Libraries that a room may not include: (rooms, include, reason).
FORBIDDEN_LIBRARIES = [
    (["model/abi", "model/roce", "verbs", "sim/host"], r"systemc|sysc/|tlm|sc_", "SystemC belongs to the timed model"),
    (["model/abi", "model/roce"], r"spdlog/", "the contracts and the transport do not log"),
    (["model", "verbs", "sim"], r"verilated|V[a-z_]+\.h$", "Verilator belongs to rtl/cosim"),
    (["model", "rtl", "verbs", "sim", "tests"], r"nlohmann/", "values of JSON are those of sim/results/json.h"),
    (["model", "rtl", "verbs", "sim"], r"g(test|mock)/|rapidcheck", "test libraries belong to tests"),
]

# The only source that may include such a library.
WRAPS_A_LIBRARY = {"sim/results/json.cpp"}

# Code that is read outside the tree, in folders of other names: a separate project, installed headers, and a kernel
# module. Such files include their headers from their own folder.
FOREIGN = ["tests/library/platform", "tests/library/guest_device", "model/abi/c", "verbs/linux/kernel"]

TOP_FOLDERS = ("model", "rtl", "verbs", "sim", "tests")
SOURCE_SUFFIXES = {".h", ".hpp", ".c", ".cc", ".cpp", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def inside(path, name):
    if name.endswith("/*"):
        return path.rpartition("/")[0] == name[:-2]
    return path == name or path.startswith(name + "/") or re.fullmatch(re.escape(name) + r"\.(h|cpp)", path) is not None


def room_of(path):
    rooms = [room for room in ALLOWED if inside(path, room)]
    return max(rooms, key=len) if rooms else None


def permits(name, include):
    return room_of(include) == name if name.endswith("/*") else inside(include, name)


def circle():
    """Rooms that may include each other in a cycle; empty when there is no cycle."""
    def behind(name):
        if name.endswith("/*"):
            return {name}
        return {room for room in ALLOWED if inside(room, name)} or {room_of(name)}

    known = {room: set().union(*map(behind, names)) - {room} for room, names in ALLOWED.items()}
    try:
        graphlib.TopologicalSorter(known).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def offence(path, quote, include):
    """Reason why `path` may not include `include`; None if the include is permitted."""
    room = room_of(path)
    if room is None:
        return f"{path} is in no room of the table"
    if include.split("/")[0] not in TOP_FOLDERS or "/" not in include:
        if quote == '"' and not any(inside(path, folder) for folder in FOREIGN):
            return "not a full path from the root of the repository"
        for rooms, pattern, why in FORBIDDEN_LIBRARIES:
            if any(inside(path, r) for r in rooms) and re.match(pattern, include) and path not in WRAPS_A_LIBRARY:
                return why
        return None
    if quote == "<":
        return "one of ours: quotes, not angle brackets"
    if any(permits(name, include) for name in [room, *ALLOWED[room]]):
        return None
    return f"{room} may include {', '.join(ALLOWED[room]) or 'nothing'} besides itself"


def check(root):
    """All offences below `root` as (file, line, include, reason)."""
    found = []
    count = 0
    for top in TOP_FOLDERS:
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SOURCE_SUFFIXES or not file.is_file():
                continue
            count += 1
            path = file.relative_to(root).as_posix()
            for number, line in enumerate(file.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                if match:
                    why = offence(path, *match.groups())
                    if why:
                        found.append((path, number, match[2], why))
    return count, found


def self_test():
    """Each line must be reported, or permitted, in a tree made for it."""
    cases = [
        ("model/abi/device.h", "#include <cstdint>", True),
        ("model/abi/device.h", '#include "model/abi/big_endian.h"', True),
        ("model/abi/device.h", '#include "model/base/units.h"', False),
        ("model/roce/packet.cpp", '#include "model/abi/queue.h"', False),
        ("model/roce/packet.cpp", "#include <systemc>", False),
        ("model/roce/packet.cpp", "#include <isa-l/crc.h>", True),
        ("model/base/kernel.h", "#include <systemc>", True),
        ("model/nic/packets/port.cpp", '#include "model/roce/qp.h"', True),
        ("model/nic/pcie/dma.cpp", '#include "model/host/memory.h"', False),
        ("model/nic/pcie/dma.cpp", '#include "model/abi/queue.h"', False),
        ("model/nic/pcie/dma.cpp", '#include "model/nic/personality/personality.h"', True),
        ("model/nic/engine/qp.h", '#include "model/nic/seam/qp_engine.h"', True),
        ("model/nic/engine/qp.h", '#include "model/nic/contexts/cache.h"', False),
        ("model/nic/engine/qp.h", '#include "model/nic/nic.h"', False),
        ("model/nic/pcie/dma.cpp", '#include "model/nic/contexts/cache.h"', False),
        ("model/nic/packets/port.h", '#include "model/nic/seam/qp_engine.h"', False),
        ("model/nic/queues/doorbell.h", '#include "model/nic/contexts/context_cache.h"', True),
        ("model/nic/nic.cpp", '#include "model/nic/engine/engine_factory.h"', True),
        ("model/nic/personality/personality.h", '#include "model/abi/queue.h"', False),
        ("model/nic/personality/personality.h", '#include "model/nic/seam/qp_engine.h"', False),
        ("model/nic/personality/rnic/queues.cpp", '#include "model/abi/queue.h"', True),
        ("model/nic/personality/rnic/queues.cpp", '#include "model/abi/attach.h"', False),
        ("model/nic/pcie/dma.cpp", '#include "dma.h"', False),
        ("model/nic/pcie/dma.cpp", "#include <model/nic/pcie/dma.h>", False),
        ("model/host/kernel_agent.cpp", '#include "verbs/provider/command.h"', True),
        ("model/host/kernel_agent.cpp", '#include "verbs/ibverbs/device.h"', False),
        ("model/host/kernel_agent.cpp", '#include "model/nic/nic.h"', False),
        ("model/host/cpu_port.h", '#include "verbs/port/device_port.h"', True),
        ("model/host/cpu_port.h", '#include "verbs/port/attached_port.h"', False),
        ("model/fabric/link.h", '  #  include "model/abi/queue.h"', False),
        ("rtl/cosim/device.cpp", '#include "model/nic/engine/engine_factory.h"', True),
        ("rtl/cosim/device.cpp", '#include "model/nic/engine/send_ring.h"', False),
        ("rtl/cosim/device.cpp", '#include "model/abi/context.h"', False),
        ("model/nic/nic.cpp", '#include "rtl/cosim/rtl_core.h"', False),
        ("verbs/ibverbs/device.cpp", '#include "verbs/provider/command.h"', True),
        ("verbs/ibverbs/device.cpp", '#include "model/base/units.h"', False),
        ("verbs/ibverbs/device.cpp", "#include <tlm>", False),
        ("verbs/provider/post.cpp", '#include "verbs/ibverbs/device.h"', False),
        ("verbs/rdmacm/id.cpp", '#include "verbs/ibverbs/boundary.h"', True),
        ("verbs/rdmacm/id.cpp", '#include "verbs/ibverbs/objects.h"', False),
        ("verbs/port/attached_port.cpp", '#include "sim/host/time/turn.h"', True),
        ("verbs/provider/post.cpp", '#include "verbs/port/attached_port.h"', False),
        ("sim/main.cpp", '#include "model/nic/nic.h"', True),
        ("sim/main.cpp", '#include "tests/support/rig.h"', False),
        ("sim/main.cpp", "#include <gtest/gtest.h>", False),
        ("sim/commands/check.cpp", '#include "sim/check/check.h"', True),
        ("sim/system.cpp", '#include "sim/simulated_host.h"', True),
        ("sim/system.cpp", '#include "sim/config/config.h"', True),
        ("sim/system.cpp", '#include "sim/attached/run.h"', False),
        ("sim/system.cpp", '#include "sim/observers.h"', False),
        ("sim/config/loader.cpp", '#include "sim/run_options.h"', False),
        ("sim/observers.cpp", '#include "sim/recording/recorder.h"', True),
        ("sim/recording/recorder.cpp", '#include "sim/system.h"', True),
        ("sim/recording/recorder.cpp", '#include "sim/trace_file/trace_writer.h"', True),
        ("sim/trace_file/trace_reader.cpp", '#include "sim/recording/recorder.h"', False),
        ("sim/check/verdict.cpp", '#include "sim/recording/recorder.h"', False),
        ("sim/recording/recorder.cpp", '#include "sim/bench/bench.h"', False),
        ("sim/recording/recorder.cpp", '#include "sim/observers.h"', False),
        ("sim/bench/bench.cpp", '#include "sim/observers.h"', True),
        ("sim/bench/bench.cpp", '#include "sim/attached/run.h"', False),
        ("sim/replay/replay.cpp", '#include "sim/system.h"', False),
        ("sim/commands/run.cpp", '#include "sim/attached/run.h"', True),
        ("sim/elsewhere/thing.h", "#include <vector>", False),
        ("sim/results/json.cpp", "#include <nlohmann/json.hpp>", True),
        ("sim/results/json.h", "#include <nlohmann/json.hpp>", False),
        ("tests/unit/observers/json_test.cpp", "#include <nlohmann/json.hpp>", False),
        ("sim/check/values.cpp", '#include "sim/bench/table_reader.h"', True),
        ("sim/check/values.cpp", '#include "sim/bench/bench.h"', False),
        ("sim/check/values.cpp", '#include "sim/system.h"', False),
        ("sim/top/view.cpp", '#include "sim/snapshot.h"', True),
        ("sim/top/view.cpp", '#include "sim/system.h"', False),
        ("tests/unit/nic/dma_test.cpp", '#include "sim/system.h"', True),
        ("model/device/device.h", '#include "model/nic/nic.h"', True),
        ("model/driver_check/driver_check.h", '#include "model/nic/nic.h"', True),
        ("model/driver_check/driver_check.h", '#include "model/abi/device.h"', False),
        ("model/driver_check/driver_check.h", '#include "model/device/device.h"', False),
        ("model/device/device.h", '#include "model/host/memory/iommu.h"', False),
        ("model/nic/nic.cpp", '#include "model/device/device.h"', False),
        ("tests/library/platform/platform.cpp", '#include "bare_host.h"', True),
        ("tests/unit/nic/dma_test.cpp", '#include "bare_host.h"', False),
        ("model/elsewhere/thing.h", "#include <vector>", False),
    ]
    failures = 0
    for path, line, allowed in cases:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / path
            file.parent.mkdir(parents=True)
            file.write_text(f"// a comment\n{line}\n")
            count, found = check(pathlib.Path(folder))
            reported = [(f, n) for f, n, _, _ in found]
            if count != 1 or reported != ([] if allowed else [(path, 2)]):
                failures += 1
                print(f"self-test: {path}: {line}: expected {'no offence' if allowed else 'an offence'}, got {found}")
    if circle():
        failures += 1
        print(f"self-test: the rooms of the table make a circle: {' -> '.join(circle())}")
    ALLOWED["sim/config"].append("sim/attached/network/network.h")
    if not circle():
        failures += 1
        print("self-test: a circle of rooms was not seen")
    ALLOWED["sim/config"].pop()
    print(f"{len(cases)} cases, {failures} failed")
    return failures == 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 0 if self_test() else 1
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    count, found = check(pathlib.Path(sys.argv[1]))
    for path, number, include, why in found:
        print(f"{path}:{number}: may not include {include}: {why}")
    print(f"{count} files, {len(found)} forbidden includes")
    # An empty tree means a wrong path, not a clean result.
    return 0 if count and not found else 1


if __name__ == "__main__":
    sys.exit(main())
