// Work requests, completions and doorbells, decoded. Nothing in a work request is trusted: a malformed one becomes a
// request that completes with an error when its turn comes.
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

// One contiguous range named by a key. The translation unit checks key, PD, range and access.
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

// An entry of a shared receive queue, and the index of that which follows it.
struct SharedReceive {
  ReceiveWqe receive;
  std::uint16_t next = 0;
};

// What a bind_window asks for; no length: to be closed.
struct WindowBinding {
  std::uint32_t window;                  // its key so far
  std::uint32_t key;                     // from now on
  std::uint32_t region;
  std::uint32_t access;
  std::uint64_t address;
  std::uint64_t length;
};

// What a fast_register asks for.
struct Registration {
  std::uint32_t key;                     // from now on
  std::uint32_t access;
  std::uint64_t start;
  std::uint64_t length;
  std::uint32_t first_byte;              // of the first page: `start` lies there
  std::uint8_t log_page;
};

struct SendWqe {
  SendOpcode opcode = SendOpcode::nop;
  std::uint16_t index = 0;               // of its first block
  std::uint16_t blocks = 1;
  enum class Presence : std::uint8_t { unknown, asked, at_hand } presence = Presence::unknown;
  Presence destination = Presence::unknown;  // of its memory, where regions may be on demand
  Regions regions;
  std::optional<Payload> inline_data;
  std::optional<Path> path;              // UD; else the QP's
  std::variant<std::monostate, WindowBinding, Registration> key_work;  // of bind_window, of fast_register
  std::uint64_t message = 0;             // its request's id
  std::uint32_t length = 0;              // the request's
  std::uint32_t segment = 0;             // the request's
  std::uint32_t invalidated = 0;         // local_inv: this key
  bool signaled = false;
  bool checksums = false;                // raw: the device fills them in
  Payload headers{};                     // of tso: of each segment

  // As new, without a move into its place, which would be dear. What the request says of it follows.
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

// What the send WQEs of a QP may be.
struct SendRules {
  roce::Transport transport = roce::Transport::rc;
  std::uint32_t least_message = 0;       // bytes
  std::uint32_t max_message = 1u << 30;  // UD: the MTU
  std::uint32_t max_tso = 0;             // raw: bytes in segments,
  std::uint32_t max_headers = 0;         // and of the headers before each
  std::uint32_t qkey = 0;                // UD: where a WQE asks for the QP's own
  bool invalidate = true;                // the device has send_with_inv and local_inv,
  bool windows = true;                   // bind_window,
  bool fast_register = true;
  bool atomic_write = true;              // and atomic_write
};

// A completion queue entry. Owner and timestamp are the completion unit's.
struct Cqe {
  std::uint32_t qpn = 0;                 // the local QP
  std::uint32_t byte_count = 0;
  std::uint32_t immediate = 0;           // immediate data or the invalidated rkey; raw: its flow's tag
  std::uint32_t source_qpn = 0;          // UD: of the sender; with xrc: the SRQ's number
  std::uint16_t wqe_counter = 0;         // a send's first block; index of a receive WQE, or of the SRQ's entry
  CqeOpcode opcode = CqeOpcode::requester;
  SendOpcode send_opcode = SendOpcode::nop;
  roce::Status syndrome = roce::Status::success;
  bool grh = false;                      // UD: a GRH precedes the payload
  bool ipv4 = false;                     // it is an IPv4 header
  bool xrc = false;                      // a receive of an XRC SRQ
  bool checksums_right = false;          // raw
  bool tagged = false;                   // raw: its flow has a tag
  std::optional<std::uint16_t> vlan{};   // UD: of its packet; raw: the tag that was taken off
  std::uint32_t rss_hash = 0;            // raw
};

// Where an entry stands in its queue, counted for ever, and when.
struct CqePlace {
  std::uint32_t position;
  std::uint8_t log_entries;
  std::uint64_t timestamp;
};

// What a write to a UAR page says.
struct DoorbellWrite {
  enum class Kind : std::uint8_t { unknown, send, blueflame, cq_arm, eq } kind = Kind::unknown;
  bool sound = true;                     // else nothing below is
  bool solicited_only = false;           // cq_arm
  std::uint32_t number = 0;              // qpn, cqn, eqn
  std::uint32_t position = 0;            // producer of sends, modulo 2^16; consumer
  std::span<const std::byte> wqe{};      // blueflame
};

}  // namespace rnicsim::nic
