#include "sim/staged_file.h"

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
    file_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file_ < 0) complain(errno);
    return;
  }
  std::string name = (path_.parent_path() / fmt::format(".{}.XXXXXX", path_.filename().string())).string();
  file_ = mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) complain(errno);
  part_ = name;
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(file_, exists ? old.st_mode & 0777 : 0666 & ~mask);
}

StagedFile::StagedFile(int descriptor, const std::string& name) : given_(name), file_(descriptor) {}

StagedFile::StagedFile(StagedFile&& other) noexcept
    : given_(std::move(other.given_)),
      path_(std::move(other.path_)),
      part_(std::exchange(other.part_, {})),
      file_(std::exchange(other.file_, -1)) {}

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
  if (!part_.empty() && fsync(file_) != 0) complain(errno);
  if (close(std::exchange(file_, -1)) != 0) complain(errno);
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
