// SPDX-License-Identifier: Apache-2.0
// A requester and a responder over a channel that loses, duplicates and reorders: every posted request completes
// exactly once, in order, with the right bytes.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

#include "model/roce/completer.h"
#include "model/roce/requester.h"
#include "model/roce/responders/responder.h"

namespace rnicsim::roce::property_test {
namespace {

// Every run has the same cases; RC_PARAMS in the environment selects others.
[[maybe_unused]] const int seeded = ::setenv("RC_PARAMS", "seed=1", 0);

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kMtu = 256;
constexpr std::uint8_t kRdAtomic = 3;
constexpr std::uint8_t kPatience = 255;  // retries: the property concerns delivery, not exhausted retries
constexpr std::uint32_t kWriteBase = 1 << 20, kReadBase = 2 << 20, kCounter = 3 << 20;

std::uint8_t read_byte(std::uint64_t address) { return static_cast<std::uint8_t>(address * 31 >> 3); }

struct Posted {
  SendOperation operation;
  std::uint32_t length;
  bool with_extra;  // immediate data, or a key to invalidate, if the operation allows it
  bool fence;
};

struct Trouble {
  int lose;  // of 100 packets
  int duplicate;
  int reorder;    // most positions, in packets
  int not_ready;  // of 100 checks of the receive queue
  LossRecovery recovery{};
  int not_kept = 0;  // of 100 packets that could be kept
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint32_t below(std::uint32_t limit) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 33) % limit;
  }
  bool percent(int chance) { return static_cast<int>(below(100)) < chance; }

 private:
  std::uint64_t state_;
};

struct Wire {
  Headers headers;
  Bytes payload;
};

// Packets in flight in one direction, in order of arrival.
class Channel {
 public:
  Channel(Random& random, const Trouble& trouble) : random_(random), trouble_(trouble) {}
  void send(const Wire& packet) {
    ++clock_;
    if (random_.percent(trouble_.lose)) return;
    const auto place = [&] { return clock_ + (trouble_.reorder == 0 ? 0 : random_.below(trouble_.reorder)); };
    under_way_.emplace(place(), packet);
    if (random_.percent(trouble_.duplicate)) under_way_.emplace(place() + random_.below(40), packet);
  }
  bool empty() const { return under_way_.empty(); }
  Wire take() {
    auto first = under_way_.begin();
    auto packet = std::move(first->second);
    under_way_.erase(first);
    return packet;
  }

 private:
  Random& random_;
  const Trouble& trouble_;
  std::uint64_t clock_ = 0;
  std::multimap<std::uint64_t, Wire> under_way_;
};

class Pair {
 public:
  Pair(const std::vector<Posted>& posts, const Trouble& trouble, std::uint64_t seed, Psn first)
      : posts_(posts), trouble_(trouble), random_(seed) {
    window_.start({.remote = {1},
                   .mtu = kMtu,
                   .max_rd_atomic = kRdAtomic,
                   .retry_count = kPatience,
                   .rnr_retry = 7,
                   .recovery = trouble.recovery},
                  first);
    responder_.start({.mtu = kMtu,
                      .access = remote_access::kWrite | remote_access::kRead | remote_access::kAtomic,
                      .max_dest_rd_atomic = kRdAtomic,
                      .min_rnr_timer = 1,
                      .recovery = trouble.recovery},
                     first);
    for (std::size_t id = 0; id < posts_.size(); ++id) post(id);
  }

  void run() {
    std::uint64_t idle = 0;
    while (!window_.messages.empty() && idle < 100'000) {
      switch (random_.below(3)) {
        case 0: send(); break;
        case 1:
          if (!requests_.empty()) serve(requests_.take());
          break;
        default:
          if (!answers_.empty()) take(answers_.take());
          break;
      }
      collect();
      const bool quiet = requests_.empty() && answers_.empty() && !requester_.can_send();
      if (!quiet) continue;
      ++idle;
      window_.rnr_waiting ? requester_.rnr_timeout() : void(requester_.ack_timeout(false));
    }
    // Old packets in flight change nothing.
    while (!requests_.empty()) serve(requests_.take());
    while (!answers_.empty()) take(answers_.take());
  }

