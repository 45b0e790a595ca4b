# SPDX-License-Identifier: Apache-2.0
"""Better direction of each parameter, or the reason why it has none."""
import re

LESS, MORE = "less", "more"

# Similar parameters share an entry with a pattern in the path: `nic.contexts.*.banks`.
DIRECTIONS = {
    # Times of work or waiting.
    "nic.pcie.read_latency": LESS,
    "nic.pcie.read_internal": LESS,
    "nic.pcie.read_queueing": LESS,
    "nic.pcie.line_read": LESS,
    "nic.pcie.write_latency": LESS,
    "nic.pcie.ordered_write": LESS,
    "nic.pcie.write_issue": LESS,
    "nic.contexts.*.l1_latency": LESS,
    "nic.contexts.*.bank_cycle": LESS,
    "nic.device_memory.latency": LESS,
    "nic.device_memory.line_interval": LESS,
    "nic.translation.flush": LESS,
    "nic.translation.flush_page": LESS,
    "nic.atc.lookup": LESS,
    "nic.atomics.service": LESS,
    "nic.atomics.qp_interval": LESS,
    "nic.units.write": LESS,
    "nic.units.send": LESS,
    "nic.units.read": LESS,
    "nic.units.atomic": LESS,
    "nic.units.read_response": LESS,
    "nic.units.acknowledge": LESS,
    "nic.units.next_packet": LESS,
    "nic.units.receive_request": LESS,
    "nic.units.receive_atomic": LESS,
    "nic.units.receive_response": LESS,
    "nic.units.receive_next": LESS,
    "nic.units.line": LESS,
    "nic.tx.latency": LESS,
    "nic.rx.latency": LESS,
    "nic.raw.lookup": LESS,
    "nic.loopback.latency": LESS,
    "host.cpu.*": LESS,
    "host.cm.*": LESS,
    "host.mmio_write_latency": LESS,
    "host.mmio_line_interval": LESS,
    "host.iommu_walk": LESS,
    "host.page_fault": LESS,
    "host.page_in": LESS,
    "link.latency": LESS,
    "switch.latency": LESS,
    "network.latency": LESS,
    "network.loopback_latency": LESS,
    # Overhead besides the payload.
    "nic.pcie.request_header": LESS,
    "nic.pcie.completion_header": LESS,
    "nic.pcie.dllp_share": LESS,
    "nic.contexts.*.fill_lines": LESS,
    "nic.port.overhead": LESS,
    "nic.port.least_frame": LESS,
    # Rates and quantities.
    "nic.pcie.generation": MORE,
    "nic.pcie.lanes": MORE,
    "nic.pcie.max_payload": MORE,
    "nic.pcie.max_read_request": MORE,
    "nic.pcie.read_completion_boundary": MORE,
    "nic.pcie.read_tags": MORE,
    "nic.pcie.read_bytes": MORE,
    "nic.pcie.posted_headers": MORE,
    "nic.pcie.posted_data": MORE,
    "nic.pcie.relaxed_ordering": MORE,
    "nic.contexts.*.l0_entries": MORE,
    "nic.contexts.*.l1_entries": MORE,
    "nic.contexts.*.banks": MORE,
    "nic.contexts.*.miss_slots": MORE,
    "nic.contexts.*.hit_under_miss": MORE,
    "nic.atc.entries": MORE,
    "nic.atc.page_requests": MORE,
    "nic.atomics.lock_slots": MORE,
    "nic.units.transmit_units": MORE,
    "nic.units.receive_units": MORE,
    "nic.units.payload_reads": MORE,
    "nic.units.read_ahead": MORE,
    "nic.send_wqes.entries": MORE,
    "nic.send_wqes.miss_slots": MORE,
    "nic.receive_wqes.queues": MORE,
    "nic.receive_wqes.reads": MORE,
    "nic.receive_buffer.size": MORE,
    "nic.tx.queue_packets": MORE,
    "nic.port.rate": MORE,
    "nic.loopback.rate": MORE,
    "nic.capabilities.max_rd_atomic": MORE,
    "host.mmio_write_buffers": MORE,
    "host.event_queue_entries": MORE,
    "host.icm_chunk": MORE,
    "host.page_size": MORE,
    "switch.port_buffer": MORE,
    "network.rate": MORE,
}

# Values from the worst to the best, for parameters that are not doubled or halved.
LADDERS = {
    "nic.pcie.ordered_write": ["20 ns", "0 ps"],
    "nic.pcie.write_issue": ["2 ns", "0 ps"],
    "host.page_size": ["4 KiB", "64 KiB", "2 MiB"],
}

