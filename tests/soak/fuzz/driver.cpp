// SPDX-License-Identifier: Apache-2.0
// Driver of the fuzz targets without libFuzzer: mutates the target's seeds with a seeded generator, so that a run can
// be repeated. The next input is written to a file first: after a crash the file can be replayed.
//
//   fuzz_NAME [--runs N] [--seconds S] [--seed S] [--keep FILE]
//   fuzz_NAME FILE...             replays
//   fuzz_NAME --write-seeds DIR   writes the valid inputs, for libFuzzer
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <systemc>

#include "tests/soak/fuzz/fuzz.h"

namespace rnicsim::fuzz {
namespace {

constexpr std::size_t kLongestInput = 16 << 10;
constexpr unsigned kMostSecondsAnInput = 60;
constexpr long kMostGrowthKiB = 1 << 20;  // growth of memory in a whole run; leaks grow further

struct Options {
  std::uint64_t runs = std::numeric_limits<std::uint64_t>::max();
  double seconds = std::numeric_limits<double>::infinity();
  std::uint64_t seed = 1;
  std::string keep;
  std::string seed_folder;
  std::vector<std::string> files;
};

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed), corpus_(seeds()) {
    if (corpus_.empty()) corpus_.push_back({});
  }

  Bytes next() {
    if (turn_ < corpus_.size()) return corpus_[turn_++];  // the valid inputs first
    Bytes bytes = pick();
    for (auto count = std::size_t{1} << below(5); count > 0; --count) mutate(bytes);
    if (bytes.size() > kLongestInput) bytes.resize(kLongestInput);
    return bytes;
  }

 private:
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(random_() % end); }
  const Bytes& pick() { return corpus_[below(corpus_.size())]; }

  void mutate(Bytes& bytes) {
    if (bytes.empty()) return bytes.push_back(static_cast<std::uint8_t>(random_()));
    const auto at = below(bytes.size());
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(9)) {
      case 0: bytes[at] ^= static_cast<std::uint8_t>(1u << below(8)); break;
      case 1: bytes[at] = static_cast<std::uint8_t>(random_()); break;
      case 2: bytes[at] = static_cast<std::uint8_t>(bytes[at] + below(33) - 16); break;
      case 3: overwrite(bytes, at, interesting()); break;
      case 4: overwrite(bytes, at, random_()); break;
      case 5:
        bytes.erase(from, from + static_cast<std::ptrdiff_t>(1 + below(std::min<std::size_t>(bytes.size() - at, 64))));
        break;
      case 6: insert(bytes, at, slice_of(bytes)); break;
      case 7: insert(bytes, at, slice_of(pick())); break;
      default: {
        const auto part = slice_of(pick());
        for (std::size_t i = 0; i < part.size() && at + i < bytes.size(); ++i) bytes[at + i] = part[i];
      }
    }
  }
  std::uint64_t interesting() {
    static constexpr std::uint64_t kValues[] = {0,
                                                1,
                                                2,
                                                15,
                                                16,
                                                63,
                                                64,
                                                127,
                                                128,
                                                255,
                                                256,
                                                4095,
                                                4096,
                                                0x7fff,
                                                0x8000,
                                                0xffff,
                                                0x10000,
                                                0x7fffff,
                                                0xffffff,
                                                0x7fffffff,
                                                0x80000000,
                                                0xffffffff,
                                                0x7fffffffffffffff,
                                                0x8000000000000000,
                                                ~0ull};
    return kValues[below(std::size(kValues))];
  }
  void overwrite(Bytes& bytes, std::size_t at, std::uint64_t value) {
    const auto width = std::min(std::size_t{1} << below(4), bytes.size() - at);
    const bool big = below(2) != 0;
    for (std::size_t i = 0; i < width; ++i)
      bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * (big ? width - 1 - i : i)));
  }
  Bytes slice_of(const Bytes& bytes) {
    if (bytes.empty()) return {};
    const auto at = below(bytes.size());
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    return {begin, begin + static_cast<std::ptrdiff_t>(1 + below(std::min<std::size_t>(bytes.size() - at, 256)))};
  }
  static void insert(Bytes& bytes, std::size_t at, const Bytes& part) {
    bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), part.begin(), part.end());
  }

  std::mt19937_64 random_;
  std::vector<Bytes> corpus_;
  std::size_t turn_ = 0;
};

