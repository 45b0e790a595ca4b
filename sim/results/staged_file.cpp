// SPDX-License-Identifier: Apache-2.0
#include "sim/results/staged_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "sim/config/config_error.h"

namespace rnicsim::sim {

namespace fs = std::filesystem;

StagedFile::StagedFile(const fs::path& path) : given_(path) {
  std::error_code none;
  path_ = fs::weakly_canonical(path, none);
  if (path_.empty()) path_ = path;
  struct stat old {};
  const bool exists = stat(path_.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) complain(EISDIR);
  if (exists && !S_ISREG(old.st_mode)) {
    is_staged_ = false;
    file_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file_ < 0) complain(errno);
    return;
  }
  // Without a name, so that a killed process leaves no file.
  const auto folder = path_.has_parent_path() ? path_.parent_path() : fs::path(".");
  file_ = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (file_ < 0) {  // not every file system supports O_TMPFILE
    auto name = hidden_name("XXXXXX");
    file_ = mkostemp(name.data(), O_CLOEXEC);
    if (file_ < 0) complain(errno);
    part_ = name;
  }
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(file_, exists ? old.st_mode & 0777 : 0666 & ~mask);
}

StagedFile::StagedFile(int descriptor, const std::string& name) : given_(name), file_(descriptor), is_staged_(false) {}

StagedFile::StagedFile(StagedFile&& other) noexcept
    : given_(std::move(other.given_)),
      path_(std::move(other.path_)),
      part_(std::exchange(other.part_, {})),
      file_(std::exchange(other.file_, -1)),
      is_staged_(other.is_staged_) {}

StagedFile::~StagedFile() {
  if (file_ >= 0) close(file_);
  if (!part_.empty()) unlink(part_.c_str());
}

void StagedFile::write(std::string_view content) {
  while (!content.empty()) {
    const auto count = ::write(file_, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) complain(errno);
    content.remove_prefix(std::size_t(count));
  }
  if (is_staged_ && fsync(file_) != 0) complain(errno);
  if (is_staged_ && part_.empty()) give_name();
  if (close(std::exchange(file_, -1)) != 0) complain(errno);
}

std::string StagedFile::hidden_name(const std::string& ending) const {
  return (path_.parent_path() / fmt::format(".{}.{}", path_.filename().string(), ending)).string();
}

void StagedFile::give_name() {
  const auto unnamed = fmt::format("/proc/self/fd/{}", file_);
  for (int number = 0;; ++number) {
    const auto name = hidden_name(fmt::format("{}-{}", getpid(), number));
    if (linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      part_ = name;
      return;
    }
    if (errno != EEXIST) complain(errno);
  }
}

void StagedFile::commit() {
  if (part_.empty()) return;
  if (rename(part_.c_str(), path_.c_str()) != 0) complain(errno);
  part_.clear();
}

void StagedFile::complain(int error) const {
  throw ConfigError(fmt::format("{}: cannot be written: {}", given_.string(), std::strerror(error)));
}

}  // namespace rnicsim::sim