NO_DIRECTION = {
    "nic.capabilities.*": "what programs may ask for: no cost",
    "nic.device.core_clock_khz": "stamps completions, and clocks nothing",
    "nic.pcie.burst": "calls into the host, which take no simulated time",
    "nic.contexts.*.ways": "who goes round more entries than a cache has finds none in one set, and some in many",
    "nic.contexts.*.replacement": "which is better depends on the accesses",
    "nic.device_memory.size": "what programs may ask for: no cost",
    "nic.atc.ways": "as of the caches of contexts",
    "nic.atc.replacement": "which is better depends on the accesses",
    "nic.units.read_piece": "small pieces begin sooner, large ones are fewer reads",
    "nic.send_wqes.ways": "as of the caches of contexts",
    "nic.send_wqes.ahead": "what is kept ahead is read from the ring early, and takes others' places in the cache",
    "nic.send_wqes.replacement": "which is better depends on the accesses",
    "nic.receive_wqes.ahead": "what is read ahead is on the device early, and read again when it was displaced",
    "nic.receive_wqes.ways": "as of the caches of contexts",
    "nic.receive_wqes.replacement": "which is better depends on the accesses",
    "nic.receive_buffer.*": "a balance between what is lost and who is held up",
    "nic.port.pfc": "which priorities obey pauses",
    "nic.port.dscp_priority": "which frame has which priority",
    "nic.port.pcp_priority": "which frame has which priority",
    "nic.port.trust": "which frame has which priority",
    "nic.port.scheduler": "which priority is served, not how fast",
    "nic.port.dwrr.*": "which priority is served, not how fast",
    "nic.port.ets.*": "which priority is served, not how fast",
    "nic.jitter.*": "no cost of a NIC",
    "nic.adaptive_timeout": "a short one sends again what is only late",
    "nic.adaptive_retransmission.*": "a short timeout sends again what is only late",
    "nic.transport.*": "which is better depends on what the network loses and reorders",
    "nic.congestion.*": "which is better depends on the network",
    "nic.congestion.*.*": "which is better depends on the network",
    "switch.ecn.*": "which is better depends on the senders' congestion control",
    "switch.jitter": "no cost: it puts senders out of step",
    "switch.histograms": "no cost: what results tell",
    "nic.icrc": "the simulator's speed only",
    "nic.timing_only": "the simulator's speed only",
    "engine.*": "no cost of the model",
    "host.poll_interval": "how far simulated time goes between two looks: no cost",
    "host.completion_vectors": "programs choose among them",
    "host.kernel_memory": "what may be lent, not how fast",
    "host.huge_pages": "what programs may ask for: no cost of its own",
    "host.lid_paths": "what programs may ask for: no cost",
    "host.vlan": "which hosts reach each other; adds 4 bytes to each frame",
    "host.raw_packets": "what programs may ask for: no cost",
    "switch.pfc.*": "a balance between what is lost and who is held up",
    "switch.pfc.watchdog.*": "when a pause is taken for a storm, and what is done then",
    "switch.dscp_priority": "which frame has which priority",
    "switch.pcp_priority": "which frame has which priority",
    "switch.trust": "which frame has which priority",
    "switch.buffer.*": "a balance between what is lost, who is held up, and who has how much",
    "switch.buffer.*.*": "a balance between what is lost, who is held up, and who has how much",
    "switch.path": "which way a frame takes: which is better depends on the flows",
    "switch.ecmp.*": "which way a frame takes: which is better depends on the flows",
    "switch.spray.*": "which way a frame takes: which is better depends on the flows",
    "switch.flowlet.*": "which way a frame takes: which is better depends on the flows",
    "switch.adaptive.*": "which way a frame takes: which is better depends on the flows",
    "switch.scheduler": "which priority is served, not how fast",
    "switch.dwrr.*": "which priority is served, not how fast",
    "switch.ets.*": "which priority is served, not how fast",
}


def is_named(path, pattern):
    return re.fullmatch(re.escape(pattern).replace(r"\*", r"\w+"), path) is not None


def entry_of(path, table):
    """The entry with the path itself, or else with a matching pattern."""
    return table.get(path) or next((entry for pattern, entry in table.items() if is_named(path, pattern)), None)


def direction_of(path):
    return entry_of(path, DIRECTIONS)


def is_classified(path):
    return direction_of(path) is not None or entry_of(path, NO_DIRECTION) is not None
