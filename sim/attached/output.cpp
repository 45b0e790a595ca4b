#include "sim/attached/output.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>

namespace rnicsim::sim {

void OutputRelay::add(Descriptor from, std::string label, std::FILE* to) {
  ::fcntl(from.get(), F_SETFL, ::fcntl(from.get(), F_GETFL) | O_NONBLOCK);
  sources_.push_back({std::move(from), std::move(label), to, {}});
}

void OutputRelay::print(Source& source, std::string_view text) {
  source.partial += text;
  std::size_t start = 0;
  for (std::size_t end; (end = source.partial.find('\n', start)) != std::string::npos; start = end + 1)
    fmt::print(source.to, "{}| {}\n", source.label, std::string_view(source.partial).substr(start, end - start));
  source.partial.erase(0, start);
}

void OutputRelay::drain() {
  std::array<char, 65536> buffer;
  for (Source& source : sources_) {
    if (!source.from) continue;
    ssize_t got;
    while ((got = ::read(source.from.get(), buffer.data(), buffer.size())) > 0)
      print(source, {buffer.data(), std::size_t(got)});
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
      if (!source.partial.empty()) print(source, "\n");
      source.from.reset();
    }
    std::fflush(source.to);
  }
}

}  // namespace rnicsim::sim
