// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/transactor/qemu_proxy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "sim/guest/transactor/guest_port.h"

namespace rnicsim::sim {
namespace {

enum class Command : std::int32_t {
  sync_memory = 0,
  answer = 1,
  config_write = 2,
  config_read = 3,
  bar_write = 4,
  bar_read = 5,
  set_irqfd = 6,
  reset = 7,
};

struct Header {
  Command command;
  std::uint32_t padding;
  std::uint64_t body_bytes;
};
static_assert(sizeof(Header) == GuestMessage::kHeaderBytes);

constexpr std::size_t kMostRanges = GuestConnection::kMostDescriptors;
struct SyncMemory {
  std::uint64_t address[kMostRanges];
  std::uint64_t bytes[kMostRanges];
  std::int64_t offset[kMostRanges];
};

struct ConfigAccess {
  std::uint32_t offset;
  std::uint32_t value;
  std::int32_t bytes;
};

struct BarAccess {
  std::uint64_t address;
  std::uint64_t value;
  std::uint32_t bytes;
  std::uint8_t memory;
  std::uint8_t padding[3];
};

// QEMU treats this answer as an error.
constexpr std::uint64_t kError = ~0ull;
constexpr int kMostAtOnce = 64;

Header header_of(std::span<const std::byte, GuestMessage::kHeaderBytes> bytes) {
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

std::size_t body_bytes(std::span<const std::byte, GuestMessage::kHeaderBytes> bytes) {
  const auto header = header_of(bytes);
  if (header.body_bytes > sizeof(SyncMemory))
    throw ConnectionLost(fmt::format("QEMU sent a message of {} bytes (command {}), which x-pci-proxy does not have",
                                     header.body_bytes, int(header.command)));
  return header.body_bytes;
}

template <class Body>
Body body_of(const GuestMessage& message) {
  if (message.body.size() < sizeof(Body))
    throw ConnectionLost(fmt::format("QEMU's command {} has {} bytes instead of {}",
                                     int(header_of(message.header).command), message.body.size(), sizeof(Body)));
  Body body;
  std::memcpy(&body, message.body.data(), sizeof body);
  return body;
}

bool is_width(std::uint32_t bytes, std::uint32_t most) {
  return bytes == 1 || bytes == 2 || bytes == 4 || (bytes == 8 && most == 8);
}

}  // namespace

QemuProxy::QemuProxy(GuestPort& port, Descriptor socket, Qtest qtest)
    : port_(port), connection_(std::move(socket), body_bytes), qtest_(std::move(qtest)) {
  port_.interrupt = [this](std::uint64_t address, std::uint32_t data) { qtest_.interrupt(address, data); };
}

QemuProxy::~QemuProxy() { port_.interrupt = nullptr; }

void QemuProxy::watch(std::vector<pollfd>& watched) const {
  watched.push_back({connection_.descriptor(), connection_.events(), 0});
  qtest_.watch(watched);
}

void QemuProxy::serve() {
  qtest_.serve();
  connection_.flush();
  for (int i = 0; i < kMostAtOnce; ++i) {
    const auto message = connection_.receive();
    if (!message) return;
    execute(*message);
  }
}

void QemuProxy::execute(const GuestMessage& message) {
  const auto command = header_of(message.header).command;
  switch (command) {
    case Command::sync_memory: return share_memory(message);
    case Command::config_write: return access_config(message, true);
    case Command::config_read: return access_config(message, false);
    case Command::bar_write: return access_bar(message, true);
    case Command::bar_read: return access_bar(message, false);
    case Command::set_irqfd: return;  // for INTx, which the function does not have
    case Command::reset: port_.reset(); return answer(0);
    case Command::answer: break;
  }
  throw ConnectionLost(fmt::format("QEMU sent command {}, which x-pci-proxy does not have", int(command)));
}

// Each message has the complete list of the guest's memory.
void QemuProxy::share_memory(const GuestMessage& message) {
  const auto memory = body_of<SyncMemory>(message);
  port_.memory().clear();
  for (std::size_t i = 0; i < message.descriptors.size(); ++i) try {
      port_.memory().map(memory.address[i], memory.bytes[i], {.read = true, .write = true}, message.descriptors[i],
                         static_cast<std::uint64_t>(memory.offset[i]));
    } catch (const MapError& error) {
      port_.complain(fmt::format("{} bytes of QEMU's memory at {:#x} cannot be shared: {}", memory.bytes[i],
                                 memory.address[i], error.what()));
    }
}

void QemuProxy::access_config(const GuestMessage& message, bool write) {
  const auto access = body_of<ConfigAccess>(message);
  const auto bytes = static_cast<std::uint32_t>(access.bytes);
  if (!is_width(bytes, 4) || access.offset > port_.config_bytes() - bytes) return answer(kError);
  std::uint32_t value = write ? access.value : 0;
  const auto data = std::as_writable_bytes(std::span(&value, 1)).first(bytes);
  if (write)
    port_.write_config(access.offset, data);
  else
    port_.read_config(access.offset, data);
  answer(write ? 0 : value);
}

// QEMU sends an address of the guest, not an offset in the BAR. A refused read returns ones, as on a bus.
void QemuProxy::access_bar(const GuestMessage& message, bool write) {
  const auto access = body_of<BarAccess>(message);
  if (!is_width(access.bytes, 8)) return answer(kError);
  const std::uint64_t offset = access.address - port_.bar_address();
  std::uint64_t value = write ? access.value : 0;
  const auto data = std::as_writable_bytes(std::span(&value, 1)).first(access.bytes);
  if (write)
    port_.write_bar(offset, data);
  else
    port_.read_bar(offset, data);
  answer(write ? 0 : value);
}

void QemuProxy::answer(std::uint64_t value) {
  const Header header{Command::answer, 0, sizeof value};
  std::array<std::byte, sizeof header + sizeof value> message;
  std::memcpy(message.data(), &header, sizeof header);
  std::memcpy(message.data() + sizeof header, &value, sizeof value);
  connection_.send(message);
}

}  // namespace rnicsim::sim