  void check() const {
    RC_ASSERT(completed_.size() == posts_.size());
    std::vector<Bytes> sent;
    std::uint64_t counter = 0;
    for (std::size_t id = 0; id < posts_.size(); ++id) {
      const auto& post = posts_[id];
      RC_ASSERT(completed_[id].id == id);
      RC_ASSERT(completed_[id].status == Status::success);
      if (post.operation == SendOperation::send) sent.push_back(content(id));
      if (post.operation == SendOperation::read) RC_ASSERT(read_.at(id) == read_content(id));
      if (post.operation != SendOperation::fetch_add) continue;
      RC_ASSERT(originals_.at(id) == counter);
      counter += id + 1;
    }
    RC_ASSERT(received_ == sent);
    RC_ASSERT(receives_taken_ == sent.size());
    RC_ASSERT(counter_ == counter);
    for (std::size_t id = 0; id < posts_.size(); ++id)
      if (is_write(posts_[id].operation) && posts_[id].length != 0) RC_ASSERT(written_.at(id) == content(id));
    RC_ASSERT(write_notices_ == expected_notices());
    RC_ASSERT(requester_.drained());
  }

 private:
  static bool is_write(SendOperation operation) {
    return operation == SendOperation::write || operation == SendOperation::atomic_write;
  }
  Bytes content(std::size_t id) const {
    Bytes bytes(posts_[id].length);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(id * 7 + i * 13 + (i >> 8));
    return bytes;
  }
  Bytes read_content(std::size_t id) const {
    Bytes bytes(posts_[id].length);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = read_byte(address_of(id) + i);
    return bytes;
  }
  std::uint64_t address_of(std::size_t id) const {
    switch (posts_[id].operation) {
      case SendOperation::write:
      case SendOperation::atomic_write: return (std::uint64_t{id} << 32) + kWriteBase;
      case SendOperation::read: return kReadBase + id;
      default: return kCounter;
    }
  }
  std::vector<std::uint32_t> expected_notices() const {
    std::vector<std::uint32_t> notices;
    for (std::size_t id = 0; id < posts_.size(); ++id)
      if (posts_[id].operation == SendOperation::write && posts_[id].with_extra) notices.push_back(id);
    return notices;
  }

  void post(std::size_t id) {
    const auto& from = posts_[id];
    SendRequest request{.id = id,
                        .operation = from.operation,
                        .length = from.length,
                        .remote_address = address_of(id),
                        .rkey = {5},
                        .swap_add = id + 1,
                        .fence = from.fence};
    if (from.with_extra && from.operation == SendOperation::write) request.immediate = id;
    if (from.with_extra && from.operation == SendOperation::send) {
      if (id % 2 == 0) request.immediate = id;
      if (id % 2 == 1) request.invalidate = Rkey{static_cast<std::uint32_t>(id)};
    }
    window_.post(request);
    if (from.operation == SendOperation::read) read_[id].resize(from.length);
  }

  void send() {
    const auto packet = requester_.next_packet();
    if (!packet) return;
    const auto all = packet->payload == 0 ? Bytes{} : content(packet->message);
    requests_.send({packet->headers,
                    {all.begin() + packet->offset * (packet->payload != 0),
                     all.begin() + (packet->offset + packet->payload) * (packet->payload != 0)}});
  }

