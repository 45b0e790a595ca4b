// SPDX-License-Identifier: Apache-2.0
// A workload: the work of the agents of `rnicsim bench`. docs/workloads.md describes all keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/units.h"
#include "sim/bench/raw_options.h"

namespace rnicsim::sim::bench {

using namespace rnicsim::literals;

// lock_write stands for a sequence of operations; reg_mr and connect_qp send no message.
enum class Op : std::uint8_t {
  write,
  write_imm,
  send,
  send_imm,
  read,
  fetch_add,
  cmp_swap,
  lock_write,
  reg_mr,
  connect_qp
};
inline constexpr std::size_t kOps = 10, kPostedOps = 7;

enum class Transport : std::uint8_t { rc, uc, ud, raw, xrc };
inline constexpr std::size_t kTransports = 5;
enum class Connect : std::uint8_t { pairwise, all };
enum class WindowPer : std::uint8_t { qp, thread };
enum class Pick : std::uint8_t { round_robin, random };
enum class Doorbell : std::uint8_t { blueflame, plain };
enum class Uars : std::uint8_t { shared, per_thread };
enum class Addressing : std::uint8_t { fixed, sequential, random, one, stride, slots, zipf };
inline constexpr std::size_t kNamedAddressings = 4;  // the others are given as tables

std::string_view to_string(Op op);
std::string_view to_string(Transport transport);
std::string_view to_string(Connect connect);
std::string_view to_string(WindowPer per);
std::string_view to_string(Pick pick);
std::string_view to_string(Doorbell doorbell);
std::string_view to_string(Uars uars);
std::string_view to_string(Addressing addressing);

inline bool is_atomic(Op op) { return op == Op::fetch_add || op == Op::cmp_swap; }
inline bool takes_receive(Op op) { return op == Op::send || op == Op::send_imm || op == Op::write_imm; }
inline bool may_be_inline(Op op) { return op < Op::read; }

struct MixedOp {
  Op op = Op::write;
  std::uint32_t weight = 1;
  ByteCount size{};
};

// Operations executed one after another: `count` entries of the flow's mix from `first` on.
struct Sequence {
  std::uint32_t first = 0;
  std::uint32_t count = 1;
  std::uint32_t weight = 1;
};

// Rate at which all agents of a flow together post.
struct Pace {
  double operations_per_second = 0;  // 0: `rate` is given
  BitRate rate{};
};

struct Flow {
  std::vector<std::string> from;
  std::vector<std::string> to;
  Transport transport = Transport::rc;
  std::vector<MixedOp> mix;  // one entry: a plain `op`
  bool sequence = false;     // each operation is one of `sequences`
  std::vector<Sequence> sequences;
  std::uint32_t threads = 1;
  std::uint32_t qps = 1;
  Connect connect = Connect::pairwise;
  std::uint32_t window = 1;
  WindowPer window_per = WindowPer::qp;
  Pick pick = Pick::round_robin;
  std::uint32_t batch = 1;
  ByteCount inline_most{};     // longest message that is sent inline
  bool inline_device = false;  // inline_most is the device's limit
  std::uint32_t signal_every = 1;
  WindowPer signal_per = WindowPer::qp;  // WQEs that signal_every counts: of a QP or of a thread
  bool both_ways = false;                // the agents of `to` post, too, on the same QPs
  bool srq = false;                      // the QPs of a receiver share its receives
  bool odp = false;                      // regions on demand
  Doorbell doorbell = Doorbell::blueflame;
  Uars uars = Uars::shared;
  bool ping_pong = false;
  ByteCount recv_inline{};                  // longest message that is received in its completion
  bool recv_inline_device = false;          // recv_inline is the device's limit
  std::optional<std::uint32_t> recv_depth;  // absent: twice the window, and at least 16
  std::uint32_t mrs = 1;
  std::optional<ByteCount> mr_size;  // absent: a place for each QP
  ByteCount page = 4_KiB;
  Addressing address = Addressing::fixed;
  ByteCount stride{};                  // distance of the places; 0: size of a place
  std::optional<std::uint64_t> slots;  // limit of the number of places
  double zipf = 0;
  bool share = false;                          // the receivers of a host share their regions
  std::optional<std::uint32_t> mtu;            // absent: the port's
  std::optional<std::uint32_t> max_rd_atomic;  // absent: the device's
  std::uint32_t dscp = 0;
  std::uint32_t sl = 0;
  std::uint32_t rnr_timer = 12;
  std::uint32_t timeout = 14;
  std::uint32_t retry = 7;
  RawOptions raw;  // for transport = "raw"
  std::optional<Pace> pace;
  Duration start{};
  std::optional<Duration> stop;

  static constexpr std::uint64_t kLockBytes = 8;
  // True: the sequence begins with a lock; its last write frees the lock.
  bool locks(const Sequence& of) const { return mix[of.first].op == Op::cmp_swap; }
  bool locks() const {
    return std::ranges::any_of(sequences, [this](const Sequence& of) { return locks(of); });
  }
  // The flow makes and destroys objects instead of messages: memory regions (registers()) or queue pairs.
  bool registers() const { return mix.front().op == Op::reg_mr; }
  bool churns() const { return registers() || mix.front().op == Op::connect_qp; }

  ByteCount longest() const;
  double mean_bytes() const;  // mean over the operations; a sequence counts with the sum of its operations
  // Bytes of a receiver's memory that a message takes, at most: a datagram with its GRH, a sequence with its lock.
  ByteCount place() const;
  bool takes_receives() const;
  std::uint32_t receives() const {
    return recv_depth.value_or(transport == Transport::raw ? RawOptions::kReceives : window < 8 ? 16 : 2 * window);
  }
};

struct Measure {
  static constexpr Duration kFirstLook = 256_us;

  std::optional<Duration> warmup;    // absent: until the rates are steady
  std::optional<Duration> duration;  // duration or operations; both absent (only without warmup): as long as needed
  std::optional<std::uint64_t> operations;
  Duration limit = kFirstLook * 256;  // limit of the search for steady rates

  bool is_given() const { return duration || operations; }
};

struct Workload {
  std::string file;  // name of the file in messages
  std::uint64_t seed = 1;
  std::string nic = "cx5-100g";
  std::string host;  // a profile; empty: the profile of the NIC or the topology
  std::string topology = "back-to-back";
  std::vector<std::string> sets;    // "nic.pcie.read_latency=600ns"
  std::vector<std::string> faults;  // "drop=1e-3,host=h0"
  Measure measure;
  std::vector<Flow> flows;
};

// "--set" of a workload's own keys. Examples: "flow[0].window=8", "flow.window=8" (all flows), "measure.warmup=1us",
// "seed=3".
bool is_workload_key(std::string_view key_equals_value);
// ConfigError, with the key's path. is_workload_key() accepts all `overrides`.
Workload read_workload(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});

}  // namespace rnicsim::sim::bench
