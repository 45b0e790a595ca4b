# SPDX-License-Identifier: Apache-2.0
"""Recorded traces as NumPy arrays: what `rnicsim run --record FILE` wrote.

    from rnicsim import trace

    run = trace.open("a.trace")
    run.header["seed"], run.header["hosts"], run.header["configuration"]["nic.port.rate"]
    for block in run.blocks(hosts=["h0"], kinds=["wqe", "cqe"], qps=[0x40]):
        if "cqe" in block:
            print(block["cqe"]["time_ps"], block["cqe"]["syndrome"])

docs/trace.md is the manual, traces/README.md has the kinds of events and their fields. The module rnicsim._core reads
the file, piece by piece: a trace may be larger than memory. No simulation is started.
"""

import builtins
import collections.abc
import operator
import os
import warnings

try:
    import numpy
except ImportError as missing:
    raise ImportError("rnicsim.trace needs NumPy: apt-get install python3-numpy") from missing

from rnicsim import _core
from rnicsim._core import ConfigError, TraceError

__all__ = ["Block", "ConfigError", "Trace", "TraceError", "dtype", "fields", "kinds", "open", "value_text"]

_KINDS = _core.trace_kinds()
_DTYPES = {kind: numpy.dtype([("time_ps", "<i8"), ("host", "<u8")] + [(name, "<u8") for name, _ in rows])
           for kind, rows in _KINDS.items()}


def kinds():
    """The names of all kinds of events."""
    return list(_KINDS)


def fields(kind):
    """The names of a kind's fields."""
    return [name for name, _ in _KINDS[kind]]


def dtype(kind):
    """The columns of a kind's array: time_ps, host (its index in header["hosts"]), and the kind's fields."""
    return _DTYPES[kind]


def value_text(kind, field, value):
    """A value as `rnicsim trace show` prints it: value_text("cqe", "syndrome", 0) is "success"."""
    return _core.trace_value_text(kind, field, operator.index(value))


def open(path):
    """OSError: the file cannot be read. TraceError: the file is no trace."""
    return Trace(path)


class Trace:
    """A trace's file. `header`: a dict of program, title, seed, time, hosts, commands and configuration."""

    def __init__(self, path):
        self.path = os.fspath(path)
        builtins.open(self.path, "rb").close()
        self.header = self._reader({}).header()

    def blocks(self, events=1 << 16, **filter):
        """Yields Block after Block of at most `events` events, in the order of the trace.

        The filter, as the options of `rnicsim trace show`: hosts=["h0"], kinds=["cqe", "packet*"], qps=[0x40],
        psns=[100]; from_ps=, to_ps=: picoseconds, both inclusive.
        ConfigError: the trace has no such host, or there is no such kind. TraceError: the file is damaged, or ends
        early; the events before the damage have been yielded. A warning names kinds and fields of a newer program.
        """
        events = operator.index(events)
        if events < 1:
            raise ValueError(f"a block holds 1 event or more, not {events}")
        return self._blocks(self._reader(filter), events)

    def array(self, kind, **filter):
        """All events of one kind that the filter takes, as one array: its size is the caller's choice."""
        arrays = [block[kind] for block in self.blocks(kinds=[_known(kind)], **filter)]
        return numpy.concatenate(arrays) if arrays else numpy.empty(0, _DTYPES[kind])

    def to_pandas(self, kind, **filter):
        """The same as a DataFrame, as Block.to_pandas()."""
        return _frame(self, kind, self.array(kind, **filter))

    def _reader(self, filter):
        given = dict(hosts=(), kinds=(), qps=(), psns=(), from_ps=None, to_ps=None)
        for name in filter:
            if name not in given:
                raise TypeError(f"unknown filter '{name}': {', '.join(given)}")
        given.update(filter)
        for name in ("hosts", "kinds"):
            if isinstance(given[name], str):
                raise TypeError(f"{name} is a list of names: [{given[name]!r}]")
        numbers = {name: [_number(name, value, 1 << 24) for value in given[name]] for name in ("qps", "psns")}
        times = {name: None if given[name] is None else _number(name, given[name], 1 << 63)
                 for name in ("from_ps", "to_ps")}
        return _core.TraceBlocks(self.path, list(given["hosts"]), list(given["kinds"]), numbers["qps"], numbers["psns"],
                                 times["from_ps"], times["to_ps"])

    def _blocks(self, reader, events):
        while rows := reader.next(events):
            yield Block(self, {kind: numpy.frombuffer(words, _DTYPES[kind]) for kind, words in rows.items()})
        for line in reader.unknown():
            warnings.warn(line, stacklevel=2)


class Block(collections.abc.Mapping):
    """Events of a piece of the trace: a structured array for each kind that occurs in the piece."""

    def __init__(self, trace, arrays):
        self._trace = trace
        self._arrays = arrays

    def __getitem__(self, kind):
        return self._arrays[kind]

    def __iter__(self):
        return iter(self._arrays)

    def __len__(self):
        return len(self._arrays)

    def __repr__(self):
        counts = ", ".join(f"{kind}: {len(array)}" for kind, array in self._arrays.items())
        return f"<Block {counts}>"

    def to_pandas(self, kind):
        """A DataFrame of the kind's events: numbers as they are; hosts and values with names as categories.
        ImportError: pandas is not installed."""
        return _frame(self._trace, kind, self._arrays[kind])


def _known(kind):
    if kind not in _KINDS:
        raise ConfigError(f"unknown kind of event '{kind}'")
    return kind


def _number(name, value, limit):
    value = operator.index(value)
    if not 0 <= value < limit:
        raise ValueError(f"{name}: {value} is not within 0 to {limit - 1}")
    return value


def _frame(trace, kind, array):
    try:
        import pandas
    except ImportError as missing:
        raise ImportError("to_pandas() needs pandas: apt-get install python3-pandas") from missing
    columns = {"time_ps": array["time_ps"],
               "host": pandas.Categorical.from_codes(array["host"].astype("i8"), trace.header["hosts"])}
    for name, has_names in _KINDS[kind]:
        if not has_names:
            columns[name] = array[name]
            continue
        values, codes = numpy.unique(array[name], return_inverse=True)
        columns[name] = pandas.Categorical.from_codes(codes, [value_text(kind, name, value) for value in values])
    return pandas.DataFrame(columns)
