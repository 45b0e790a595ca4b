// What the device refuses or ignores, and a driver's author wants to hear of.
#pragma once

#include <cstdint>

namespace rnicsim::nic {

struct Refusal {
  enum class What : std::uint8_t {
    send_doorbell,
    blueflame,
    cq_arm,
    eq_doorbell,
    doorbell,          // at an offset of a UAR page that holds none, or of a wrong size
    mmio_write,
    mmio_read,
    command,           // an entry of the command queue
    dma_read,
    dma_write,
    memory,            // an access by a key
  };
  enum class Why : std::uint8_t {
    no_object,         // no queue has that number
    wrong_page,        // the queue is another UAR page's
    malformed,
    past_ring,         // a producer that announces more than the ring has
    wrong_state,       // the queue pair is in RESET
    no_send_queue,
    no_register,       // nothing at that offset, or not of that size
    memory_off,        // memory space is not enabled in the command register of configuration space
    bus_master_off,
    bad_alignment,
    unreadable,        // the host aborted the read of the entry
    not_owned,         // the entry is not the device's
    bad_key,
    bad_range,
    other_pd,
    no_right,          // the region or window does not grant it
    device_fatal,      // the device has failed, and does nothing until it is reset
  };
  What what;
  Why why;
  std::uint32_t object = 0;   // number of the queue; index of the command's entry; key
  std::uint32_t qpn = 0;      // 0: it is about no queue pair
  std::uint64_t address = 0;  // in BAR0, on the bus, or that by which the memory was asked for
};

}  // namespace rnicsim::nic
