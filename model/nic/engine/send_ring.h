// SPDX-License-Identifier: Apache-2.0
// The send ring of a QP as an engine reads it, in blocks modulo 2^16: parsed <= fetched <= producer. The ring requests
// reads, gets the bytes read, and returns the WQEs one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/nic/engine/wqe.h"
#include "model/nic/personality/personality.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

class SendRing {
 public:
  explicit SendRing(const Personality& personality) : personality_(&personality) {}

  enum class Announced : std::uint8_t {
    invalid,  // more blocks than the ring has: ignored
    producer,
    next_wqe  // the doorbell carried the next WQE, which is taken from it
  };

  // `takes`: the engine accepts a WQE in the doorbell.
  Announced announce(const SendDoorbell& doorbell, const QpContext& context, bool takes);
  // Blocks are posted that no read has begun.
  bool wants_read() const { return !reading_ && fetched_ != producer_; }
  // Begins a read of at most `room` blocks; nullopt: too few for a read.
  std::optional<RingRead> begin_read(const QpContext& context, std::size_t room);
  // False: the ring cannot be read, and has no further WQEs.
  bool end_read(const WqeBytes& wqe);
  // Call after next_wqe or a read: while a whole WQE is here, take_next() returns it.
  bool has_next();
  void take_next(Qpn qpn, const SendRules& rules, SendWqe& wqe, roce::SendRequest& request);

  // The first block that was not parsed.
  std::uint16_t parsed() const { return parsed_; }
  std::uint64_t address(const QpContext& context, std::uint16_t block) const {
    return context.send_ring + (std::uint64_t{block & ((1u << context.log_send_blocks) - 1)} << log_block());
  }

 private:
  std::uint8_t log_block() const { return personality_->layout.log_send_block; }
  std::span<const std::byte> rest() const { return std::span(bytes_).subspan(at_); }

  const Personality* personality_;
  std::uint16_t producer_ = 0;
  std::uint16_t fetched_ = 0;
  std::uint16_t parsed_ = 0;
  bool reading_ = false;
  std::vector<std::byte> bytes_;  // fetched bytes; those before at_ are parsed
  std::size_t at_ = 0;
  std::uint16_t next_blocks_ = 0;  // blocks of the WQE that has_next() found
  bool next_is_sound_ = false;     // the WQE's length field is valid
};

}  // namespace rnicsim::nic