  void serve(const Wire& wire) {
    for (auto next = validate(wire, false); next;) {
      std::erase_if(kept_, [&](const Wire& kept) { return before(psn_of(kept), *next); });
      if (kept_.empty() || psn_of(kept_.front()) != *next) return;
      const auto kept = kept_.front();
      kept_.erase(kept_.begin());
      next = validate(kept, true);
    }
  }
  static Psn psn_of(const Wire& wire) { return wire.headers.bth.psn; }
  // Returns the PSN of a kept packet if it is the next.
  std::optional<Psn> validate(const Wire& wire, bool was_kept) {
    Offer offer{.may_keep = !random_.percent(trouble_.not_kept), .receive_bytes = 1 << 20};
    auto verdict = responder_.receive(wire.headers, wire.payload.size(), offer);
    while (verdict.kind == Verdict::Kind::wants_receive || verdict.kind == Verdict::Kind::wants_access) {
      if (verdict.kind == Verdict::Kind::wants_access) {
        offer.access_granted = true;
      } else {
        offer.receive = random_.percent(trouble_.not_ready) ? Offer::Receive::none : Offer::Receive::available;
      }
      verdict = responder_.receive(wire.headers, wire.payload.size(), offer);
    }
    switch (verdict.kind) {
      case Verdict::Kind::place: place(wire, verdict, was_kept && early_.erase(psn_of(wire).value()) != 0); break;
      case Verdict::Kind::keep: keep(wire, verdict); break;
      case Verdict::Kind::acknowledge: acknowledge(verdict.psn, Aeth::kNoCredits, verdict.msn); break;
      case Verdict::Kind::reject:
        if (was_kept) forget_early(wire);
        acknowledge(verdict.psn, verdict.syndrome, verdict.msn);
        break;
      case Verdict::Kind::read: answer_read(verdict); break;
      case Verdict::Kind::atomic: execute(verdict); break;
      case Verdict::Kind::replay: answer_atomic(verdict.psn, verdict.original, verdict.msn); break;
      default: break;
    }
    return verdict.next_kept;
  }
  void keep(const Wire& wire, const Verdict& verdict) {
    const auto later = [&](const Wire& kept) { return before(psn_of(wire), psn_of(kept)); };
    kept_.insert(std::ranges::find_if(kept_, later), wire);
    if (verdict.range.length != 0) {
      RC_ASSERT(verdict.range.length == wire.payload.size());
      early_[psn_of(wire).value()] = verdict.range.address;
      write(wire, verdict.range.address);
    }
    if (verdict.tells_of_gap) acknowledge(verdict.psn, verdict.syndrome, verdict.msn);
  }
  // No receive was posted at the packet's turn: the packet is sent again, and placed again.
  void forget_early(const Wire& wire) {
    const auto placed = early_.find(psn_of(wire).value());
    if (placed == early_.end()) return;
    const auto offset = static_cast<std::uint32_t>(placed->second) - kWriteBase;
    auto& times = times_written_[placed->second >> 32];
    std::fill_n(times.begin() + offset, wire.payload.size(), 0);
    early_.erase(placed);
  }
  // Each byte is written once, except when messages start again; in order, if nothing is kept.
  void write(const Wire& wire, std::uint64_t address) {
    auto& target = written_[address >> 32];
    const auto offset = static_cast<std::uint32_t>(address) - kWriteBase;
    const bool again = trouble_.recovery.mode == Recovery::go_back_0;
    if (trouble_.recovery.reorder_window == 0 && !again) RC_ASSERT(target.size() == offset);
    auto& bytes = times_written_[address >> 32];
    const auto end = offset + wire.payload.size();
    if (target.size() < end) target.resize(end);
    if (bytes.size() < end) bytes.resize(end);
    std::ranges::copy(wire.payload, target.begin() + offset);
    for (auto at = offset; at < end; ++at) RC_ASSERT(++bytes[at] == 1 || again);
  }
  void place(const Wire& wire, const Verdict& verdict, bool placed_before) {
    if (verdict.to_receive_wqe) {
      if (verdict.offset == 0) receiving_.clear();
      RC_ASSERT(receiving_.size() == verdict.offset);
      receiving_.insert(receiving_.end(), wire.payload.begin(), wire.payload.end());
      if (verdict.completes) received_.push_back(receiving_);
      if (verdict.begins_receive) ++receives_taken_;
    } else if (!wire.payload.empty() && !placed_before) {
      write(wire, verdict.range.address);
    }
    if (!verdict.to_receive_wqe && verdict.completes_receive) write_notices_.push_back(*wire.headers.immediate);
    // An implementation may delay an ACK for a later one, as long as the message's end is acknowledged.
    if (verdict.acknowledge) acknowledge(verdict.psn, Aeth::kNoCredits, verdict.msn);
    if (verdict.answers_read) answer(Opcode::read_response_only, verdict.psn, Aeth::kNoCredits, verdict.msn);
  }
  void execute(const Verdict& verdict) {
    const auto original = counter_;
    counter_ += verdict.atomic->swap_add;
    responder_.atomic_done(verdict.psn, original);
    answer_atomic(verdict.psn, original, verdict.msn);
  }

