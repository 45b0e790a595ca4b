// The receive ring of a QP as an engine reads it, in WQEs modulo 2^16, and the receives held. There is no receive
// doorbell: the producer stands in the doorbell record. The ring says what is to be read, and is told what was read.
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
  // `ahead`: WQEs that are read at a time.
  ReceiveRing(const Personality& personality, std::uint32_t ahead) : personality_(&personality), ahead_(ahead) {}

  enum class Found : std::uint8_t {
    nothing,
    posted,                              // more were posted: begin_read() reads them
    receives,                            // they are held, behind those of before
    no_ring                              // it can't be read
  };

  // What is to be read now, from here on under way; nullopt: something is under way.
  std::optional<RingRead> begin_read(const QpContext& context);
  Found end_read(const WqeBytes& read, const QpContext& context);
  bool reading() const { return reading_ != Reading::nothing; }

  // A packet wants a receive. What is under way may be older than the packet: then the ring is to be read once more.
  void want() { look_again_ = reading(); }
  bool take_look_again() { return std::exchange(look_again_, false); }

  std::size_t held() const { return held_.size(); }
  const ReceiveWqe& operator[](std::size_t index) const { return held_[index]; }
  void trim() { held_.trim(); }
  // Fewer are held than half of what one read can bring.
  bool low(const QpContext& context) const;
  // All that are known to be posted have been read.
  bool all_read() const { return producer_ == fetched_; }
  // The first one held, or to be held.
  std::uint16_t consumer() const { return static_cast<std::uint16_t>(fetched_ - held_.size()); }

  // From a shared queue, and back there: this one has no ring then.
  void hold(ReceiveWqe&& receive) { held_.push_back(std::move(receive)); }
  std::optional<std::uint16_t> release();

  // Those that are held are to be read again.
  void put_back();

  // The one that a message fills.
  void fill_next();
  void filled() { filling_.reset(); }
  const std::optional<ReceiveWqe>& filling() const { return filling_; }

  // In the error state. The producer is read once more first, so that all that was posted before the error is there.
  void begin_flush() { flush_looks_ = true; }
  std::optional<RingRead> flush_read(const QpContext& context);
  // In order: the receive that was being filled, those held, then those in the ring. None as long as a read is under
  // way.
  std::optional<std::uint16_t> flush_next();

 private:
  enum class Reading : std::uint8_t { nothing, record, receives };

  RingRead read_record(const QpContext& context);

  const Personality* personality_;
  std::uint32_t ahead_;
  std::uint16_t producer_ = 0;           // as last read
  std::uint16_t fetched_ = 0;
  Reading reading_ = Reading::nothing;
  bool look_again_ = false;
  bool flush_looks_ = false;
  Fifo<ReceiveWqe> held_;
  std::optional<ReceiveWqe> filling_;
};

}  // namespace rnicsim::nic
