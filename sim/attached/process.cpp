#include "sim/attached/process.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

namespace rnicsim::sim {
namespace {

constexpr std::size_t kMostPendingBytes = 1 << 20;
constexpr std::size_t kMostPendingWrites = 512;  // below IOV_MAX

}  // namespace

Process::Process(Identity identity, Descriptor socket)
    : identity_(std::move(identity)),
      socket_(std::move(socket)),
      pid_descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, identity_.pid, 0))) {
  share_memory();
}

void Process::share_memory() {
  control_ = std::make_unique<SharedMemory>("rnicsim-control", abi::kControlBytes);
  memory_ = std::make_unique<SharedMemory>("rnicsim-memory", abi::kMemoryBytes);
}

std::string Process::label() const {
  return fmt::format("{} (pid {})", identity_.program, identity_.virtual_pid);
}

abi::ControlHeader& Process::header() const {
  return *reinterpret_cast<abi::ControlHeader*>(control_->data() + abi::kControlHeader);
}
abi::ThreadSlot& Process::slot(std::uint32_t index) const {
  return reinterpret_cast<abi::ThreadSlot*>(control_->data() + abi::kThreadSlots)[index];
}

bool Process::has_exited() const {
  pollfd watched{pid_descriptor_.get(), POLLIN, 0};
  return !pid_descriptor_ || ::poll(&watched, 1, 0) == 1;
}

void Process::kill() const { ::syscall(SYS_pidfd_send_signal, pid_descriptor_.get(), SIGKILL, nullptr, 0); }

std::optional<std::string> Process::disturbance() const {
  if (std::atomic_ref(header().signals_sent).load(std::memory_order_relaxed) != 0)
    return label() + ": a signal was sent between processes";
  if (const auto call = std::atomic_ref(header().real_call).load(std::memory_order_relaxed); call != 0)
    return fmt::format("{}: system call {}, by number, is not simulated", label(), call - 1);
  return std::nullopt;
}

void Process::release() {
  contexts.clear();
  memory_.reset();
  control_->close_descriptor();
  pid_descriptor_.reset();
  socket_.reset();
}

void Process::replace_image(Descriptor socket, std::string program) {
  pending_.clear();
  pending_bytes_.clear();
  descriptors_.clear();
  contexts.clear();
  socket_ = std::move(socket);
  identity_.program = std::move(program);
  threads.clear();
  share_memory();
}

// They travel in the order in which threads made their calls, which need not be that in which the calls are executed.
std::vector<Descriptor> Process::receive_descriptors(std::uint32_t slot) {
  while (receive_message()) {
  }
  const auto found = descriptors_.find(slot);
  if (found == descriptors_.end()) return {};
  auto result = std::move(found->second);
  descriptors_.erase(found);
  return result;
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
  // A thread makes one call at a time; what an earlier one did not take is closed.
  const bool valid = got == ssize_t(sizeof announcement) && announcement.slot < abi::kMaxThreads;
  if (valid && !descriptors.empty()) descriptors_[announcement.slot] = std::move(descriptors);
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

// A message with descriptors belongs to a call, and stays for it.
void Process::drain_kicks() {
  abi::DescriptorMessage message;
  while (::recv(socket_.get(), &message, sizeof message, MSG_DONTWAIT | MSG_PEEK) == ssize_t(sizeof message) &&
         message.count == 0)
    ::recv(socket_.get(), &message, sizeof message, MSG_DONTWAIT);
}

std::byte* Process::shared(std::uint64_t address, std::uint64_t bytes) const {
  if (address < abi::kMemoryAddress || address - abi::kMemoryAddress > abi::kMemoryBytes) return nullptr;
  const std::uint64_t offset = address - abi::kMemoryAddress;
  return bytes <= abi::kMemoryBytes - offset ? memory_->data() + offset : nullptr;
}

bool Process::read(std::uint64_t address, std::span<std::byte> bytes) {
  if (!alive) return false;
  if (const std::byte* from = shared(address, bytes.size())) {
    std::memcpy(bytes.data(), from, bytes.size());
    return true;
  }
  flush_writes();
  const iovec local{bytes.data(), bytes.size()};
  const iovec remote{reinterpret_cast<void*>(address), bytes.size()};
  return ::process_vm_readv(identity_.pid, &local, 1, &remote, 1, 0) == ssize_t(bytes.size());
}

bool Process::write(std::uint64_t address, std::span<const std::byte> bytes) {
  if (!alive) return false;
  if (std::byte* to = shared(address, bytes.size())) {
    // The last byte tells the reader that the entry is whole (owner of a CQE or EQE).
    if (bytes.size() > 1) std::memcpy(to, bytes.data(), bytes.size() - 1);
    if (!bytes.empty())
      std::atomic_ref(to[bytes.size() - 1]).store(bytes.back(), std::memory_order_release);
    return true;
  }
  pending_.push_back({address, pending_bytes_.size(), bytes.size()});
  pending_bytes_.insert(pending_bytes_.end(), bytes.begin(), bytes.end());
  if (write_at_once_ || pending_bytes_.size() >= kMostPendingBytes || pending_.size() >= kMostPendingWrites)
    flush_writes();
  return true;
}

void Process::flush_writes() {
  if (pending_.empty()) return;
  std::array<iovec, kMostPendingWrites> local;
  std::array<iovec, kMostPendingWrites> remote;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    local[i] = {pending_bytes_.data() + pending_[i].offset, pending_[i].bytes};
    remote[i] = {reinterpret_cast<void*>(pending_[i].address), pending_[i].bytes};
  }
  for (std::size_t first = 0; first < pending_.size() && alive;) {
    const std::size_t count = pending_.size() - first;
    ssize_t written = ::process_vm_writev(identity_.pid, &local[first], count, &remote[first], count, 0);
    // A partial write stops at the first range that is not there: the rest goes on after it.
    while (first < pending_.size() && written >= ssize_t(pending_[first].bytes))
      written -= ssize_t(pending_[first++].bytes);
    if (first == pending_.size() || has_exited()) break;
    if (lost_write) lost_write(pending_[first].address, pending_[first].bytes);
    ++first;
  }
  pending_.clear();
  pending_bytes_.clear();
}

}  // namespace rnicsim::sim