  void answer(Opcode opcode, Psn psn, std::uint8_t syndrome, std::uint32_t msn, Bytes payload = {},
              std::optional<std::uint64_t> original = {}) {
    Headers headers;
    headers.bth.opcode = opcode;
    headers.bth.psn = psn;
    if (info(opcode).has(header::kAeth)) headers.aeth = Aeth{syndrome, msn};
    headers.atomic_ack = original;
    answers_.send({headers, std::move(payload)});
  }
  void acknowledge(Psn psn, std::uint8_t syndrome, std::uint32_t msn) {
    answer(Opcode::acknowledge, psn, syndrome, msn);
  }
  void answer_atomic(Psn psn, std::uint64_t original, std::uint32_t msn) {
    answer(Opcode::atomic_acknowledge, psn, Aeth::kNoCredits, msn, {}, original);
  }
  void answer_read(const Verdict& verdict) {
    const auto packets = packets_for(verdict.range.length, kMtu);
    for (std::uint32_t i = 0; i < packets; ++i) {
      Bytes payload(std::min(kMtu, verdict.range.length - i * kMtu));
      for (std::size_t at = 0; at < payload.size(); ++at)
        payload[at] = read_byte(verdict.range.address + i * kMtu + at);
      answer(rc_opcode(Operation::read_response, position_of(i, packets)), verdict.psn + i, Aeth::kNoCredits,
             verdict.msn, std::move(payload));
    }
  }

  void take(const Wire& wire) {
    const auto outcome = completer_.receive(wire.headers, wire.payload.size());
    if (!outcome.placement) return;
    const auto id = outcome.placement->message;
    if (outcome.placement->original) {
      RC_ASSERT(originals_.emplace(id, *outcome.placement->original).second);
    } else {
      std::ranges::copy(wire.payload, read_.at(id).begin() + outcome.placement->offset);
    }
    completer_.placed(id, Status::success);
  }
  void collect() {
    while (auto completion = completer_.take_completion()) completed_.push_back(*completion);
  }

  const std::vector<Posted>& posts_;
  const Trouble& trouble_;
  Random random_;
  SendWindow window_;
  Requester requester_{window_};
  Completer completer_{window_};
  Responder responder_;
  Channel requests_{random_, trouble_}, answers_{random_, trouble_};
  Bytes receiving_;
  std::vector<Bytes> received_;
  std::size_t receives_taken_ = 0;
  std::vector<Wire> kept_;                        // in order of PSNs
  std::map<std::uint32_t, std::uint64_t> early_;  // address of payload that was placed early, by PSN
  std::map<std::uint64_t, Bytes> written_, read_, times_written_;
  std::map<std::uint64_t, std::uint64_t> originals_;
  std::uint64_t counter_ = 0;
  std::vector<std::uint32_t> write_notices_;
  std::vector<Completion> completed_;
};

rc::Gen<Posted> posted() {
  using enum SendOperation;
  return rc::gen::map(
      rc::gen::tuple(rc::gen::element(send, write, read, fetch_add, atomic_write),
                     rc::gen::inRange<std::uint32_t>(0, 6 * kMtu), rc::gen::arbitrary<bool>(), rc::gen::inRange(0, 8)),
      [](const auto& values) {
        const auto [operation, length, extra, fence] = values;
        const bool of_a_word = operation == fetch_add || operation == atomic_write;
        return Posted{operation, of_a_word ? kAtomicBytes : length, extra, fence == 0};
      });
}

