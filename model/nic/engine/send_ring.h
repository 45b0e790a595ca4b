// The send ring of a QP as an engine reads it, in blocks modulo 2^16: parsed <= fetched <= producer. It says what is to
// be read, is told what was read, and gives the WQEs of it one after another.
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
    invalid,                             // more blocks than the ring has: ignored
    producer,
    next_wqe                             // the doorbell brought the WQE that is next, and it is taken from there
  };

  // `takes`: the engine takes a WQE that comes along.
  Announced announce(const SendDoorbell& doorbell, const QpContext& context, bool takes);
  // Something was posted and is not under way.
  bool wants_read() const { return !reading_ && fetched_ != producer_; }
  // Where the next of it lies, of which the engine takes so many blocks; nullopt: they are too few to be worth a read.
  std::optional<RingRead> begin_read(const QpContext& context, std::size_t room);
  // False: the ring is gone, and nothing of it comes any more.
  bool end_read(const WqeBytes& wqe);
  // After next_wqe, or a read: as long as it has a whole WQE, take_next() gives it.
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
  std::vector<std::byte> bytes_;         // fetched, and not parsed before `at_`
  std::size_t at_ = 0;
  std::uint16_t next_blocks_ = 0;        // of the WQE that has_next() found
  bool next_is_sound_ = false;           // it says so itself
};

}  // namespace rnicsim::nic
