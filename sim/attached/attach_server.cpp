#include "sim/attached/attach_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>
#include <system_error>

#include "sim/attached/process.h"

namespace rnicsim::sim {
namespace {

constexpr int kPollMs = 1;

// Not guessable, and of a fixed length: programs hold it in their environment.
std::string random_name() {
  std::random_device device;
  return fmt::format("rnicsim-{:08x}{:08x}", device(), device());
}

pid_t parent_of(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(stat, line);
  const auto end = line.rfind(") ");
  if (end == std::string::npos || line.size() < end + 5) return 0;
  return pid_t(std::strtol(line.c_str() + end + 4, nullptr, 10));
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

}  // namespace

AttachServer::AttachServer(std::optional<std::string> name)
    : name_(name ? *name : random_name()),
      listener_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name_.empty() || name_.size() >= sizeof address.sun_path) throw std::invalid_argument("bad socket name");
  std::memcpy(address.sun_path + 1, name_.data(), name_.size());
  const auto bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
  if (!listener_ || ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      ::listen(listener_.get(), 128) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot listen for programs at " + name_);
}

bool AttachServer::has_visitors() const {
  pollfd watched{listener_.get(), POLLIN, 0};
  return !guests_.empty() || !silent_.empty() || ::poll(&watched, 1, 0) == 1;
}

void AttachServer::accept_all(int timeout_ms) {
  std::vector<pollfd> watched{{listener_.get(), POLLIN, 0}};
  for (const Descriptor& socket : silent_) watched.push_back({socket.get(), POLLIN, 0});
  if (::poll(watched.data(), nfds_t(watched.size()), timeout_ms) <= 0) return;
  for (int fd; (fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) silent_.emplace_back(fd);
  std::vector<Descriptor> still_silent;
  for (Descriptor& socket : silent_) {
    pollfd ready{socket.get(), POLLIN, 0};
    if (::poll(&ready, 1, 0) == 0) {
      still_silent.push_back(std::move(socket));
    } else if (auto guest = greet(std::move(socket))) {
      guests_.push_back(std::move(*guest));
    }
  }
  silent_ = std::move(still_silent);
}

// Whatever a stranger writes, the simulator goes on; a wrong hello gets a welcome that says what is wrong.
std::optional<Guest> AttachServer::greet(Descriptor socket) {
  Guest guest;
  guest.socket = std::move(socket);
  const ssize_t got = ::recv(guest.socket.get(), &guest.hello, sizeof guest.hello, MSG_DONTWAIT | MSG_TRUNC);
  if (got <= 0) return std::nullopt;
  guest.hello.host[sizeof guest.hello.host - 1] = 0;
  guest.hello.program[sizeof guest.hello.program - 1] = 0;
  ucred peer{};
  socklen_t length = sizeof peer;
  ::getsockopt(guest.socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length);
  const auto refuse_because = [&](int error, std::string why) {
    spdlog::warn("refused a process that wants to attach (pid {}): {}", peer.pid, why);
    refuse(guest, error, why);
    return std::nullopt;
  };
  if (got != ssize_t(sizeof guest.hello) || guest.hello.magic != abi::kAttachMagic)
    return refuse_because(EPROTO, "malformed hello");
  if (guest.hello.major != abi::kAttachMajor)
    return refuse_because(EPROTONOSUPPORT, fmt::format("attach protocol version {} wanted, this is {}",
                                                       guest.hello.major, abi::kAttachMajor));
  if (peer.uid != ::geteuid()) return refuse_because(EPERM, "another user's simulator");
  if (pid_t(guest.hello.pid) != peer.pid) return refuse_because(EPERM, "the hello names another process");
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
  abi::Welcome welcome;
  welcome.error = error;
  why.copy(welcome.message, sizeof welcome.message - 1);
  send_welcome(guest.socket.get(), welcome, {});
}

void AttachServer::welcome(const Process& process) {
  abi::Welcome welcome;
  welcome.control_bytes = process.control().size();
  welcome.memory_bytes = process.memory().size();
  const int descriptors[] = {process.control().descriptor(), process.memory().descriptor()};
  send_welcome(process.socket(), welcome, descriptors);
}

}  // namespace rnicsim::sim