void prove(const Trouble& trouble) {
  const auto posts = *rc::gen::container<std::vector<Posted>>(posted());
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const auto first = Psn(*rc::gen::element(0u, 0xfffff0u, 0x7ffff0u, 0xffffffu));  // wraps in most runs
  Pair pair(posts, trouble, seed, first);
  pair.run();
  pair.check();
}

}  // namespace

RC_GTEST_PROP(LossyChannel, NothingIsLostOrRepeated, ()) {
  prove({.lose = *rc::gen::inRange(0, 20), .duplicate = 0, .reorder = 0, .not_ready = 0});
}
RC_GTEST_PROP(DuplicatingChannel, NothingIsLostOrRepeated, ()) {
  prove({.lose = 0, .duplicate = *rc::gen::inRange(0, 40), .reorder = 0, .not_ready = 0});
}
RC_GTEST_PROP(ReorderingChannel, NothingIsLostOrRepeated, ()) {
  prove({.lose = 0, .duplicate = 0, .reorder = *rc::gen::inRange(0, 30), .not_ready = 0});
}
RC_GTEST_PROP(SlowReceiver, NothingIsLostOrRepeated, ()) {
  prove({.lose = 0, .duplicate = 0, .reorder = 0, .not_ready = *rc::gen::inRange(0, 60)});
}
RC_GTEST_PROP(WorstChannel, NothingIsLostOrRepeated, ()) {
  prove({.lose = *rc::gen::inRange(0, 15),
         .duplicate = *rc::gen::inRange(0, 30),
         .reorder = *rc::gen::inRange(0, 30),
         .not_ready = *rc::gen::inRange(0, 40)});
}

Trouble worst(const LossRecovery& recovery) {
  return {.lose = *rc::gen::inRange(0, 15),
          .duplicate = *rc::gen::inRange(0, 30),
          .reorder = *rc::gen::inRange(0, 30),
          .not_ready = *rc::gen::inRange(0, 40),
          .recovery = recovery,
          .not_kept = *rc::gen::inRange(0, 40)};
}
LossRecovery recovery_with_window(Recovery mode) {
  const auto window = *rc::gen::inRange<std::uint32_t>(1, 40);
  return {.mode = mode,
          .reorder_window = window,
          .nak_gap = *rc::gen::inRange<std::uint32_t>(0, window + 1),
          .most_in_flight = *rc::gen::inRange<std::uint32_t>(0, 20),
          .reth_in_each = *rc::gen::arbitrary<bool>()};
}
// With losses in every message and packets out of order no message would ever end.
RC_GTEST_PROP(GoBack0, NothingIsLostOrRepeated, ()) {
  prove({.lose = *rc::gen::inRange(0, 10),
         .duplicate = *rc::gen::inRange(0, 30),
         .reorder = 0,
         .not_ready = *rc::gen::inRange(0, 40),
         .recovery = {.mode = Recovery::go_back_0}});
}
RC_GTEST_PROP(KeepingReceiver, NothingIsLostOrRepeated, ()) { prove(worst(recovery_with_window(Recovery::go_back_n))); }
RC_GTEST_PROP(SelectiveRepeat, NothingIsLostOrRepeated, ()) { prove(worst(recovery_with_window(Recovery::selective))); }
RC_GTEST_PROP(SelectiveRepeat, NothingIsLostOrRepeatedWithoutReordering, ()) {
  prove({.lose = *rc::gen::inRange(0, 20),
         .duplicate = 0,
         .reorder = 0,
         .not_ready = 0,
         .recovery = recovery_with_window(Recovery::selective)});
}

RC_GTEST_PROP(PsnWindow, OrderIsThatOfTheDistance, ()) {
  const auto a = Psn(*rc::gen::arbitrary<std::uint32_t>());
  const auto n = *rc::gen::inRange<std::uint32_t>(1, 1u << 23);
  RC_ASSERT(before(a, a + n));
  RC_ASSERT(!before(a + n, a));
  RC_ASSERT(distance(a, a + n) == static_cast<std::int32_t>(n));
  RC_ASSERT((a + n) - n == a);
}

}  // namespace rnicsim::roce::property_test
