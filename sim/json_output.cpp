#include "sim/json_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;

// The stream that was standard output; what is printed from now on goes to stderr.
std::FILE* take_standard_output() {
  std::fflush(stdout);
  const int results = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (results < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return nullptr;
  return fdopen(results, "w");
}

}  // namespace

JsonOutput::JsonOutput(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  if (path_ == "-") {
    file_ = take_standard_output();
  } else {
    std::error_code none;
    const auto kind = fs::status(path_, none).type();
    if (kind == fs::file_type::not_found || kind == fs::file_type::regular) part_ = path_.string() + ".part";
    file_ = std::fopen((is_replaced() ? part_ : path_).c_str(), "we");
  }
  if (file_ == nullptr) throw ConfigError(fmt::format("{}: {}", path_.string(), std::strerror(errno)));
}

JsonOutput::~JsonOutput() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  std::error_code none;
  if (is_replaced()) fs::remove(part_, none);
}

void JsonOutput::write(const nlohmann::ordered_json& json) {
  // What a program's arguments hold need not be UTF-8.
  write_text(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
}

void JsonOutput::write_text(std::string_view text) {
  if (file_ == nullptr) return;
  bool good = std::fwrite(text.data(), 1, text.size(), file_) == text.size();
  good &= std::fclose(std::exchange(file_, nullptr)) == 0;
  std::error_code error(good ? 0 : errno, std::generic_category());
  if (good && is_replaced()) fs::rename(part_, path_, error);
  if (!error) return;
  std::error_code none;
  if (is_replaced()) fs::remove(part_, none);
  throw ConfigError(fmt::format("{}: cannot be written: {}", path_.string(), error.message()));
}

}  // namespace rnicsim::sim
