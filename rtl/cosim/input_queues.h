// SPDX-License-Identifier: Apache-2.0
// Inputs that wait for the engine's streams. A command delays later inputs of its side, and waits for earlier ones.
#pragma once

#include <cstdint>
#include <limits>
#include <tuple>

#include "model/base/fifo.h"
#include "rtl/cosim/verilated_engine.h"

namespace rnicsim::rtl {

class InputQueues {
 public:
  template <class Input>
  void push(const Input& input) {
    std::get<Queue<Input>>(queues_).push_back({++sequence_, input});
  }
  // Offers all inputs that may be offered now.
  void offer(VerilatedEngine& engine) {
    offer_side<SendControl, Post, Response, SendEvent>(engine);
    offer_side<AnswerControl, Request, AnswerEvent>(engine);
  }
  bool empty() const {
    return std::apply([](const auto&... queues) { return (queues.empty() && ...); }, queues_);
  }
  void clear() {
    std::apply([](auto&... queues) { (queues.clear(), ...); }, queues_);
  }

 private:
  template <class Input>
  struct Waiting {
    std::uint64_t sequence;
    Input input;
  };
  template <class Input>
  using Queue = Fifo<Waiting<Input>>;
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  template <class Input>
  std::uint64_t first() const {
    const auto& queue = std::get<Queue<Input>>(queues_);
    return queue.empty() ? kNever : queue.front().sequence;
  }
  template <class Input>
  void offer_before(VerilatedEngine& engine, std::uint64_t end) {
    auto& queue = std::get<Queue<Input>>(queues_);
    if (engine.offers<Input>() || first<Input>() >= end) return;
    engine.offer(queue.front().input);
    queue.pop_front();
  }
  template <class Command, class... Inputs>
  void offer_side(VerilatedEngine& engine) {
    if (engine.offers<Command>()) return;
    const auto command = first<Command>();
    (offer_before<Inputs>(engine, command), ...);
    if (!(engine.awaits<Inputs>() || ...)) offer_before<Command>(engine, kNever);
  }

  std::tuple<Queue<SendControl>, Queue<Post>, Queue<Response>, Queue<SendEvent>, Queue<AnswerControl>, Queue<Request>,
             Queue<AnswerEvent>>
      queues_;
  std::uint64_t sequence_ = 0;
};

}  // namespace rnicsim::rtl
