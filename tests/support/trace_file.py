# SPDX-License-Identifier: Apache-2.0
"""Makes traces that rnicsim itself does not write. Needs the command zstd."""
import re
import subprocess

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
TRAILER_BYTES = 32
MAGIC = b"rnicsim trace\n"


def zstd(content, *options):
    return subprocess.run(["zstd", "-c", *options], input=content, stdout=subprocess.PIPE, check=True).stdout


def frame_bytes(data):
    """Length of the zstd frame at the beginning of `data` (RFC 8878, 3.1.1)."""
    assert data.startswith(ZSTD_MAGIC)
    descriptor = data[4]
    single_segment, has_checksum = descriptor >> 5 & 1, descriptor >> 2 & 1
    size_bytes = (single_segment, 2, 4, 8)[descriptor >> 6]
    at = 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3] + size_bytes
    while True:
        block = int.from_bytes(data[at:at + 3], "little")
        at += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
        if block & 1:
            return at + 4 * has_checksum


def number(value):
    """LEB128."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def with_schema(trace, old, new):
    """The bytes of a trace with another text in its schema: of a program with other kinds or fields."""
    length = frame_bytes(trace)
    header = zstd(trace[:length], "-d")
    json = re.sub(MAGIC + rb"\x02[\x80-\xff]*[\x00-\x7f]", b"", header, count=1)
    assert json.count(old.encode()) == 1, old
    json = json.replace(old.encode(), new.encode())
    frame = zstd(MAGIC + b"\x02" + number(len(json)) + json)
    trailer = bytearray(trace[-TRAILER_BYTES:])
    offset = int.from_bytes(trailer[16:24], "little") + len(frame) - length
    trailer[16:24] = offset.to_bytes(8, "little")
    return frame + trace[length:-TRAILER_BYTES] + bytes(trailer)


def with_hidden_queue_pair(trace):
    """The bytes of a trace of one block whose index names another queue pair in the place of its last one."""
    offset, length = (int.from_bytes(trace[-TRAILER_BYTES + at:][:8], "little") for at in (16, 24))
    index = bytearray(zstd(trace[offset:offset + length], "-d"))
    assert index[-3:] == b"\x01\x00\x01" and index[-4] < 0x7f, index[-5:]  # one range, from block 0, of one block
    index[-4] += 1
    frame = zstd(bytes(index))
    trailer = bytearray(trace[-TRAILER_BYTES:])
    trailer[24:32] = len(frame).to_bytes(8, "little")
    return trace[:offset] + frame + bytes(trailer)
