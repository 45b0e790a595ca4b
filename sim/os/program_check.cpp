// SPDX-License-Identifier: Apache-2.0
#include "sim/os/program_check.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#endif

// Reads a file of unknown content at any offset; nullopt beyond the end.
class Image {
 public:
  explicit Image(const fs::path& path) : in_(path, std::ios::binary) {}

  template <class T>
  std::optional<T> read(std::uint64_t offset) {
    T value;
    return read_bytes(offset, reinterpret_cast<char*>(&value), sizeof value) ? std::optional(value) : std::nullopt;
  }

  std::string text(std::uint64_t offset, std::size_t most) {
    std::string result(most, '\0');
    in_.clear();
    in_.seekg(static_cast<std::streamoff>(offset));
    in_.read(result.data(), static_cast<std::streamsize>(most));
    result.resize(static_cast<std::size_t>(std::max<std::streamsize>(in_.gcount(), 0)));
    return result;
  }

 private:
  bool read_bytes(std::uint64_t offset, char* out, std::size_t bytes) {
    in_.clear();
    in_.seekg(static_cast<std::streamoff>(offset));
    return static_cast<bool>(in_.read(out, static_cast<std::streamsize>(bytes)));
  }

  std::ifstream in_;
};

constexpr std::uint32_t kMostHeaders = 4096;  // limit for a file with a wrong header

bool has_interpreter(Image& image, const Elf64_Ehdr& header) {
  for (std::uint32_t i = 0; i < header.e_phnum && i < kMostHeaders; ++i) {
    const auto segment = image.read<Elf64_Phdr>(header.e_phoff + std::uint64_t{i} * header.e_phentsize);
    if (segment && segment->p_type == PT_INTERP) return true;
  }
  return false;
}

std::string elf_problem(Image& image) {
  const auto header = image.read<Elf64_Ehdr>(0);
  if (!header || header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != kMachine)
    return "the program is built for another architecture";
  if (header->e_type != ET_EXEC && header->e_type != ET_DYN) return "this is an object file, not a program";
  if (!has_interpreter(image, *header))
    return "the program is statically linked (like a Go program without cgo): its libibverbs and its clock cannot be "
           "replaced";
  return {};
}

// Path after `#!`.
fs::path interpreter_of(const std::string& first_line) {
  std::istringstream words(first_line.substr(2));
  std::string path;
  words >> path;
  return path;
}

constexpr int kMostInterpreters = 4;  // depth of scripts as interpreters of scripts; the same limit as Linux

// The dynamic loader has no PT_INTERP. It is no problem: it preloads libraries into the program that it runs.
bool is_loader(const fs::path& path) {
  std::error_code none;
  const std::string name = fs::canonical(path, none).filename().string();
  return name.starts_with("ld-linux") || name.starts_with("ld.so");
}

// Debuggers and tracers would stop a program where the simulator waits for it.
bool is_tracer(const fs::path& path) {
  constexpr std::string_view kTracers[] = {"strace", "ltrace", "gdb", "gdbserver", "lldb", "lldb-server", "rr"};
  std::error_code none;
  const std::string name = fs::canonical(path, none).filename().string();
  return std::ranges::any_of(kTracers, [&](std::string_view tracer) {
    return name.starts_with(tracer) && (name.size() == tracer.size() || name[tracer.size()] == '-');
  });
}

// `alien`: also reports files that the system itself refuses.
std::string content_problem(const fs::path& path, const fs::path& folder, int most_interpreters, bool alien) {
  if (is_loader(path)) return {};
  if (is_tracer(path)) return "this program traces other programs; use rnicsim run --gdb HOST or --valgrind HOST";
  Image image(path);
  const std::string start = image.text(0, 256);
  if (start.starts_with(std::string_view(ELFMAG, SELFMAG))) return elf_problem(image);
  if (most_interpreters == 0 || !start.starts_with("#!"))
    return alien ? "this is neither a program nor a script with #!" : "";
  const fs::path interpreter = interpreter_of(start.substr(0, start.find('\n')));
  if (access((folder / interpreter).c_str(), X_OK) != 0)
    return alien ? "its interpreter " + interpreter.string() + " cannot be executed" : "";
  const std::string problem = content_problem(folder / interpreter, folder, most_interpreters - 1, alien);
  return problem.empty() ? problem : "its interpreter " + interpreter.string() + ": " + problem;
}

// True: the program gets another user or group or capabilities, so the system ignores LD_PRELOAD.
bool changes_identity(const fs::path& path, const struct stat& status) {
  const bool user = (status.st_mode & S_ISUID) != 0 && status.st_uid != getuid();
  const bool group = (status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && status.st_gid != getgid();
  return user || group || (getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0);
}

}  // namespace

std::string program_problem(const fs::path& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return "no such program";
  if (!S_ISREG(status.st_mode)) return "not a file";
  if (access(path.c_str(), X_OK) != 0) return "the file is not executable";
  const bool set_id = (status.st_mode & S_ISUID) != 0 || (status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
  if (set_id || getxattr(path.c_str(), "security.capability", nullptr, 0) > 0)
    return "the program is setuid, setgid or has capabilities: the system refuses to preload libraries into the "
           "program";
  return content_problem(path, "", kMostInterpreters, true);
}

std::string image_problem(const fs::path& path, const fs::path& folder) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || access(path.c_str(), X_OK) != 0) return {};
  if (changes_identity(path, status))
    return "the program is setuid, setgid or has capabilities: the system refuses to preload libraries into the "
           "program";
  return content_problem(path, folder, kMostInterpreters, false);
}

FoundProgram find_program(const std::string& name) {
  if (name.empty()) return {name, "a program's name is empty"};
  if (name.find('/') != name.npos) return {name, program_problem(name)};
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/bin:/bin");
  std::optional<FoundProgram> unusable;
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
    std::error_code none;
    if (!fs::is_regular_file(candidate, none)) continue;
    // A file that cannot be executed is skipped, as in a shell.
    if (access(candidate.c_str(), X_OK) == 0) return {candidate, program_problem(candidate)};
    if (!unusable) unusable = FoundProgram{candidate, program_problem(candidate)};
  }
  return unusable.value_or(FoundProgram{name, "no such program on PATH"});
}

}  // namespace rnicsim::sim
