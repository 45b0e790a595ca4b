// SPDX-License-Identifier: Apache-2.0
// Tests the seam: adds random delays to the inputs and outputs of another engine, and reorders transactions that the
// rules of the seam (qp_engine.h) do not order. Code that works with it does not depend on an engine's timing.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <random>

#include "model/base/event_queue.h"
#include "model/base/fifo.h"
#include "model/base/params.h"
#include "model/nic/engine/jittered_engine_params.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

class JitteredEngine : public QpEngine {
 public:
  JitteredEngine(const JitterParams& params, std::unique_ptr<QpEngine> engine);

  EngineOutputs& outputs() override { return out_; }
  EngineTrace& trace() override { return engine_->trace(); }
  const EngineCounters& counters() const override { return engine_->counters(); }
  void describe_state(std::string& out) const override { engine_->describe_state(out); }
  std::size_t sends_outstanding() const override { return engine_->sends_outstanding(); }

  void seed(std::uint64_t seed) override { engine_->seed(seed); }
  void doorbell(SendDoorbell&& doorbell) override;
  void wqe(WqeBytes&& wqe) override;
  void wqe_at_hand(Tag tag) override;
  void receives_displaced(Qpn qpn) override;
  void context(ContextFill fill) override;
  void evict(Qpn qpn) override;
  void transmit_free(std::uint32_t unit) override;
  void gathered(DmaDone&& done) override;
  void scattered(DmaDone&& done) override;
  void checked(KeyDone done) override;
  void atomic_done(AtomicDone done) override;
  void key_changed(KeyDone done) override;
  void srq_taken(SrqTaken taken) override;
  void packet(PacketIn&& packet) override;
  void command(QpCommand command) override;
  void timer_expired(Qpn qpn, std::uint32_t kind) override;
  void on_demand() override { engine_->on_demand(); }
  void gid_tagged(std::uint16_t index, bool tagged) override { engine_->gid_tagged(index, tagged); }
  void cq_overrun(Qpn qpn) override;
  void credit(std::uint8_t credit_class, std::uint32_t packets) override;
  void reset() override;

 private:
  // Transactions of one stream (and one QP, or unit) keep their order.
  enum class Stream : std::uint8_t {
    doorbell_in,
    packet_in,
    timer_in,
    overrun_in,
    scatter_out,
    atomic_out,
    srq_out,
    packet_out,
    wqe_out,
    cqe_out,
    event_out,
    timer_out,
    unit_out,
    key_out
  };
  struct Key {
    std::uint32_t number;
    Stream stream;
    auto operator<=>(const Key&) const = default;
  };
  using Streams = std::initializer_list<Stream>;
  static constexpr Streams kIn = {Stream::doorbell_in, Stream::packet_in, Stream::timer_in, Stream::overrun_in};
  static constexpr Streams kOut = {Stream::scatter_out, Stream::atomic_out, Stream::srq_out,
                                   Stream::packet_out,  Stream::wqe_out,    Stream::cqe_out,
                                   Stream::event_out,   Stream::timer_out,  Stream::key_out};

  void bind_outputs();
  template <class Item>
  void relay(Output<Item>& from, const Output<Item>& to);
  template <class Item, class Number>
  void relay(Output<Item>& from, const Output<Item>& to, Stream stream, Number number);
  void later(std::function<void()> action);
  // After all earlier actions of these streams, and before all later ones.
  void in_order(std::uint32_t number, Streams streams, std::function<void()> action);
  Duration draw();
  void due();

  const JitterParams params_;
  const std::unique_ptr<QpEngine> engine_;
  EngineOutputs out_;
  std::mt19937_64 random_;
  std::map<Key, Duration> last_;  // time of the last action
  EventQueue<std::function<void()>> pending_{[this] { due(); }};
  // Counts armings: an expiry is void if its timer was armed again or cancelled while the expiry was on the way.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> armings_;
  // Packets of a credit class leave in the order in which the NIC got them. The engine gets their credits in the order
  // in which it sent them.
  struct PacketsOut {
    std::map<std::uint64_t, bool> put;  // packets of the engine without a returned credit, by number: true: left
    Fifo<std::uint64_t> sent;           // packets that the NIC has, in its order
  };
  std::array<PacketsOut, kCreditClasses> packets_;
  std::uint64_t next_packet_ = 0;
  Qpn commanded_{};
};

}  // namespace rnicsim::nic
