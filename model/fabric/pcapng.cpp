// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/pcapng.h"

#include <cerrno>
#include <cstring>

namespace rnicsim::fabric {
namespace {

constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr std::uint16_t kLinkTypeEthernet = 1;
constexpr std::uint16_t kOptionEnd = 0;
constexpr std::uint16_t kOptionComment = 1;
constexpr std::uint16_t kOptionUserApplication = 4;
constexpr std::uint16_t kOptionName = 2;
constexpr std::uint16_t kOptionTimeResolution = 9;
constexpr std::uint8_t kNanoseconds = 9;  // resolution 10^-9 s
constexpr std::uint32_t kNoSnapLength = 0;
constexpr std::int64_t kPsPerNs = 1000;
constexpr char kApplication[] = "rnicsim";

}  // namespace

PcapngWriter::PcapngWriter(const std::string& path) : path_(path), file_(path, std::ios::binary | std::ios::trunc) {
  if (!file_) {
    error_ = path + ": " + std::strerror(errno);
    return;
  }
  put32(kByteOrderMagic);
  put16(1);
  put16(0);
  put32(0xffffffff);  // section length: unknown
  put32(0xffffffff);
  put_option(kOptionUserApplication, kApplication, sizeof(kApplication) - 1);
  put_option(kOptionEnd, nullptr, 0);
  write_block(kSectionHeader);
}

std::uint32_t PcapngWriter::add_interface(const std::string& name) {
  put16(kLinkTypeEthernet);
  put16(0);
  put32(kNoSnapLength);
  put_option(kOptionName, name.data(), name.size());
  put_option(kOptionTimeResolution, &kNanoseconds, 1);
  put_option(kOptionEnd, nullptr, 0);
  write_block(kInterfaceDescription);
  return interfaces_++;
}

void PcapngWriter::write(std::uint32_t interface, Duration time, std::span<const std::byte> frame,
                         std::string_view comment) {
  const auto ns = static_cast<std::uint64_t>(time.ps / kPsPerNs);
  put32(interface);
  put32(static_cast<std::uint32_t>(ns >> 32));
  put32(static_cast<std::uint32_t>(ns));
  put32(static_cast<std::uint32_t>(frame.size()));
  put32(static_cast<std::uint32_t>(frame.size()));
  put_padded(frame.data(), frame.size());
  if (!comment.empty()) {
    put_option(kOptionComment, comment.data(), comment.size());
    put_option(kOptionEnd, nullptr, 0);
  }
  write_block(kEnhancedPacket);
}

void PcapngWriter::flush() {
  if (!error_.empty()) return;
  if (!file_.flush()) error_ = path_ + ": " + std::strerror(errno);
}

void PcapngWriter::put16(std::uint16_t value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  block_.insert(block_.end(), bytes, bytes + sizeof(value));
}

void PcapngWriter::put32(std::uint32_t value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  block_.insert(block_.end(), bytes, bytes + sizeof(value));
}

void PcapngWriter::put_padded(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  block_.insert(block_.end(), from, from + bytes);
  block_.resize((block_.size() + 3) & ~std::size_t{3});
}

void PcapngWriter::put_option(std::uint16_t code, const void* data, std::size_t bytes) {
  put16(code);
  put16(static_cast<std::uint16_t>(bytes));
  put_padded(data, bytes);
}

void PcapngWriter::write_block(std::uint32_t type) {
  constexpr std::uint32_t kFraming = 12;  // block type, and the length before and after the body
  const auto length = static_cast<std::uint32_t>(block_.size()) + kFraming;
  const auto raw = [this](const std::uint32_t& value) {
    file_.write(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  if (error_.empty()) {
    raw(type);
    raw(length);
    file_.write(reinterpret_cast<const char*>(block_.data()), static_cast<std::streamsize>(block_.size()));
    raw(length);
    if (!file_) error_ = path_ + ": " + std::strerror(errno);
  }
  block_.clear();
}

}  // namespace rnicsim::fabric
