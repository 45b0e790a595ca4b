// SPDX-License-Identifier: Apache-2.0
// The QP engine with a model of the NIC around the engine, made of random delays: answers to the engine's requests come
// late and in any order that the seam allows, streams idle and stall, and a network between two nodes loses, duplicates
// and reorders packets. The reference model compares each step with the transport core.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>

#include "rtl/cosim/input_queues.h"
#include "rtl/cosim/lockstep.h"
#include "rtl/cosim/verilated_engine.h"

namespace rnicsim::rtl::test {

struct Packet {
  bool is_request = false;
  std::uint8_t slot = 0;
  std::uint8_t opcode = 0;
  std::uint32_t psn = 0;
  bool ack_request = false;
  std::uint16_t bytes = 0;
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;
  std::uint8_t syndrome = 0x1f;
  std::uint64_t original = 0;
};

// Chances are per 1000.
struct Weather {
  unsigned seed = 1;
  unsigned slots = 16;
  unsigned lost = 0;
  unsigned doubled = 0;
  unsigned reordered = 0;
  unsigned spoiled = 0;     // a copy with one random change is sent beside the packet
  unsigned no_receive = 0;  // no receive WQE is posted: RNR NAK
  unsigned stalled = 0;     // a record is not taken in a cycle
  unsigned idle = 0;        // no new input is offered in a cycle
  unsigned errors = 0;      // per 100,000: a key does not fit, or memory is unreachable
  unsigned delay = 60;      // most cycles until the NIC answers
  std::uint8_t mtu = 1;     // enum ibv_mtu
  std::uint32_t longest = 1500;
  std::uint8_t timeout = 3;
};

class Node {
 public:
  using Send = std::function<void(const Packet&)>;
  using Failed = std::function<void(std::uint8_t slot)>;
  Node(const Weather& weather, unsigned seed, Send send, Failed failed)
      : weather_(weather), random_(seed), send_(std::move(send)), failed_(std::move(failed)) {}

  // Starts a queue pair; a previous use of the slot ends first.
  void start(std::uint8_t slot, std::uint32_t psn, std::uint32_t peer_psn);
  void stop_posting() { posting_ = false; }
  void tick();
  void receive(const Packet& packet);

  bool idle() const;
  std::uint64_t completed() const { return completed_; }
  const Lockstep& reference_model() const { return reference_model_; }
  const VerilatedEngine& engine() const { return engine_; }
  const std::map<std::uint8_t, std::uint64_t>& opcodes() const { return opcodes_; }  // packets sent, by opcode
  const std::map<Outcome, std::uint64_t>& outcomes() const { return outcomes_; }
  const std::map<Verdict, std::uint64_t>& verdicts() const { return verdicts_; }
  std::uint64_t packets() const { return packets_; }

 private:
  struct Leaving {
    std::uint64_t at;
    Packet packet;
    std::uint32_t end_psn;
    std::uint8_t message;
  };
  struct Slot {
    std::uint64_t life = 0;
    unsigned resets = 0;  // sides (send, answer) whose reset is not complete
    unsigned outstanding = 0;
    bool failing = false;
    std::deque<Packet> inbound;
    bool asked = false;  // the first packet is being checked, or a lookup for the packet is pending
    bool waits = false;  // waits for an event
    Request offer;
    std::deque<Leaving> requests, answers;
  };

  bool chance(unsigned of_1000) { return random_() % 1000 < of_1000; }
  bool error() { return random_() % 100'000 < weather_.errors; }
  std::uint64_t draw() { return cycle_ + 1 + random_() % weather_.delay; }
  void later(std::uint8_t slot, std::function<void()> action);
  void post();
  void pump(std::uint8_t slot);
  void take(const SendRecord& record);
  void take(const AnswerRecord& record);
  void validated(const AnswerRecord& record);
  void leave(std::uint8_t slot);
  void fail(std::uint8_t slot);

  const Weather weather_;
  std::minstd_rand random_;
  const Send send_;
  const Failed failed_;
  VerilatedEngine engine_;
  Lockstep reference_model_;
  InputQueues queues_;
  std::array<Slot, kSlots> slots_;
  std::multimap<std::uint64_t, std::function<void()>> agenda_;
  bool posting_ = true;
  std::uint64_t cycle_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t packets_ = 0;
  std::map<std::uint8_t, std::uint64_t> opcodes_;
  std::map<Outcome, std::uint64_t> outcomes_;
  std::map<Verdict, std::uint64_t> verdicts_;
};

// Two nodes. Each queue pair is connected to the queue pair with the same number on the other node.
class Network {
 public:
  explicit Network(const Weather& weather);
  // Runs until `messages` messages are complete and both nodes are idle. False: no progress for long, or a mismatch.
  bool run(std::uint64_t messages);
  Node& node(int number) { return number == 0 ? a_ : b_; }
  std::uint64_t cycle() const { return cycle_; }

 private:
  void carry(Node& to, const Packet& packet);
  Packet spoil(Packet packet);
  void broke(std::uint8_t slot);
  void restart(std::uint8_t slot);

  const Weather weather_;
  std::minstd_rand random_;
  std::multimap<std::uint64_t, std::pair<Node*, Packet>> flying_;
  std::map<std::uint8_t, std::uint64_t> broken_;  // failed queue pairs, and the cycle at which each restarts
  Node a_, b_;
  std::uint64_t cycle_ = 0;
};

}  // namespace rnicsim::rtl::test
