// Drives an engine through its seam with the requests of a capture. Every transaction is answered at once, from the
// implied environment; the next request comes when the engine is at rest. Time passes only for an engine that takes
// some.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "model/nic/qp_engine.h"
#include "sim/engine_choice.h"
#include "sim/replay/comparer.h"
#include "sim/replay/environment.h"
#include "sim/replay/memory.h"

namespace rnicsim::sim::replay {

// Bytes of READ responses and atomics' originals: either the engine had written them, or the capture's answer is the
// only witness of what stood there.
struct MemoryUse {
  std::uint64_t checked = 0;
  std::uint64_t learnt = 0;
};

class Driver {
 public:
  // Binds the engine's outputs: one driver an engine. `made_by`: whose mismatch ends the run.
  Driver(nic::QpEngine& engine, const Environment& environment, const Engines* made_by = nullptr);
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Creates the QPs and feeds every request, in capture order. Answers by QP, as in Environment::qps. EngineMismatch.
  std::vector<std::vector<Answer>> run();

  const MemoryUse& memory_use() const { return memory_use_; }

 private:
  struct Side {  // of a QP: what the host would keep
    const QpEnvironment* qp = nullptr;
    abi::Qpc context;
    std::vector<std::uint32_t> receives;  // bytes of each receive WQE ever posted
    std::vector<Answer> answers;
  };

  void bind();
  void connect(Side& side);
  void command(Side& side, nic::QpCommand::Kind kind, std::optional<abi::QpState> to, std::uint32_t attributes);
  void feed(Side& side, const Request& request);
  void settle();
  void later(std::function<void()> answer) { pending_.push_back(std::move(answer)); }
  Side& side_of(roce::Qpn qpn);

  void learn(const Side& side, const Request& request);
  nic::WqeBytes fetch(const nic::WqeFetch& fetch);
  nic::AccessResult check(const nic::Region& region) const;
  nic::AccessResult check_request(const nic::AccessCheck& request) const;
  nic::AccessResult scatter(const nic::Scatter& request);
  nic::DmaDone gather(const nic::Gather& request);
  nic::AtomicDone atomic(const nic::Atomic& request);
  void count(std::size_t bytes, std::size_t written);

  nic::QpEngine& engine_;
  const Environment& environment_;
  const Engines* const made_by_;
  Memory memory_;
  MemoryUse memory_use_;
  std::map<std::uint32_t, Side> sides_;  // by QPN
  std::map<std::uint32_t, abi::Qpc> written_back_;
  std::deque<std::function<void()>> pending_;
  const Request* current_ = nullptr;  // that the engine is working on
  std::uint32_t current_mtu_ = 0;
  nic::Tag next_tag_ = 1;
  std::optional<nic::QpCommandDone> command_done_;
};

}  // namespace rnicsim::sim::replay
