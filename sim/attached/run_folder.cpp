// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <mqueue.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "model/abi/attach.h"
#include "model/abi/host_files.h"
#include "model/host/log.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;

// lstat() of the path itself, even if it is a link; nullopt: the path does not exist.
std::optional<struct stat> status_of(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? std::optional(status) : std::nullopt;
}

bool is_own_folder(const struct stat& status) { return S_ISDIR(status.st_mode) && status.st_uid == ::geteuid(); }

// Also removes folders that a program made unreadable. `path` must be a folder of this user: a link would be followed.
void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (!error) return;
  const auto all = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(path, all, error), end; !error && at != end; at.increment(error))
    if (at->is_directory(error) && !at->is_symlink(error)) {
      std::error_code ignored;
      fs::permissions(at->path(), fs::perms::owner_all, fs::perm_options::add, ignored);
    }
  fs::remove_all(path, error);
}

// Named semaphores are outside of the host's folder: sim/host puts the socket name into their names.
void remove_semaphores(const std::string& socket_name) {
  std::error_code error, ignored;
  const std::string prefix = "sem." + socket_name + '.';
  const fs::path folder = fs::path(abi::kHostMemoryPrefix).parent_path();
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().filename().string().starts_with(prefix)) fs::remove(at->path(), ignored);
}

// POSIX message queues have no files: sim/host lists their names in the host's memory.
void remove_queues(const std::string& socket_name) {
  std::error_code error;
  for (fs::directory_iterator host(abi::kHostMemoryPrefix + socket_name, error), end; !error && host != end;
       host.increment(error)) {
    std::error_code none;
    for (fs::directory_iterator at(host->path() / ".mqueue", none), last; !none && at != last; at.increment(none))
      ::mq_unlink(
          ("/" + socket_name + '.' + host->path().filename().string() + '.' + at->path().filename().string()).c_str());
  }
}

// Locks a folder of this user. The kernel releases the lock when its holder ends. Not open: another process holds the
// lock, or the folder is gone. On a file system without locks the process that made the folder counts as the holder.
Descriptor locked(const fs::path& folder, bool is_just_made = false) {
  Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return {};
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || !is_just_made)) return {};
  // The folder may have been removed by the lock's last holder and made again by another run.
  struct stat held {};
  const auto present = status_of(folder);
  const bool is_same = ::fstat(fd.get(), &held) == 0 && present && present->st_ino == held.st_ino &&
                       present->st_dev == held.st_dev && is_own_folder(held);
  return is_same ? std::move(fd) : Descriptor();
}

// Removes the folder and the semaphores and queues of the run `socket_name`.
void remove_contents(const fs::path& folder, const std::string& socket_name) {
  if (folder.string().starts_with(abi::kHostMemoryPrefix)) remove_queues(socket_name);
  remove_semaphores(socket_name);
  remove_tree(folder);
}

// False: the run is still alive.
bool remove_leftover(const fs::path& folder, const std::string& socket_name) {
  const Descriptor lock = locked(folder);
  if (!lock) return false;
  remove_contents(folder, socket_name);
  return true;
}

// Removes folders of this user's runs that were killed. A run that has just made its folder and not locked it yet may
// lose the folder; it then makes the folder again.
void remove_leftovers() {
  for (const fs::path prefix : {abi::kHostFilesPrefix, abi::kHostMemoryPrefix}) {
    std::error_code error;
    const std::string start = prefix.filename().string();
    for (fs::directory_iterator at(prefix.parent_path(), error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename().string();
      if (!name.starts_with(start)) continue;
      const auto status = status_of(at->path());
      if (status && is_own_folder(*status)) remove_leftover(at->path(), name.substr(start.size()));
    }
  }
}

[[noreturn]] void refuse_taken(const fs::path& folder, const std::string& by) {
  throw ConfigError(fmt::format(
      "the folder {} is needed for the hosts' files, but {}: remove this folder, or set another socket name by {}",
      folder.string(), by, abi::kSocketVariable));
}

// Makes and locks the folder, after the removal of an old one.
Descriptor make_locked(const fs::path& folder, const std::string& socket_name) {
  constexpr int kTries = 500;  // another process may be removing a large folder
  constexpr useconds_t kPauseUs = 10'000;
  for (int tries = 0; tries < kTries; ++tries) {
    if (::mkdir(folder.c_str(), 0700) == 0) {
      if (Descriptor lock = locked(folder, true)) return lock;
      continue;
    }
    if (errno != EEXIST)
      throw fs::filesystem_error("the folder cannot be made", folder, std::error_code(errno, std::generic_category()));
    const auto status = status_of(folder);
    if (status && !S_ISDIR(status->st_mode)) refuse_taken(folder, "another file has this name");
    if (status && !is_own_folder(*status))
      refuse_taken(folder, fmt::format("the folder belongs to user {}", status->st_uid));
    // Left by a `serve` that was killed. The name is free, since this process listens at the socket of that name.
    if (status && !remove_leftover(folder, socket_name)) ::usleep(kPauseUs);
  }
  refuse_taken(folder, "another simulation uses the folder");
}

}  // namespace

RunFolder::RunFolder(const std::string& socket_name)
    : socket_name_(socket_name),
      files_(abi::kHostFilesPrefix + socket_name),
      memory_(abi::kHostMemoryPrefix + socket_name) {
  remove_leftovers();
  files_lock_ = make_locked(files_, socket_name);
  try {
    memory_lock_ = make_locked(memory_, socket_name);
  } catch (const fs::filesystem_error& error) {
    host::log_warning(fmt::format("all hosts share the machine's /dev/shm: {}", error.what()));
    memory_.clear();
  } catch (...) {
    remove_contents(files_, socket_name);
    throw;
  }
}

RunFolder::~RunFolder() {
  if (!memory_.empty()) remove_contents(memory_, socket_name_);
  remove_contents(files_, socket_name_);
}

}  // namespace rnicsim::sim
