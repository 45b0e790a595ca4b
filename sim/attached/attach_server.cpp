// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/attach_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <stdexcept>

#include "model/host/log.h"
#include "sim/attached/native/native_thread.h"
#include "sim/attached/processes/process.h"
#include "sim/config/config_error.h"
#include "sim/os/local_socket.h"
#include "sim/os/throw_errno.h"

namespace rnicsim::sim {
namespace {

constexpr int kPollMs = 1;
// Limits for connections without a hello. A process sends its hello directly after it has connected.
constexpr std::size_t kMostSilent = 32;
constexpr std::chrono::seconds kLongestSilence{20};
// Connections accepted in one pass: a process that connects again and again must not stop the simulator.
constexpr int kMostAccepted = 64;
// Guests that await() has not taken: children not announced by their parents yet, and strangers.
constexpr std::size_t kMostGuests = 256;

bool is_file_name(const std::string& name) { return name.find('/') == name.npos && name != "." && name != ".."; }

// Throws ConfigError with the reason.
[[noreturn]] void refuse_name(const std::string& name, int error) {
  std::string why = std::strerror(error);
  if (error == EADDRINUSE) {
    const auto holder = AttachServer::holder(name);
    why = !holder ? "another process uses this socket name"
          : is_own_user(*holder)
              ? fmt::format("your process {} listens at this socket", holder->pid)
              : fmt::format("process {} of user {} listens at this socket", holder->pid, holder->uid);
  }
  throw ConfigError(fmt::format("cannot listen for programs at {}: {}; set another socket name by {}", name, why,
                                abi::kSocketVariable));
}

void send_welcome(int socket, const abi::Welcome& welcome, std::span<const int> descriptors) {
  iovec part{const_cast<abi::Welcome*>(&welcome), sizeof welcome};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> ancillary{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = ancillary.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void send_refusal(int socket, int error, const std::string& why) {
  abi::Welcome welcome;
  welcome.error = error;
  why.copy(welcome.message, sizeof welcome.message - 1);
  send_welcome(socket, welcome, {});
}

}  // namespace

bool Patience::ends() {
  const auto waited = std::chrono::steady_clock::now() - start_;
  if (!said_ && waited > kLate) {
    host::log_warning(fmt::format("{} has not attached for {} s; all hosts wait for this process, for at most {} s",
                                  who_, kLate.count(), kMost.count()));
    said_ = true;
  }
  return waited > kMost;
}

std::string AttachServer::random_name(const std::string& prefix) {
  std::random_device device;
  return fmt::format("{}{:08x}{:08x}", prefix, device(), device());
}

AttachServer::AttachServer(const std::string& name)
    : name_(name), listener_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  const auto named = abstract_address(name_);
  if (!named || !is_file_name(name_))  // the name is part of the host folders' names
    throw ConfigError(fmt::format("{}: '{}' is not a socket's name: 1 to {} bytes without / are needed",
                                  abi::kSocketVariable, shown(name_), sizeof named->address.sun_path - 1));
  if (!listener_) throw_errno("cannot make a socket");
  if (::bind(listener_.get(), named->get(), named->bytes) != 0 || ::listen(listener_.get(), 128) != 0)
    refuse_name(name_, errno);
}

std::optional<ucred> AttachServer::holder(const std::string& name) {
  const Descriptor visitor = connect_to(name, SOCK_SEQPACKET);
  return visitor ? std::optional(peer_of(visitor.get())) : std::nullopt;
}

bool AttachServer::has_visitors() const {
  pollfd watched{listener_.get(), POLLIN, 0};
  return !guests_.empty() || !visitors_.empty() || ::poll(&watched, 1, 0) == 1;
}

void AttachServer::accept_all(int timeout_ms) {
  std::vector<pollfd> watched{{listener_.get(), POLLIN, 0}};
  for (const Visitor& visitor : visitors_) watched.push_back({visitor.socket.get(), POLLIN, 0});
  if (::poll(watched.data(), nfds_t(watched.size()), timeout_ms) > 0) accept_visitors();
  hear_visitors();
  forget_the_gone();
}

// Every process on this machine can connect.
void AttachServer::accept_visitors() {
  for (int accepted = 0; accepted < kMostAccepted; ++accepted) {
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) {
      const bool is_late = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      // The connection stays pending. The pause keeps the simulator from spinning.
      if (is_late) ::poll(nullptr, 0, kPollMs);
      return;
    }
    const ucred peer = peer_of(socket.get());
    if (!is_own_user(peer)) {
      if (refused_users_.insert(peer.uid).second)
        host::log_warning(
            fmt::format("refused a process that tried to attach (pid {}): the process belongs to user {}; later "
                        "refusals are not reported",
                        peer.pid, peer.uid));
      send_refusal(
          socket.get(), EPERM,
          fmt::format("this simulator belongs to user {}, and refuses programs of user {}", ::geteuid(), peer.uid));
      continue;
    }
    if (visitors_.size() == kMostSilent) visitors_.erase(visitors_.begin());
    visitors_.push_back({std::move(socket), peer.pid, std::chrono::steady_clock::now()});
  }
}

void AttachServer::hear_visitors() {
  std::vector<Visitor> still_silent;
  for (Visitor& visitor : visitors_) {
    pollfd ready{visitor.socket.get(), POLLIN, 0};
    // A signal may interrupt even a poll() with timeout 0.
    if (::poll(&ready, 1, 0) <= 0) {
      if (std::chrono::steady_clock::now() - visitor.since < kLongestSilence)
        still_silent.push_back(std::move(visitor));
    } else if (auto guest = greet(visitor)) {
      guests_.push_back(std::move(*guest));
    }
  }
  visitors_ = std::move(still_silent);
}

// Drops guests that have closed their socket, and the oldest ones beyond kMostGuests.
void AttachServer::forget_the_gone() {
  std::erase_if(guests_, [](const Guest& guest) {
    pollfd left{guest.socket.get(), POLLRDHUP, 0};
    return ::poll(&left, 1, 0) == 1;
  });
  while (guests_.size() > kMostGuests) {
    refuse(guests_.front(), EAGAIN, "too many unexpected processes try to attach");
    guests_.erase(guests_.begin());
  }
}

// Data of an unknown process must not stop the simulator. A wrong hello is answered with a welcome that has an error
// text.
std::optional<Guest> AttachServer::greet(Visitor& visitor) {
  Guest guest;
  guest.socket = std::move(visitor.socket);
  const ssize_t got = ::recv(guest.socket.get(), &guest.hello, sizeof guest.hello, MSG_DONTWAIT | MSG_TRUNC);
  if (got <= 0) return std::nullopt;
  guest.hello.host[sizeof guest.hello.host - 1] = 0;
  guest.hello.program[sizeof guest.hello.program - 1] = 0;
  const auto refuse_because = [&](int error, std::string why) {
    host::log_warning(fmt::format("refused a process that tried to attach (pid {}): {}", visitor.pid, why));
    refuse(guest, error, why);
    return std::nullopt;
  };
  if (got != ssize_t(sizeof guest.hello) || guest.hello.magic != abi::kAttachMagic)
    return refuse_because(EPROTO, "malformed hello");
  if (guest.hello.major != abi::kAttachMajor)
    return refuse_because(EPROTONOSUPPORT,
                          fmt::format("the process needs attach protocol version {}, but this simulator has version {}",
                                      guest.hello.major, abi::kAttachMajor));
  if (pid_t(guest.hello.pid) != visitor.pid) return refuse_because(EPERM, "the hello names another process");
  return guest;
}

std::optional<Guest> AttachServer::await(pid_t pid, pid_t parent, const std::function<bool()>& give_up) {
  for (;;) {
    const auto found = std::ranges::find_if(guests_, [&](const Guest& guest) {
      const auto own = pid_t(guest.hello.pid);
      return pid != 0 ? own == pid : parent_of(own) == parent;
    });
    if (found != guests_.end()) {
      Guest guest = std::move(*found);
      guests_.erase(found);
      return guest;
    }
    if (give_up()) return std::nullopt;
    accept_all(kPollMs);
  }
}

std::optional<Guest> AttachServer::take_stranger(const std::function<bool(pid_t)>& is_process) {
  accept_all(0);
  const auto found = std::ranges::find_if(guests_, [&](const Guest& guest) {
    const auto pid = pid_t(guest.hello.pid);
    return !is_process(pid) && !is_process(parent_of(pid));
  });
  if (found == guests_.end()) return std::nullopt;
  Guest guest = std::move(*found);
  guests_.erase(found);
  return guest;
}

void AttachServer::refuse(Guest& guest, int error, const std::string& why) {
  send_refusal(guest.socket.get(), error, why);
}

void AttachServer::welcome(const Process& process) {
  abi::Welcome welcome;
  welcome.control_bytes = process.control().size();
  welcome.memory_bytes = process.memory().size();
  const int descriptors[] = {process.control().descriptor(), process.memory().descriptor()};
  send_welcome(process.socket(), welcome, descriptors);
}

}  // namespace rnicsim::sim
