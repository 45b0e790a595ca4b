// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/transactor/vfio_user.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/guest/transactor/guest_port.h"
#include "sim/guest/transactor/vfio_user_bodies.h"
#include "sim/results/json.h"

namespace rnicsim::sim {
namespace {

using namespace vfio_user;

constexpr std::uint64_t kMostData = 1 << 20;  // the protocol's default
constexpr std::size_t kMostBody = kMostData + 4096;
constexpr std::size_t kMostDeferred = 1024;
constexpr int kMostAtOnce = 64;

Header header_of(std::span<const std::byte, GuestMessage::kHeaderBytes> bytes) {
  Header header;
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  return header;
}

std::size_t body_bytes(std::span<const std::byte, GuestMessage::kHeaderBytes> bytes) {
  const auto header = header_of(bytes);
  if (header.bytes < sizeof header || header.bytes - sizeof header > kMostBody)
    throw ConnectionLost(
        fmt::format("the client sent a message of {} bytes (command {}), which vfio-user does not have", header.bytes,
                    int(header.command)));
  return header.bytes - sizeof header;
}

bool is_reply(const GuestMessage& message) {
  const auto type = header_of(message.header).flags & Header::kTypeMask;
  if (type > Header::kReply) throw ConnectionLost(fmt::format("the client sent a message of type {}", type));
  return type == Header::kReply;
}

}  // namespace

VfioUser::VfioUser(GuestPort& port, Descriptor socket, std::chrono::milliseconds patience)
    : port_(port),
      connection_(std::move(socket), body_bytes),
      vectors_(port),
      patience_(patience),
      most_data_(kMostData),
      resets_seen_(port.function_resets()) {
  port_.interrupt = [this](std::uint64_t address, std::uint32_t) { vectors_.interrupt(address); };
}

VfioUser::~VfioUser() { port_.interrupt = nullptr; }

void VfioUser::watch(std::vector<pollfd>& watched) const {
  const bool has_work = !deferred_.empty() || !broken_.empty();
  watched.push_back({connection_.descriptor(), short(connection_.events() | (has_work ? POLLOUT : 0)), 0});
}

void VfioUser::serve() {
  connection_.flush();
  for (int i = 0; i < kMostAtOnce; ++i) {
    if (!broken_.empty()) throw ConnectionLost(broken_);
    if (!deferred_.empty()) {
      auto message = std::move(deferred_.front());
      deferred_.pop_front();
      execute(message);
      continue;
    }
    auto message = connection_.receive();
    if (!message) return;
    if (is_reply(*message)) throw ConnectionLost("the client sent an unexpected reply");
    execute(*message);
  }
}

void VfioUser::execute(GuestMessage& message) {
  const auto header = header_of(message.header);
  if (!agreed_ && header.command != Command::version)
    throw ConnectionLost(fmt::format("the client's first message is command {}, not VERSION", int(header.command)));
  try {
    reply(header, answer_to(message), 0);
  } catch (const RequestError& error) {
    // No complaint for EOPNOTSUPP: clients ask for migration routinely.
    if (error.error != EOPNOTSUPP)
      port_.complain(fmt::format("vfio-user command {}: {}", int(header.command), error.what()));
    reply(header, {}, static_cast<std::uint32_t>(error.error));
  }
}

std::vector<std::byte> VfioUser::answer_to(GuestMessage& message) {
  const Bytes body = message.body;
  const auto command = header_of(message.header).command;
  switch (command) {
    case Command::version: return agree_on_version(body);
    case Command::dma_map: return map(message);
    case Command::dma_unmap: return unmap(body);
    case Command::get_info:
      query_of<DeviceInfo>(body);
      return bytes_of(DeviceInfo{sizeof(DeviceInfo), DeviceInfo::kResets | DeviceInfo::kPci, kRegions, kIrqs});
    case Command::get_region_info: return region_info(body);
    case Command::get_region_io_fds: {
      const auto asked = query_of<RegionIoFds>(body);
      if (asked.index >= kRegions) throw RequestError(EINVAL, fmt::format("no region {}", asked.index));
      return bytes_of(RegionIoFds{sizeof(RegionIoFds), 0, asked.index, 0});  // all accesses are messages
    }
    case Command::get_irq_info: return irq_info(body);
    case Command::set_irqs: return set_irqs(message);
    case Command::region_read: return read_region(body);
    case Command::region_write: return write_region(body);
    case Command::region_write_multi: return write_regions(body);
    case Command::reset:
      port_.reset();
      find_reset();
      return {};
    case Command::feature:
    case Command::migration_read:
    case Command::migration_write: throw RequestError(EOPNOTSUPP, "migration is not supported");
    case Command::dma_read:
    case Command::dma_write: throw RequestError(EINVAL, "only the server sends this command");
  }
  throw RequestError(EINVAL, "unknown command");
}

void VfioUser::reply(const Header& request, Bytes body, std::uint32_t error) {
  if ((request.flags & Header::kNoReply) != 0) return;
  Header header{request.id, request.command, static_cast<std::uint32_t>(sizeof(Header) + body.size()),
                Header::kReply | (error != 0 ? Header::kError : 0), error};
  auto message = bytes_of(header);
  message.insert(message.end(), body.begin(), body.end());
  connection_.send(message);
}

// The reply has those of the proposed capabilities that the server knows.
std::vector<std::byte> VfioUser::agree_on_version(Bytes body) {
  if (agreed_) throw RequestError(EINVAL, "the version is already negotiated");
  if (body.size() < sizeof(Version)) throw ConnectionLost("the client's VERSION has no version");
  const auto proposed = body_of<Version>(body);
  if (proposed.major != kMajor)
    throw ConnectionLost(fmt::format("the client has version {}.{} of vfio-user; this server has {}.{}", proposed.major,
                                     proposed.minor, kMajor, kMinor));
  std::string text(reinterpret_cast<const char*>(body.data()) + sizeof(Version), body.size() - sizeof(Version));
  text.resize(std::min(text.size(), text.find('\0')));
  Json ours = Json::object();
  try {
    const auto theirs = text.empty() ? Json::object() : Json::parse(text, 16);
    if (const auto* capabilities = theirs.find("capabilities")) {
      most_data_ = std::min(kMostData, capabilities->value("max_data_xfer_size", kMostData));
      if (capabilities->find("max_data_xfer_size")) ours["max_data_xfer_size"] = kMostData;
      if (capabilities->find("max_msg_fds")) ours["max_msg_fds"] = std::uint64_t{GuestConnection::kMostDescriptors};
      if (capabilities->find("pgsizes")) ours["pgsizes"] = 4096;
      if (capabilities->find("write_multiple")) ours["write_multiple"] = true;
    }
  } catch (const JsonError& error) {
    throw ConnectionLost(fmt::format("the client's VERSION is not valid JSON: {}", error.what()));
  }
  if (most_data_ == 0) throw ConnectionLost("the client accepts no data: its max_data_xfer_size is 0");
  agreed_ = true;
  auto answer = bytes_of(Version{kMajor, kMinor});
  const std::string capabilities = Json{{"capabilities", ours}}.dump();
  const auto bytes = std::as_bytes(std::span(capabilities.c_str(), capabilities.size() + 1));
  answer.insert(answer.end(), bytes.begin(), bytes.end());
  return answer;
}

std::vector<std::byte> VfioUser::map(const GuestMessage& message) {
  const auto range = query_of<DmaMap>(message.body);
  if ((range.flags & ~(DmaMap::kRead | DmaMap::kWrite)) != 0)
    throw RequestError(EINVAL, fmt::format("flags {:#x}", range.flags));
  if (message.descriptors.size() > 1) throw RequestError(EINVAL, "a mapping needs exactly one descriptor");
  const GuestMemory::Rights rights{(range.flags & DmaMap::kRead) != 0, (range.flags & DmaMap::kWrite) != 0};
  try {
    if (!message.descriptors.empty())
      port_.memory().map(range.address, range.bytes, rights, message.descriptors.front(), range.offset);
    else
      port_.memory().map(
          range.address, range.bytes, rights,
          {[this](std::uint64_t address, std::span<std::byte> bytes) { return read_memory(address, bytes); },
           [this](std::uint64_t address, Bytes bytes) { return write_memory(address, bytes); }});
  } catch (const MapError& error) {
    throw RequestError(error.error, error.what());
  }
  return {};
}

std::vector<std::byte> VfioUser::unmap(Bytes body) {
  const auto range = query_of<DmaUnmap>(body);
  const bool all = range.flags == DmaUnmap::kAll && range.address == 0 && range.bytes == 0;
  if (all)
    port_.memory().clear();
  else if (range.flags != 0)
    throw RequestError(EINVAL, fmt::format("flags {:#x}", range.flags));
  else if (!port_.memory().unmap(range.address, range.bytes))
    throw RequestError(ENOENT, fmt::format("{} bytes at {:#x} are not a mapped range", range.bytes, range.address));
  return bytes_of(range);
}

bool VfioUser::read_memory(std::uint64_t address, std::span<std::byte> bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const auto part = bytes.subspan(done, std::min<std::size_t>(bytes.size() - done, most_data_));
    const DmaAccess wanted{address + done, part.size()};
    std::vector<std::byte> answer;
    if (!ask(Command::dma_read, bytes_of(wanted), answer)) return false;
    if (answer.size() != sizeof wanted + part.size() || std::memcmp(answer.data(), &wanted, sizeof wanted) != 0) {
      broken_ = "the client's answer to DMA_READ has another size or another address";
      return false;
    }
    std::ranges::copy(std::span(answer).subspan(sizeof wanted), part.begin());
    done += part.size();
  }
  return true;
}

