// SPDX-License-Identifier: Apache-2.0
// A host of a workload: one thread posts the requests and receives at their times, another takes the completions.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/host/memory/sparse_memory.h"
#include "model/host/software_process.h"
#include "sim/wire_workload/stage.h"
#include "sim/wire_workload/wire_objects.h"

namespace rnicsim::sim {
class System;
}

namespace rnicsim::sim::wire_workload {

// The end of a request.
struct Completion {
  roce::Status status{};
  bool same_bytes = true;  // a READ or an atomic brought the same bytes as in the capture
};

class WireHost {
 public:
  // `memory_at`: address of the host's memory, the same in each run.
  WireHost(System& system, const Workload& workload, std::uint32_t host, std::uintptr_t memory_at, Stage& stage,
           std::vector<WireObjects*>& all);

  WireObjects& objects() { return objects_; }
  const WireObjects& objects() const { return objects_; }
  // nullopt: the request has no completion yet.
  const std::optional<Completion>& completion(std::size_t qp, std::size_t request) const {
    return queues_.at(qp).completions[request];
  }

 private:
  struct Queue {
    std::size_t number = 0;
    std::size_t requests_due = 0, requests_posted = 0, requests_done = 0;
    std::size_t receives_due = 0, receives_posted = 0, receives_done = 0;
    bool is_posting = false;  // one thread posts to the queue; the other thread then does not
    std::vector<std::optional<Completion>> completions;
  };
  struct Step {
    Duration at;
    Queue* queue;
    bool is_receive;
  };

  void body();
  std::vector<Step> steps();
  void post_due(Queue& queue);
  void post_request(Queue& queue);
  std::uint32_t receiver_of(const Request& request) const;
  void post_receive(Queue& queue);
  void take_completions();
  void take(const ibv_wc& completion);

  static constexpr std::size_t kPollMost = 32;

  const Workload& workload_;
  const std::uint32_t host_;
  Stage& stage_;
  std::vector<WireObjects*>& all_;
  WireObjects objects_;
  host::SparseMemory memory_;
  std::map<std::size_t, Queue> queues_;  // by the queue pair's number in the workload
  std::unique_ptr<host::SoftwareProcess> process_;
};

}  // namespace rnicsim::sim::wire_workload
