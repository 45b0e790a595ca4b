// SPDX-License-Identifier: Apache-2.0
// The receive ring of a QP as an engine reads it, in WQEs modulo 2^16, and the receives held. There is no receive
// doorbell: the producer is in the doorbell record. The ring requests reads, and gets the bytes read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "model/base/fifo.h"
#include "model/nic/engine/wqe.h"
#include "model/nic/personality/personality.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

class ReceiveRing {
 public:
  // `ahead`: WQEs per read.
  ReceiveRing(const Personality& personality, std::uint32_t ahead) : personality_(&personality), ahead_(ahead) {}

  enum class Found : std::uint8_t {
    nothing,
    posted,    // more receives were posted: begin_read() reads them
    receives,  // receives were read and are held
    no_ring    // the ring cannot be read
  };

  // Begins the next read; nullopt: a read is under way.
  std::optional<RingRead> begin_read(const QpContext& context);
  Found end_read(const WqeBytes& read, const QpContext& context);
  bool reading() const { return reading_ != Reading::nothing; }

  // A packet needs a receive. A read under way may be older than the packet: then the ring must be read once more.
  void want() { look_again_ = reading(); }
  bool take_look_again() { return std::exchange(look_again_, false); }

  std::size_t held() const { return held_.size(); }
  const ReceiveWqe& operator[](std::size_t index) const { return held_[index]; }
  void trim() { held_.trim(); }
  // Fewer receives are held than half of one read.
  bool low(const QpContext& context) const;
  // All receives that are known to be posted were read.
  bool all_read() const { return producer_ == fetched_; }
  // Index of the first receive that is held, or of the next one.
  std::uint16_t consumer() const { return static_cast<std::uint16_t>(fetched_ - held_.size()); }

  // Receives of a shared queue; the QP then has no ring.
  void hold(ReceiveWqe&& receive) { held_.push_back(std::move(receive)); }
  std::optional<std::uint16_t> release();

  // Drops the held receives; they will be read again.
  void put_back();

  // The receive that a message fills.
  void fill_next();
  void filled() { filling_.reset(); }
  const std::optional<ReceiveWqe>& filling() const { return filling_; }

  // Flush in the error state. The producer is read once more first, to include all receives posted before the error.
  void begin_flush() { flush_looks_ = true; }
  std::optional<RingRead> flush_read(const QpContext& context);
  // Order: the receive that was being filled, those held, then those in the ring. nullopt while a read is under way.
  std::optional<std::uint16_t> flush_next();

 private:
  enum class Reading : std::uint8_t { nothing, record, receives };

  RingRead read_record(const QpContext& context);

  const Personality* personality_;
  std::uint32_t ahead_;
  std::uint16_t producer_ = 0;  // at the last read
  std::uint16_t fetched_ = 0;
  Reading reading_ = Reading::nothing;
  bool look_again_ = false;
  bool flush_looks_ = false;
  Fifo<ReceiveWqe> held_;
  std::optional<ReceiveWqe> filling_;
};

}  // namespace rnicsim::nic