bool VfioUser::write_memory(std::uint64_t address, Bytes bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const auto part = bytes.subspan(done, std::min<std::size_t>(bytes.size() - done, most_data_));
    auto body = bytes_of(DmaAccess{address + done, part.size()});
    body.insert(body.end(), part.begin(), part.end());
    std::vector<std::byte> answer;
    if (!ask(Command::dma_write, body, answer)) return false;
    done += part.size();
  }
  return true;
}

bool VfioUser::ask(Command command, Bytes body, std::vector<std::byte>& answer) {
  if (!broken_.empty()) return false;
  const auto id = next_id_++;
  auto message = bytes_of(Header{id, command, static_cast<std::uint32_t>(sizeof(Header) + body.size()), 0, 0});
  message.insert(message.end(), body.begin(), body.end());
  try {
    connection_.send(message);
    return await_reply(id, command, answer);
  } catch (const ConnectionLost& lost) {
    broken_ = lost.what();
    return false;
  }
}

bool VfioUser::await_reply(std::uint16_t id, Command command, std::vector<std::byte>& answer) {
  for (const auto deadline = std::chrono::steady_clock::now() + patience_;;) {
    while (auto message = connection_.receive()) {
      if (!is_reply(*message)) {
        if (deferred_.size() == kMostDeferred) throw ConnectionLost("the client sends commands and does not answer");
        deferred_.push_back(std::move(*message));
        continue;
      }
      const auto header = header_of(message->header);
      if (header.id != id || header.command != command) throw ConnectionLost("the client sent an unexpected reply");
      answer = std::move(message->body);
      return (header.flags & Header::kError) == 0;
    }
    if (!connection_.await(deadline))
      throw ConnectionLost(fmt::format("the client did not answer a DMA request within {} ms", patience_.count()));
    connection_.flush();
  }
}

}  // namespace rnicsim::sim
