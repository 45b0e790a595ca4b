// SPDX-License-Identifier: Apache-2.0
// Requests that the device refuses or ignores, for reports to a driver's author.
#pragma once

#include <cstdint>

namespace rnicsim::nic {

struct Refusal {
  enum class What : std::uint8_t {
    send_doorbell,
    blueflame,
    cq_arm,
    eq_doorbell,
    doorbell,  // no doorbell at this offset of a UAR page, or wrong size
    mmio_write,
    mmio_read,
    command,  // an entry of the command queue
    dma_read,
    dma_write,
    memory,  // an access with a key
  };
  enum class Why : std::uint8_t {
    no_object,   // no queue has this number
    wrong_page,  // the queue belongs to another UAR page
    malformed,
    past_ring,    // the producer announces more than the ring has
    wrong_state,  // the queue pair is in RESET
    no_send_queue,
    no_register,  // no register at this offset, or not of this size
    memory_off,   // memory space is disabled in the command register of configuration space
    bus_master_off,
    bad_alignment,
    unreadable,  // the host aborted the read of the entry
    not_owned,   // the device does not own the entry
    bad_key,
    bad_range,
    other_pd,
    no_right,      // the region or window does not grant the access
    device_fatal,  // the device has failed and waits for a reset
  };
  What what;
  Why why;
  std::uint32_t object = 0;   // number of the queue, index of the command entry, or key
  std::uint32_t qpn = 0;      // 0: no queue pair
  std::uint64_t address = 0;  // in BAR0, on the bus, or the address of the memory access
};

}  // namespace rnicsim::nic
