// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/processes/process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

namespace rnicsim::sim {
Process::Process(Identity identity, Descriptor socket)
    : identity_(std::move(identity)),
      socket_(std::move(socket)),
      pid_descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, identity_.pid, 0))) {
  share_memory();
}

void Process::share_memory() {
  control_ = std::make_unique<SharedMemory>("rnicsim-control", abi::kControlBytes);
  memory_ = std::make_unique<SharedMemory>("rnicsim-memory", abi::kMemoryBytes);
  address_space_ = std::make_unique<ProcessMemory>(identity_.pid, pid_descriptor_, *memory_);
}

std::string Process::label() const { return fmt::format("{} (pid {})", identity_.program, identity_.virtual_pid); }

abi::ControlHeader& Process::header() const {
  return *reinterpret_cast<abi::ControlHeader*>(control_->data() + abi::kControlHeader);
}
abi::ThreadSlot& Process::slot(std::uint32_t index) const {
  return reinterpret_cast<abi::ThreadSlot*>(control_->data() + abi::kThreadSlots)[index];
}

void Process::kill() const { ::syscall(SYS_pidfd_send_signal, pid_descriptor_.get(), SIGKILL, nullptr, 0); }

std::optional<std::string> Process::disturbance() const {
  if (std::atomic_ref(header().signals_sent).load(std::memory_order_relaxed) != 0)
    return label() + ": a signal was sent between processes";
  if (const auto call = std::atomic_ref(header().real_call).load(std::memory_order_relaxed); call != 0)
    return fmt::format("{}: system call {} is not simulated", label(), call - 1);
  return std::nullopt;
}

void Process::release() {
  contexts.clear();
  domains.clear();
  channels.clear();
  address_space_->end();
  control_->close_descriptor();
  pid_descriptor_.reset();
  socket_.reset();
}

void Process::forget_memory(std::size_t image) { (image < former_.size() ? former_[image].memory : memory_).reset(); }

void Process::replace_image(Descriptor socket, std::string program) {
  address_space_->end();
  former_.push_back({std::move(memory_), std::move(address_space_)});
  descriptors_.clear();
  contexts.clear();
  domains.clear();
  channels.clear();
  socket_ = std::move(socket);
  identity_.program = std::move(program);
  threads.clear();
  share_memory();
}

// Descriptors arrive in the order of the threads' calls, which may differ from the order of execution.
std::vector<Descriptor> Process::receive_descriptors(std::uint32_t slot) {
  // Only the messages that are there now: a program may send without end.
  for (auto left = unread_messages(); left > 0 && receive_message(); --left) continue;
  const auto found = descriptors_.find(slot);
  if (found == descriptors_.end()) return {};
  auto result = std::move(found->second);
  descriptors_.erase(found);
  return result;
}

// Upper bound of the number of messages; several malformed ones may be shorter than one.
std::size_t Process::unread_messages() const {
  int bytes = 0;
  if (::ioctl(socket_.get(), FIONREAD, &bytes) != 0) return 0;
  return (std::size_t(bytes) + sizeof(abi::DescriptorMessage) - 1) / sizeof(abi::DescriptorMessage);
}

bool Process::receive_message() {
  abi::DescriptorMessage announcement;
  iovec part{&announcement, sizeof announcement};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * abi::kMaxDescriptors)> ancillary;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.data();
  message.msg_controllen = ancillary.size();
  const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got <= 0) return false;
  std::vector<Descriptor> descriptors;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  // A thread makes one call at a time: descriptors that an earlier call did not take are closed. A message whose
  // descriptors arrived in part (the simulator has none left) is dropped.
  const bool valid = got == ssize_t(sizeof announcement) && announcement.slot < abi::kMaxThreads;
  if (!valid || announcement.count == 0) return true;
  descriptors_.erase(announcement.slot);
  if (announcement.count == descriptors.size()) descriptors_[announcement.slot] = std::move(descriptors);
  return true;
}

bool Process::send_descriptor(int fd) {
  abi::DescriptorMessage announcement;
  announcement.count = 1;
  iovec part{&announcement, sizeof announcement};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fd)> ancillary{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.data();
  message.msg_controllen = ancillary.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) == ssize_t(sizeof announcement);
}

// A message with descriptors belongs to a call and stays in the socket.
void Process::drain_kicks() {
  abi::DescriptorMessage message;
  for (auto left = unread_messages(); left > 0; --left) {
    const ssize_t got = ::recv(socket_.get(), &message, sizeof message, MSG_DONTWAIT | MSG_PEEK);
    if (got != ssize_t(sizeof message) || message.count != 0) return;
    ::recv(socket_.get(), &message, sizeof message, MSG_DONTWAIT);
  }
}

std::function<Thread*()> waiting_thread(Thread& thread, ThreadState state) {
  return [process = thread.process, index = thread.index, state]() -> Thread* {
    if (!process->alive || index >= process->threads.size()) return nullptr;
    Thread& thread = process->threads[index];
    return thread.state == state ? &thread : nullptr;
  };
}

}  // namespace rnicsim::sim
