// SPDX-License-Identifier: Apache-2.0
// For tests of librdmacm alone: a scripted kernel, and a device that only counts its objects.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/abi/context.h"
#include "verbs/port/device_port.h"
#include "verbs/rdmacm/kernel_interface.h"

#include <infiniband/verbs.h>

namespace rnicsim {

namespace kernel = rdmacm::kernel;
using Event = kernel::rdma_ucm_event_resp;

class ScriptedPort : public DevicePort {
 public:
  // --- The script.
  void expect_nothing_left() {
    EXPECT_TRUE(events.empty());
    asked.clear();
    refused.clear();
    reported.clear();
    states.clear();
    on_wait = nullptr;
  }
  void raise(std::uint32_t counted_for, const Event& event) {
    events.push_back({counted_for, event});
    announce(counted_for);
  }
  void announce(std::uint32_t counted_for) {
    const abi::EventRecord record{abi::EventRecord::kConnectionEvent, counted_for};
    ASSERT_EQ(::write(channels_.at(newest_), &record, sizeof record), ssize_t(sizeof record));
  }

  std::vector<std::string> asked;
  std::map<std::string, int> refused;                  // command -> errno
  std::deque<std::pair<std::uint32_t, Event>> events;  // with the id that counts the event
  std::map<std::uint32_t, std::uint32_t> reported;     // number of events, by id or group
  std::vector<abi::QpState> states;                    // states that QPs were moved to
  std::function<void()> on_wait;
  bool names_device = true;
  ibv_qp_type type = IBV_QPT_RC;
  kernel::rdma_ucm_conn_param parameters{};  // of the last connect or accept call
  kernel::rdma_ucm_reject rejection{};
  std::vector<std::byte> option;
  std::uint64_t last_uid = 0;
  std::uint32_t last_id = 0;
  std::uint32_t attached = 0;
  std::uint32_t detached = 0;
  std::uint32_t pds = 0;

  // --- The kernel.
  int rdma_cm(std::uint32_t, std::uint32_t command, std::span<const std::byte> input,
              std::span<std::byte> output) override;

  // --- The device.
  void mmio_write(std::uint32_t, std::span<const std::byte>) override {}
  std::uint64_t mmio_read(std::uint32_t, std::uint32_t) override { return 0; }
  std::byte* allocate(std::size_t bytes, std::size_t alignment) override {
    void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    std::memset(memory, 0, bytes);
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory, std::size_t) override { std::free(memory); }
  int pin(const void*, std::size_t, bool, std::uint64_t&) override { return 0; }
  int unpin(std::uint64_t, std::size_t, bool) override { return 0; }
  int alloc_pd(std::uint32_t& number) override { return ++pds, number = next_++, 0; }
  int dealloc_pd(std::uint32_t) override { return --pds, 0; }
  int alloc_uar(std::uint32_t& page) override { return page = 5, 0; }
  int free_uar(std::uint32_t) override { return 0; }
  int open_context(int, std::uint32_t& number) override { return number = next_++, 0; }
  int import_context(int, std::uint32_t&) override { return EINVAL; }
  int close_context(std::uint32_t) override { return 0; }
  int import_pd(std::uint32_t, std::uint32_t) override { return ENOENT; }
  int open_xrcd(int, int, std::uint32_t&) override { return EOPNOTSUPP; }
  int close_xrcd(std::uint32_t) override { return ENOENT; }
  int open_qp(std::uint32_t, std::uint32_t, std::uint32_t) override { return EINVAL; }
  int command(std::uint32_t, std::span<const std::byte> input, std::span<std::byte> output) override;
  int open_channel(int fd, std::uint32_t& channel) override {
    channel = next_++;
    channels_[channel] = ::dup(fd);
    return 0;
  }
  int close_channel(std::uint32_t channel) override {
    ::close(channels_.at(channel));
    channels_.erase(channel);
    return 0;
  }
  int bind_completions(std::uint32_t, std::uint32_t) override { return 0; }
  int bind_events(std::uint32_t) override { return 0; }
  int refill_channel(std::uint32_t) override { return 0; }
  int port_info(abi::NetworkInterface& host) override { return host.mac[0] = 2, host.mac[5] = 1, 0; }
  int lid_route(std::uint16_t, abi::GidEntry&) override { return ENOENT; }
  int resolve_path(abi::AddressVector&) override { return 0; }
  int gid_entry(std::uint32_t, std::uint32_t index, abi::GidEntry& entry) override {
    entry = {.gid = {0xfe, 0x80}, .index = index, .type = 2, .port = 1};
    return 0;
  }
  std::uint32_t completion_vectors() const override { return 1; }
  void charge(abi::CpuCost, std::uint32_t) override {}
  void wait_visible() override {
    if (on_wait) on_wait();
  }
  void pass_lock(TimedLock&, abi::CpuCost) override {}
  bool wait_for_event(std::uint32_t, int fd, bool) override {
    pollfd readable{.fd = fd, .events = POLLIN};
    return ::poll(&readable, 1, 1000) == 1;
  }

 private:
  int next_event(std::span<std::byte> output);
  void answer_query(std::uint32_t what, std::span<std::byte> output) const;
  void answer_attributes(ibv_qp_state state, std::span<std::byte> output) const;

  std::uint32_t next_ = 3;
  std::map<std::uint32_t, int> channels_;
  std::uint32_t newest_ = 0;  // channel of the last created or migrated id
};

// One port for all tests of a process: an open device stays open.
ScriptedPort& scripted_port();

}  // namespace rnicsim
