// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/vm/common_network.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "sim/os/throw_errno.h"

namespace rnicsim::sim {
namespace {

std::string stream_end(const std::string& name, const Descriptor& end) {
  return fmt::format("stream,id={},server=off,addr.type=fd,addr.str={}", name, end.get());
}

}  // namespace

CommonNetwork::Wire CommonNetwork::make_wire(int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) throw_errno("socketpair");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

CommonNetwork::CommonNetwork(std::vector<std::string> macs, Descriptor wire)
    : macs_(std::move(macs)), outside_(std::move(wire)) {
  for (std::size_t guest = 1; guest < macs_.size(); ++guest) wires_.push_back(make_wire(SOCK_STREAM));
  if (wires_.empty() && !outside_) lone_end_ = make_wire(SOCK_DGRAM).at_guest;
}

DeviceArguments CommonNetwork::arguments(std::size_t guest) {
  DeviceArguments result;
  if (guest > 0) {
    Wire& wire = wires_[guest - 1];
    result.words = {"-netdev", stream_end("port", wire.at_guest)};
    result.inherited.push_back(std::move(wire.at_guest));
  } else if (lone_end_) {
    result.words = {"-netdev", fmt::format("dgram,id=port,local.type=fd,local.str={}", lone_end_.get())};
    result.inherited.push_back(std::move(lone_end_));
  } else {
    result = hub();
  }
  result.words.insert(result.words.end(), {"-device", fmt::format("vmxnet3,netdev=port,mac={}", macs_[guest])});
  return result;
}

DeviceArguments CommonNetwork::hub() {
  DeviceArguments result;
  const auto add = [&result](const std::string& name, Descriptor& end) {
    result.words.insert(result.words.end(), {"-netdev", stream_end(name, end), "-netdev",
                                             fmt::format("hubport,id=hub-{},hubid=0,netdev={}", name, name)});
    result.inherited.push_back(std::move(end));
  };
  for (std::size_t i = 0; i < wires_.size(); ++i) add(fmt::format("wire{}", i + 1), wires_[i].at_hub);
  if (outside_) add("outside", outside_);
  result.words.insert(result.words.end(), {"-netdev", "hubport,id=port,hubid=0"});
  return result;
}

// Only waits: the QEMU processes carry the frames.
void CommonNetwork::work(std::vector<pollfd>& watched, std::chrono::milliseconds longest) {
  if (::poll(watched.data(), watched.size(), int(longest.count())) >= 0) return;
  if (errno != EINTR) throw_errno("poll");
  for (auto& one : watched) one.revents = 0;
}

}  // namespace rnicsim::sim
