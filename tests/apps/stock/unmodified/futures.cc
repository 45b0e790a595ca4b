// SPDX-License-Identifier: Apache-2.0
// Threads of C++20: futures, atomic waits, barriers, latches, semaphores, stop tokens; and two threads that spin.
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <latch>
#include <mutex>
#include <queue>
#include <semaphore>
#include <stop_token>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono;
const auto start = steady_clock::now();
void tell(const char* what, long value) {
  std::printf("%s %ld by %ld ns\n", what, value, long(nanoseconds(steady_clock::now() - start).count()));
}

void futures() {
  std::vector<std::future<int>> squares;
  for (int i = 0; i < 8; ++i)
    squares.push_back(std::async(std::launch::async, [i] {
      std::this_thread::sleep_for(microseconds(100 * (8 - i)));
      return i * i;
    }));
  long sum = 0;
  for (auto& square : squares) sum += square.get();
  tell("futures", sum);
}

void atomic_waits() {
  std::atomic<int> turn{0};
  long total = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        for (int round = 0; round < 200; ++round) {
          int seen;
          while ((seen = turn.load()) % 4 != i) turn.wait(seen);
          total += seen;
          turn.store(seen + 1);
          turn.notify_all();
        }
      });
  }
  tell("atomic waits", total);
}

void queue_with_stop_token() {
  std::barrier rounds(4);
  std::latch ended(4);
  std::counting_semaphore<8> few(2);
  std::mutex lock;
  std::condition_variable_any filled;
  std::queue<int> queue;
  long order = 0;
  std::jthread consumer([&](const std::stop_token& stop) {
    std::unique_lock held(lock);
    while (filled.wait(held, stop, [&] { return !queue.empty(); }))
      for (; !queue.empty(); queue.pop()) order = (order * 31 + queue.front()) % 1'000'003;
  });
  std::vector<std::jthread> producers;
  for (int i = 0; i < 4; ++i)
    producers.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        rounds.arrive_and_wait();
        few.acquire();
        {
          const std::lock_guard held(lock);
          queue.push(i);
        }
        filled.notify_one();
        few.release();
      }
      ended.count_down();
    });
  ended.wait();
  consumer.request_stop();
  consumer.join();
  tell("order", order);
}

void spinning_in_turn() {
  std::atomic<int> ball{0};
  const auto player = [&](int mine) {
    return [&ball, mine] {
      for (int i = 0; i < 1000; ++i) {
        while (ball.load() != mine) continue;
        ball = 1 - mine;
      }
    };
  };
  std::jthread first(player(0)), second(player(1));
  first.join();
  second.join();
  tell("ball", ball);
}

}  // namespace

int main() {
  futures();
  atomic_waits();
  queue_with_stop_token();
  spinning_in_turn();
}