// The current input, in a file that survives a crash.
class Keeper {
 public:
  explicit Keeper(const std::string& path) : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    require(file_ >= 0, "the file for the input under way cannot be written");
  }
  ~Keeper() { ::close(file_); }
  void keep(const Bytes& input) const {
    const bool kept = ::pwrite(file_, input.data(), input.size(), 0) == ssize_t(input.size()) &&
                      ::ftruncate(file_, off_t(input.size())) == 0;
    require(kept, "the input under way cannot be kept");
  }

 private:
  int file_;
};

// Signal handler: only async-signal-safe calls.
void too_long(int) {
  constexpr char kWhat[] = "fuzz: an input takes too long\n";
  [[maybe_unused]] const auto written = ::write(2, kWhat, sizeof kWhat - 1);
  std::abort();
}

void run_one(const Bytes& input) {
  ::alarm(kMostSecondsAnInput);
  // A copy of exact size, so that a sanitizer sees a read beyond the end.
  const Bytes exact(input);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  ::alarm(0);
}

long peak_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

int fuzz(const Options& options) {
  Mutator mutator(options.seed);
  const Keeper keeper(options.keep);
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  long first_peak = 0;
  std::uint64_t runs = 0;
  for (; runs < options.runs && passed() < options.seconds; ++runs) {
    const auto input = mutator.next();
    keeper.keep(input);
    run_one(input);
    if (runs == 100) first_peak = peak_kib();
    if (runs > 100) require(peak_kib() - first_peak < kMostGrowthKiB, "memory grows without bound");
  }
  std::printf("%llu runs in %.1f s, seed %llu, peak %ld MiB\n", static_cast<unsigned long long>(runs), passed(),
              static_cast<unsigned long long>(options.seed), peak_kib() / 1024);
  std::fflush(stdout);
  ::unlink(options.keep.c_str());
  return 0;
}

int replay(const std::vector<std::string>& files) {
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    require(in.is_open(), "no such file");
    const Bytes input{std::istreambuf_iterator<char>(in), {}};
    std::printf("%s: %zu bytes\n", file.c_str(), input.size());
    std::fflush(stdout);
    run_one(input);
  }
  return 0;
}

int write_seeds(const std::string& folder) {
  std::size_t number = 0;
  for (const auto& seed : seeds()) {
    std::ofstream out(folder + "/seed" + std::to_string(number++), std::ios::binary);
    out.write(reinterpret_cast<const char*>(seed.data()), std::streamsize(seed.size()));
    require(bool(out), "a seed cannot be written");
  }
  return 0;
}

Options parse(int argc, char* argv[]) {
  Options options;
  options.keep = std::string(argv[0]) + "." + std::to_string(::getpid()) + ".input";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (!argument.starts_with("--")) {
      options.files.push_back(argument);
      continue;
    }
    require(i + 1 < argc, "an option needs a value");
    const std::string value = argv[++i];
    if (argument == "--runs")
      options.runs = std::stoull(value);
    else if (argument == "--seconds")
      options.seconds = std::stod(value);
    else if (argument == "--seed")
      options.seed = std::stoull(value);
    else if (argument == "--keep")
      options.keep = value;
    else if (argument == "--write-seeds")
      options.seed_folder = value;
    else
      fail("options: --runs, --seconds, --seed, --keep, --write-seeds");
  }
  return options;
}

}  // namespace
}  // namespace rnicsim::fuzz

// SystemC keeps timed events in chunks that the leak checker takes for leaks.
extern "C" const char* __lsan_default_suppressions() { return "leak:sc_core::sc_event_timed::allocate"; }

// The main function is in SystemC's library.
int sc_main(int argc, char* argv[]) {
  using namespace rnicsim::fuzz;
  const auto options = parse(argc, argv);
  std::signal(SIGALRM, too_long);
  spdlog::set_level(spdlog::level::off);  // messages about bad input are expected
  if (!options.seed_folder.empty()) return write_seeds(options.seed_folder);
  return options.files.empty() ? fuzz(options) : replay(options.files);
}
