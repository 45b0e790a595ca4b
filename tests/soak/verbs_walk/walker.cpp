// SPDX-License-Identifier: Apache-2.0
#include "tests/soak/verbs_walk/walker.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "model/host/software_process.h"
#include "verbs/ibverbs/context_options.h"

namespace rnicsim::testing {

Walker::Walker(Town& town, std::uint32_t index, std::uint64_t seed)
    : town_(town),
      index_(index),
      seed_(seed),
      dice_(seed * 1000 + index),
      arena_(index),
      next_id_(std::uint64_t(index) << 48) {
  town_.walkers.push_back(this);
}

// Breaks the cycle of references between peers.
Walker::~Walker() {
  for (const auto& pair : pairs_) {
    pair->peer.reset();
    pair->led.clear();
  }
  for (const auto& queue : work_queues_) queue->led.clear();
}

void Walker::fail(const std::string& what) {
  if (!town_.broken) ADD_FAILURE() << "seed " << seed_ << ", process " << index_ << ", step " << step_ << ": " << what;
  town_.broken = true;
}

bool Walker::expect(const std::string& call, int answer, Errors allowed) {
  return expect(call, answer, std::set<int>(allowed));
}

bool Walker::expect(const std::string& call, int answer, const std::set<int>& allowed) {
  if (allowed.contains(answer)) return true;
  std::string wanted;
  for (const int one : allowed) wanted += " " + std::to_string(one);
  fail(call + " answered " + std::to_string(answer) + ", not" + wanted);
  return false;
}

// Opens two contexts, and creates enough objects in each for some traffic.
void Walker::open(host::SoftwareProcess& process) {
  process_ = &process;
  ibv_device** list = ibv_get_device_list(nullptr);
  for (auto& context : contexts_) {
    context = ibv_open_device(list[0]);
    if (!expect("ibv_open_device", made(context), {0})) return;
    fcntl(context->async_fd, F_SETFL, O_NONBLOCK);
  }
  ibv_free_device_list(list);
  verbs::use_inline_receive(contexts_[kInlineContext], kInlineReceive);
  expect("ibv_query_device", ibv_query_device(contexts_[0], &limits_), {0});
  ibv_device_attr_ex more{};
  expect("ibv_query_device_ex", ibv_query_device_ex(contexts_[0], nullptr, &more), {0});
  device_bytes_ = more.max_dm_size;
  expect("ibv_query_gid", ibv_query_gid(contexts_[0], 1, 1, &gid_), {0});
  for (std::uint32_t context = 0; context < kContexts; ++context) {
    make_domain(context);
    make_region(any_domain(context), true);
    make_queue(context, true);
    make_shared(any_domain(context));
    make_way(any_domain(context));
    for (const auto type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) make_pair(context, type);
    make_frame_objects(context);
    make_extended_objects(context);
  }
}

void Walker::step() {
  ++step_;
  switch (dice_.below(25)) {
    case 22: return dice_.once_in(2) ? make_of_extended() : destroy_of_extended();
    case 23:
    case 24: return post_extended();
    case 20: return dice_.once_in(2) ? make_of_frames() : destroy_of_frames();
    case 21: return make_of_frames();
    case 0: return make_something();
    case 1: return dice_.once_in(2) ? destroy_something() : make_something();
    case 2: return break_something();
    case 3:
    case 4:
    case 5: return move_something();
    case 6:
    case 7:
    case 8:
    case 9:
    case 10:
    case 11: return look();
    case 12: return pass(dice_.between(1, 20'000));
    default: return post_something();
  }
}

}  // namespace rnicsim::testing
