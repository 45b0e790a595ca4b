// SPDX-License-Identifier: Apache-2.0
// Work requests, completions and doorbells, decoded. No field of a work request is trusted: a malformed one becomes a
// request that completes with an error at its turn.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "model/base/payload.h"
#include "model/nic/personality/contexts.h"
#include "model/nic/personality/values.h"
#include "model/roce/send_window.h"

namespace rnicsim::nic {

// One contiguous range with its key. The translation unit checks key, PD, range and access.
struct Region {
  std::uint32_t key;
  std::uint64_t address;
  std::uint32_t length;
};

using Regions = boost::container::small_vector<Region, 2>;

struct ReceiveWqe {
  std::uint16_t index = 0;
  std::uint64_t bytes = 0;
  Regions regions;
};

// An entry of a shared receive queue, and the index of the entry after it.
struct SharedReceive {
  ReceiveWqe receive;
  std::uint16_t next = 0;
};

// Operands of a bind_window; length 0: closes the window.
struct WindowBinding {
  std::uint32_t window;  // the window's key before
  std::uint32_t key;     // the window's new key
  std::uint32_t region;
  std::uint32_t access;
  std::uint64_t address;
  std::uint64_t length;
};

// Operands of a fast_register.
struct Registration {
  std::uint32_t key;  // the new key
  std::uint32_t access;
  std::uint64_t start;
  std::uint64_t length;
  std::uint32_t first_byte;  // offset of `start` in the first page
  std::uint8_t log_page;
};

struct SendWqe {
  SendOpcode opcode = SendOpcode::nop;
  std::uint16_t index = 0;  // index of the first block
  std::uint16_t blocks = 1;
  enum class Presence : std::uint8_t { unknown, asked, at_hand } presence = Presence::unknown;
  Presence destination = Presence::unknown;  // presence of its local memory, which may be on demand
  Regions regions;
  std::optional<Payload> inline_data;
  std::optional<Path> path;                                            // UD; other transports use the QP's path
  std::variant<std::monostate, WindowBinding, Registration> key_work;  // for bind_window and fast_register
  std::uint64_t message = 0;                                           // id of its request
  std::uint32_t length = 0;                                            // length of its request
  std::uint32_t segment = 0;                                           // segment of its request
  std::uint32_t invalidated = 0;                                       // local_inv: the key
  bool signaled = false;
  bool checksums = false;  // raw: the device fills in checksums
  Payload headers{};       // TSO: headers for each segment

  // Resets in place, which is cheaper than assignment. The members that follow from the request are set later.
  void clear() {
    opcode = SendOpcode::nop;
    index = 0;
    regions.clear();
    inline_data.reset();
    path.reset();
    if (key_work.index() != 0) key_work.emplace<std::monostate>();
    blocks = 1;
    presence = destination = Presence::unknown;
    checksums = false;
    if (!headers.empty()) headers = {};
  }
};

// Limits for the send WQEs of a QP.
struct SendRules {
  roce::Transport transport = roce::Transport::rc;
  std::uint32_t least_message = 0;       // bytes
  std::uint32_t max_message = 1u << 30;  // UD: the MTU
  std::uint32_t max_tso = 0;             // raw: bytes of a message that is sent in segments
  std::uint32_t max_headers = 0;         // raw: bytes of the headers of each segment
  std::uint32_t qkey = 0;                // UD: for WQEs that use the QP's own Q_Key
  bool invalidate = true;                // the device supports send_with_inv and local_inv
  bool windows = true;                   // bind_window is supported
  bool fast_register = true;
  bool atomic_write = true;  // atomic_write is supported
};

// A completion queue entry. The completion unit adds owner bit and timestamp.
struct Cqe {
  std::uint32_t qpn = 0;  // the local QP
  std::uint32_t byte_count = 0;
  std::uint32_t immediate = 0;    // immediate data or the invalidated rkey; raw: tag of the flow
  std::uint32_t source_qpn = 0;   // UD: QP number of the sender; with xrc: number of the SRQ
  std::uint16_t wqe_counter = 0;  // send: first block; receive: index of the WQE or of the SRQ's entry
  CqeOpcode opcode = CqeOpcode::requester;
  SendOpcode send_opcode = SendOpcode::nop;
  roce::Status syndrome = roce::Status::success;
  bool grh = false;                     // UD: a GRH precedes the payload
  bool ipv4 = false;                    // the GRH holds an IPv4 header
  bool xrc = false;                     // a receive of an XRC SRQ
  bool checksums_right = false;         // raw
  bool tagged = false;                  // raw: the flow has a tag
  std::optional<std::uint16_t> vlan{};  // UD: the packet's VLAN tag; raw: the tag that was removed
  std::uint32_t rss_hash = 0;           // raw
};

// Position of an entry in its queue, without wrapping, and its timestamp.
struct CqePlace {
  std::uint32_t position;
  std::uint8_t log_entries;
  std::uint64_t timestamp;
};

// A decoded write to a UAR page.
struct DoorbellWrite {
  enum class Kind : std::uint8_t { unknown, send, blueflame, cq_arm, eq } kind = Kind::unknown;
  bool sound = true;                 // false: the members below are not valid
  bool solicited_only = false;       // cq_arm
  std::uint32_t number = 0;          // qpn, cqn, eqn
  std::uint32_t position = 0;        // producer of sends, modulo 2^16; consumer
  std::span<const std::byte> wqe{};  // blueflame
};

}  // namespace rnicsim::nic
