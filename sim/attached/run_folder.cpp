#include "sim/attached/run_folder.h"

#include <fcntl.h>
#include <mqueue.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string_view>

#include "model/abi/host_files.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_folder(const char* what, const fs::path& path, int error) {
  throw fs::filesystem_error(what, path, std::error_code(error, std::generic_category()));
}

// Also what a program locked against itself.
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

// Named semaphores lie beside the host's own memory, under the tag that verbs/clock gives them.
void remove_semaphores(const std::string& socket_name) {
  std::error_code error;
  const std::string prefix = "sem." + socket_name + '.';
  const fs::path folder = fs::path(abi::kHostMemoryPrefix).parent_path();
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().filename().string().starts_with(prefix)) remove_tree(at->path());
}

// Message queues have no files: verbs/clock notes their names in the host's memory.
void remove_queues(const std::string& socket_name) {
  std::error_code error;
  for (fs::directory_iterator host(abi::kHostMemoryPrefix + socket_name, error), end; !error && host != end;
       host.increment(error)) {
    std::error_code none;
    for (fs::directory_iterator at(host->path() / ".mqueue", none), last; !none && at != last; at.increment(none))
      ::mq_unlink(("/" + socket_name + '.' + host->path().filename().string() + '.' +
                   at->path().filename().string()).c_str());
  }
}

void remove_all_of(const std::string& socket_name) {
  remove_queues(socket_name);
  remove_semaphores(socket_name);
  remove_tree(abi::kHostMemoryPrefix + socket_name);
  remove_tree(abi::kHostFilesPrefix + socket_name);
}

// A lock goes with its owner, however that ends.
Descriptor locked(const fs::path& folder) {
  Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return {};
  return fd;
}

// One that was just made may not be locked yet.
bool is_fresh(const fs::path& folder) {
  std::error_code error;
  return fs::file_time_type::clock::now() - fs::last_write_time(folder, error) < std::chrono::minutes(1) && !error;
}

void remove_leftovers() {
  std::error_code error;
  const fs::path prefix = abi::kHostFilesPrefix;
  for (fs::directory_iterator at(prefix.parent_path(), error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const std::string start = prefix.filename().string();
    struct stat status {};
    if (!name.starts_with(start) || ::lstat(at->path().c_str(), &status) != 0 || status.st_uid != ::geteuid()) continue;
    if (!is_fresh(at->path()) && locked(at->path())) remove_all_of(name.substr(start.size()));
  }
}

void make(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0) refuse_folder("cannot make it", folder, errno);
}

}  // namespace

RunFolder::RunFolder(const std::string& socket_name) : socket_name_(socket_name) {
  if (socket_name.find('/') != std::string::npos)
    refuse_folder("the socket's name is no file name", socket_name, EINVAL);
  remove_leftovers();
  // A `serve` that was killed left it; its name is ours now, since we listen at the socket of that name.
  clear();
  files_ = abi::kHostFilesPrefix + socket_name;
  make(files_);
  lock_ = locked(files_);
  memory_ = abi::kHostMemoryPrefix + socket_name;
  make(memory_);
}

RunFolder::~RunFolder() { clear(); }

void RunFolder::clear() const { remove_all_of(socket_name_); }

}  // namespace rnicsim::sim
