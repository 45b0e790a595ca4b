# SPDX-License-Identifier: Apache-2.0
"""Builds the modules of rtl/ without CMake: sources and tests of each module."""
import os
import pathlib
import subprocess

SKIP = 77
_ENGINE_TESTS = ["qp_engine_send_test.cpp", "qp_engine_timer_test.cpp", "qp_engine_answer_test.cpp",
                 "qp_engine_rate_test.cpp", "qp_engine_test.cpp", "engine_node.cpp"]
# Module: its sources, the sources of its test, and the test's sources from model/ and rtl/cosim.
MODULES = {
    "opcode_decoder": (["roce_pkg.sv", "opcode_decoder.sv"], ["opcode_decoder_test.cpp"], ["model/roce/opcode.cpp"]),
    "round_robin": (["round_robin.sv", "sva/round_robin_sva.sv"], ["round_robin_test.cpp"], []),
    "timer_wheel": (["timer_wheel.sv", "sva/timer_wheel_sva.sv"], ["timer_wheel_test.cpp"], []),
    "qp_engine": (
        ["roce_pkg.sv", "qp_pkg.sv", "opcode_decoder.sv", "round_robin.sv", "ram_1r1w.sv", "stream_register.sv",
         "timer_wheel.sv", "response_check.sv", "request_packet.sv", "send_control.sv", "send_completion.sv",
         "send_window.sv", "requester.sv", "request_check.sv", "answer_packet.sv", "responder.sv",
         "qp_engine.sv", "sva/round_robin_sva.sv", "sva/timer_wheel_sva.sv", "sva/requester_sva.sv",
         "sva/responder_sva.sv", "sva/qp_engine_sva.sv"],
        _ENGINE_TESTS,
        ["model/roce/opcode.cpp", "model/roce/requester.cpp", "model/roce/completer.cpp",
         "model/roce/responders/responder.cpp", "model/roce/responders/early_requests.cpp",
         "model/roce/send_window.cpp", "model/roce/qp_state.cpp", "model/roce/send_side.cpp",
         "model/roce/responders/answer_side.cpp", "model/roce/responders/uc_responder.cpp",
         "model/roce/responders/ud_responder.cpp",
         "model/roce/responders/raw_responder.cpp",
         "rtl/cosim/lockstep.cpp", "rtl/cosim/lockstep_send.cpp", "rtl/cosim/lockstep_answer.cpp",
         "rtl/cosim/verilated_engine.cpp", "tests/rtl/script_top.cpp", "tests/support/sc_main.cpp",
         "tests/support/run_tests.cpp"]),
}


class BuildError(Exception):
    """A tool failed; the text is its output."""


def _run(command, **more):
    run = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if run.returncode != 0:
        raise BuildError(run.stdout + run.stderr)
    return run.stdout


def _compile(commands):
    """Runs the commands, two at a time."""
    waiting = list(commands)
    running = []
    while waiting or running:
        while waiting and len(running) < 2:
            running.append(subprocess.Popen(waiting.pop(0), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                            text=True))
        output, _ = running[0].communicate()
        if running.pop(0).returncode != 0:
            raise BuildError(output)


class Bench:
    """A module's test. Sources that do not depend on the module are compiled only once, and linked with each build of
    the module."""

    def __init__(self, project, module, folder, verilator_arguments=(), defines=()):
        self._project, self._module, self._folder = pathlib.Path(project), module, pathlib.Path(folder)
        self._arguments = list(verilator_arguments)
        root = pathlib.Path(_run(["verilator", "--getenv", "VERILATOR_ROOT"]).strip()) / "include"
        self._flags = ["-std=c++20", "-w", f"-I{self._project}", f"-I{root}", f"-I{root}/vltstd", "-DVM_TRACE=0",
                       "-DSC_CPLUSPLUS=201703L", "-DSC_INCLUDE_DYNAMIC_PROCESSES",
                       *[f"-D{define}" for define in defines]]
        self._folder.mkdir(parents=True)
        # Only for the module's header, which declares the ports.
        self._verilate(self._project / "rtl", self._folder / "header")
        _, tests, others = MODULES[module]
        sources = [self._project / "tests/rtl" / test for test in tests] + [self._project / other for other in others]
        sources += [root / "verilated.cpp", root / "verilated_threads.cpp"]
        sources += [root / "verilated_cov.cpp"] if self._arguments else []
        self._objects = []
        commands = []
        for source in sources:
            self._objects.append(str(self._folder / (source.stem + ".o")))
            commands.append(["g++", "-O1", *self._flags, f"-I{self._folder}/header", "-c", str(source), "-o",
                             self._objects[-1]])
        _compile(commands)

    def _verilate(self, rtl, folder):
        sources = [str(rtl / source) for source in ["lint.vlt"] + MODULES[self._module][0]]
        _run(["verilator", "--cc", "--assert", "-Wall", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--top",
              self._module, "--Mdir", str(folder), *self._arguments, *sources])

    def build(self, rtl, name):
        """The test's program, with the module's sources from the folder `rtl`. BuildError: usually a lint error."""
        folder = self._folder / name
        self._verilate(pathlib.Path(rtl), folder)
        parts = sorted(folder.glob("*.cpp"))
        halves = []
        for half in (0, 1):
            source = folder / f"half{half}.cc"
            source.write_text("".join(f'#include "{part.name}"\n' for part in parts[half::2]))
            halves.append(str(folder / f"half{half}.o"))
        _compile([["g++", "-O1", *self._flags, f"-I{folder}", "-c", str(folder / f"half{half}.cc"), "-o", halves[half]]
                  for half in (0, 1)])
        program = folder / "test"
        # The model's headers require SystemC, which has its own main.
        main = "-lsystemc" if any(one.endswith("sc_main.o") for one in self._objects) else "-lgtest_main"
        _run(["g++", "-o", str(program), *halves, *self._objects, main, "-lgmock", "-lgtest", "-lfmt", "-lpthread"])
        return program


def passes(program, *arguments, timeout=600, **environment):
    """(passed, output) of the test's program."""
    try:
        run = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False, timeout=timeout,
                             env={**os.environ, **environment})
    except subprocess.TimeoutExpired:
        return False, "it never ends"
    return run.returncode == 0, run.stdout + run.stderr
