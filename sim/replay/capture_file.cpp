#include "sim/replay/capture_file.h"

#include <fmt/format.h>
#include <pcap/pcap.h>

#include <array>
#include <memory>
#include <span>

#include "sim/config/config_error.h"

namespace rnicsim::sim::replay {
namespace {

struct Closer {
  void operator()(pcap_t* file) const { pcap_close(file); }
};

}  // namespace

std::vector<CapturedFrame> read_capture(const std::filesystem::path& path) {
  std::array<char, PCAP_ERRBUF_SIZE> why{};
  const std::unique_ptr<pcap_t, Closer> file(pcap_open_offline(path.c_str(), why.data()));
  // The library's words name the file in some cases only.
  if (!file) throw ConfigError(fmt::format("{}: not a capture that can be read: {}", shown(path.string()), why.data()));
  if (const int link = pcap_datalink(file.get()); link != DLT_EN10MB) {
    const char* const name = pcap_datalink_val_to_name(link);
    throw ConfigError(fmt::format("{}: its frames are {}; Ethernet's are needed", shown(path.string()),
                                  name != nullptr ? name : fmt::format("of link type {}", link)));
  }
  std::vector<CapturedFrame> frames;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  int status = 0;
  while ((status = pcap_next_ex(file.get(), &header, &data)) == 1) {
    const auto bytes = std::as_bytes(std::span(data, header->caplen));
    frames.push_back({static_cast<std::uint32_t>(frames.size() + 1), header->len, {bytes.begin(), bytes.end()}});
  }
  if (status == PCAP_ERROR)
    throw ConfigError(
        fmt::format("{}: broken after frame {}: {}", shown(path.string()), frames.size(), pcap_geterr(file.get())));
  return frames;
}

}  // namespace rnicsim::sim::replay
