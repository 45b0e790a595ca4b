#include "sim/calibrate/point.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <system_error>

#include "sim/bench/bench.h"
#include "sim/progress_line.h"

namespace rnicsim::sim::calibrate {
namespace {

using Json = nlohmann::ordered_json;

// A point under way. SystemC knows one simulation a process, so that each point has its own.
struct Run {
  std::size_t point;
  pid_t process;
  int results;  // the pipe's end here
  std::string text;
};

[[noreturn]] void run_here(const Point& point, int out) {
  std::string text;
  int status = 0;
  try {
    bench::BenchOptions options;
    options.workload = point.workload;
    options.sets = point.sets;
    auto json = bench::bench_json(options);
    json.erase("simulator");
    text = json.dump();
  } catch (const std::exception& error) {
    text = error.what();
    status = 1;
  }
  for (std::size_t at = 0; at < text.size();) {
    const auto written = write(out, text.data() + at, text.size() - at);
    if (written < 0 && errno != EINTR) _exit(1);
    if (written > 0) at += static_cast<std::size_t>(written);
  }
  _exit(status);
}

Run start(const std::vector<Point>& points, std::size_t number) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  std::fflush(nullptr);
  const pid_t process = fork();
  if (process < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    run_here(points[number], ends[1]);
  }
  close(ends[1]);
  return {number, process, ends[0], {}};
}

// True: that was all.
bool read_some(Run& run) {
  std::array<char, 65536> buffer;
  const auto count = read(run.results, buffer.data(), buffer.size());
  if (count > 0) run.text.append(buffer.data(), static_cast<std::size_t>(count));
  return count == 0 || (count < 0 && errno != EINTR);
}

Json finish(Run& run, const Point& point) {
  close(run.results);
  int status = 0;
  while (waitpid(run.process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status)) throw std::runtime_error(fmt::format("{}, {}: the run crashed", point.workload, point.name));
  if (WEXITSTATUS(status) != 0)
    throw std::runtime_error(fmt::format("{}, {}: {}", point.workload, point.name, run.text));
  return Json::parse(run.text);
}

}  // namespace

std::vector<Json> run_points(const std::vector<Point>& points, unsigned jobs) {
  std::vector<Json> results(points.size());
  std::vector<Run> runs;
  std::size_t next = 0;
  while (next < points.size() || !runs.empty()) {
    while (next < points.size() && runs.size() < jobs) runs.push_back(start(points, next++));
    std::vector<pollfd> waiting;
    for (const auto& run : runs) waiting.push_back({run.results, POLLIN, 0});
    // Each ends by itself: one in which nothing moves finds that out.
    constexpr int kLookMs = 250;
    if (poll(waiting.data(), waiting.size(), kLookMs) < 0 && errno != EINTR)
      throw std::system_error(errno, std::generic_category(), "poll");
    if (progress_line::is_due())
      progress_line::show(fmt::format("{} of {} points done; waits for {}", next - runs.size(), points.size(),
                                      points[runs.front().point].name));
    for (std::size_t i = runs.size(); i-- > 0;) {
      if (waiting[i].revents == 0 || !read_some(runs[i])) continue;
      results[runs[i].point] = finish(runs[i], points[runs[i].point]);
      runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  progress_line::erase();
  return results;
}

}  // namespace rnicsim::sim::calibrate
