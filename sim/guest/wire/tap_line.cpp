// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/wire/tap_line.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

constexpr char kDevice[] = "/dev/net/tun";
constexpr int kMostFrames = 64;  // limit of one receive()
constexpr std::size_t kMostBytes = 65536 + 64;

}  // namespace

TapLine::TapLine(const std::string& name, WireNotices& notices)
    : name_(name), notices_(notices), tap_(::open(kDevice, O_RDWR | O_NONBLOCK | O_CLOEXEC)) {
  if (!tap_) throw ConfigError(fmt::format("{}: {}", kDevice, std::strerror(errno)));
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  if (::ioctl(tap_.get(), TUNSETIFF, &request) == 0) return;
  const int error = errno;
  throw ConfigError(fmt::format("tap:{}: {}{}", name, std::strerror(error),
                                error == EPERM ? " (`ip tuntap add` by root makes an interface for a user)" : ""));
}

void TapLine::watch(std::vector<pollfd>& watched, bool hears) const {
  if (hears && tap_) watched.push_back({tap_.get(), POLLIN, 0});
}

void TapLine::receive(const Take& take) {
  std::array<std::byte, kMostBytes> buffer;
  for (int frames = 0; frames < kMostFrames && tap_; ++frames) {
    const ssize_t came = ::read(tap_.get(), buffer.data(), buffer.size());
    if (came < 0 && errno == EBADFD) {
      tap_.reset();
      return notices_.tell(WireTrouble::interface_lost, fmt::format("the interface {} has been removed", name_));
    }
    if (came <= 0) return;
    take(std::span(buffer).first(static_cast<std::size_t>(came)));
  }
}

bool TapLine::send(std::span<const std::byte> frame) {
  const bool sent = tap_ && ::write(tap_.get(), frame.data(), frame.size()) >= 0;
  down_ = !sent && errno == EIO;
  return sent;
}

}  // namespace rnicsim::sim
