// SPDX-License-Identifier: Apache-2.0
// std::future, std::async and C++20's atomic waits. They wait with futexes.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <future>
#include <thread>

using namespace std::chrono;

static long long ms_since(steady_clock::time_point start) {
  return duration_cast<milliseconds>(steady_clock::now() - start).count();
}

int main() {
  auto start = steady_clock::now();
  auto task = std::async(std::launch::async, [] { std::this_thread::sleep_for(milliseconds(5)); });
  const bool ready = task.wait_for(seconds(30)) == std::future_status::ready;
  std::printf("task %d after %lld ms\n", ready, ms_since(start));

  std::promise<int> promise;
  auto future = promise.get_future();
  start = steady_clock::now();
  const bool timeout = future.wait_for(milliseconds(100)) == std::future_status::timeout;
  std::printf("nothing %d after %lld ms\n", timeout, ms_since(start));

  std::atomic<int> word = 0;
  start = steady_clock::now();
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(3));
    word = 1;
    word.notify_one();
    promise.set_value(4);
  });
  word.wait(0);
  std::printf("atomic %d, future %d after %lld ms\n", word.load(), future.get(), ms_since(start));
  other.join();
}
