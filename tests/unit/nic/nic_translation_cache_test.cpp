// SPDX-License-Identifier: Apache-2.0
// The cache of translations alone: requests to a host, cached translations, and their invalidation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "model/nic/contexts/translation_cache.h"
#include "tests/timing/dma_bench.h"

namespace rnicsim::nic::translation_cache_test {
namespace {

using test::DmaBench;
using Presence = TranslationCache::Presence;
constexpr Pasid kMine = 3;
constexpr std::uint64_t kPage = TranslationCache::kPage;

class TranslationCacheTest : public ::testing::Test {
 protected:
  explicit TranslationCacheTest(const TranslationCacheParams& params = {}) : bench_({}) {
    cache_ = std::make_unique<TranslationCache>("atc", params, bench_.dma());
    cache_->translate = [this](Pasid pasid, std::uint64_t address) {
      const auto found = pages_.find({pasid, address});
      PageTranslation answer = found == pages_.end() ? PageTranslation{} : found->second;
      answer.walk = walk_;
      return answer;
    };
    cache_->request = [this](const PageRequest& request) {
      requests_.push_back(request);
      return answers_;
    };
    cache_->invalidated.bind([this](std::uint32_t tag) { invalidated_.push_back(tag); });
  }
  ~TranslationCacheTest() override { cache_.reset(); }

  void put(std::uint64_t page, bool writable = true, std::uint64_t bus = 0) {
    pages_[{kMine, page * kPage}] = {true, writable, bus != 0 ? bus : (page + 1000) * kPage, {}};
  }
  void take(std::uint64_t page, std::uint32_t tag = 1, std::uint64_t count = 1) {
    for (std::uint64_t i = 0; i < count; ++i) pages_.erase({kMine, (page + i) * kPage});
    cache_->invalidate({kMine, page * kPage, count, tag});
  }
  struct Answered {
    TranslationCache::Found found;
    Duration at;
  };
  using Answer = std::shared_ptr<std::optional<Answered>>;
  Answer find(std::uint64_t page, bool write, bool waits, std::uint32_t asker = 1) {
    auto answer = std::make_shared<std::optional<Answered>>();
    cache_->find({kMine, page * kPage + 5, write, waits, asker}, [answer](const TranslationCache::Found& found) {
      *answer = {found, now()};
    });
    return answer;
  }
  static Presence presence(const Answer& answer) { return answer->value().found.presence; }
  void at(int microseconds, std::function<void()> action) {
    bench_.at(Duration{microseconds * 1'000'000ll}, std::move(action));
  }

  DmaBench bench_;
  std::unique_ptr<TranslationCache> cache_;
  std::map<std::pair<Pasid, std::uint64_t>, PageTranslation> pages_;
  std::vector<PageRequest> requests_;
  std::vector<std::uint32_t> invalidated_;
  Duration walk_{70'000};
  bool answers_ = true;
};

TEST_F(TranslationCacheTest, APageIsAskedForOnceAndKept) {
  put(4);
  Answer first, second, other, third;
  at(1, [&] {
    first = find(4, false, true);
    second = find(4, true, true);
    EXPECT_FALSE(*first);
  });
  at(5, [&] {
    third = find(4, true, false);
    EXPECT_TRUE(*third);  // answered at once
  });
  bench_.run();
  EXPECT_EQ(presence(first), Presence::present);
  EXPECT_EQ((*first)->found.address, 1004 * kPage);
  EXPECT_EQ(presence(second), Presence::present);
  EXPECT_EQ(presence(third), Presence::present);
  EXPECT_EQ(cache_->counters().translations, 1u);
  EXPECT_EQ(cache_->counters().hits, 1u);
  EXPECT_TRUE(requests_.empty());
}

// A request takes the time of an 8-byte read plus the host's walk.
TEST_F(TranslationCacheTest, ItTakesTheTimeOfAReadAndOfTheHost) {
  put(4);
  Answer found;
  at(1, [&] { found = find(4, false, true); });
  at(10, [&] { bench_.read(0, 8); });
  bench_.run();
  const auto& read = bench_.accesses.back();
  EXPECT_EQ((*found)->at - Duration{1'000'000}, read.done - read.asked + walk_);
}

TEST_F(TranslationCacheTest, WhoCannotWaitIsToldAndThePageIsAskedFor) {
  Answer now_absent, waiting, again;
  at(1, [&] {
    now_absent = find(4, true, false);
    waiting = find(4, true, true);
  });
  at(5, [&] {
    ASSERT_EQ(requests_.size(), 1u);
    EXPECT_EQ(requests_[0].pasid, kMine);
    EXPECT_EQ(requests_[0].address, 4 * kPage);
    EXPECT_TRUE(requests_[0].write);
    EXPECT_EQ(presence(now_absent), Presence::absent);
    EXPECT_FALSE(*waiting);
    EXPECT_EQ(presence(find(4, true, false)), Presence::absent);  // answered at once: a page request is pending
    put(4);
    cache_->respond({requests_[0].index, true});
  });
  at(10, [&] { again = find(4, true, false); });
  bench_.run();
  EXPECT_EQ(presence(waiting), Presence::present);
  EXPECT_EQ(presence(again), Presence::present);
  EXPECT_EQ(requests_.size(), 1u);
}

TEST_F(TranslationCacheTest, AFailureIsToldToWhoAskedAndOnce) {
  Answer waiting, first, second, other;
  at(1, [&] {
    waiting = find(4, true, true);
    find(4, true, false, 7);
  });
  at(5, [&] { cache_->respond({requests_[0].index, false}); });
  at(6, [&] {
    EXPECT_EQ(presence(waiting), Presence::refused);
    first = find(4, true, false, 7);
  });
  at(10, [&] {
    EXPECT_EQ(presence(first), Presence::refused);
    other = find(4, true, false, 8);
  });
  at(15, [&] {
    EXPECT_EQ(presence(other), Presence::absent);
    second = find(4, true, false, 7);
    EXPECT_EQ(presence(second), Presence::absent);
  });
  bench_.run();
  EXPECT_EQ(cache_->counters().page_requests_failed, 1u);
}

// A failure is not reported to a later access with the same number.
TEST_F(TranslationCacheTest, AFailureIsForgottenWithItsAsker) {
  Answer after;
  at(1, [&] { find(4, true, false, 7); });
  at(5, [&] {
    cache_->respond({requests_[0].index, false});
    cache_->forget(7);
  });
  at(6, [&] { after = find(4, true, false, 7); });
  bench_.run();
  EXPECT_EQ(presence(after), Presence::absent);
}

TEST_F(TranslationCacheTest, ForWritingThereMayBeMoreToAskFor) {
  put(4, false);
  Answer reads, writes, both;
  at(1, [&] { reads = find(4, false, true); });
  at(5, [&] {
    EXPECT_EQ(presence(reads), Presence::present);
    EXPECT_TRUE(requests_.empty());
    writes = find(4, true, true);
  });
  at(9, [&] {
    ASSERT_EQ(requests_.size(), 1u);
    EXPECT_TRUE(requests_[0].write);
    both = find(4, false, false);
    EXPECT_EQ(presence(both), Presence::present);
    put(4, true);
    cache_->respond({requests_[0].index, true});
  });
  bench_.run();
  EXPECT_EQ(presence(writes), Presence::present);
}

TEST_F(TranslationCacheTest, AHostThatDoesNotAnswerHasNoSuchPage) {
  answers_ = false;
  Answer found;
  at(1, [&] { found = find(4, false, true); });
  bench_.run();
  EXPECT_EQ(presence(found), Presence::refused);
}

TEST_F(TranslationCacheTest, AnInvalidationWaitsForWhoHoldsThePage) {
  put(4), put(5);
  auto hold = std::make_unique<TranslationCache::Hold>(*cache_);
  at(1, [&] {
    cache_->find({kMine, 4 * kPage, true, true, 1}, [&](const TranslationCache::Found& found) {
      hold->add(found);
      EXPECT_TRUE(hold->begin());
    });
    find(5, true, true);
  });
  at(5, [&] { take(4, 10); });
  at(6, [&] { take(5, 11); });
  at(10, [&] {
    EXPECT_THAT(invalidated_, ::testing::ElementsAre(11));
    hold.reset();
  });
  bench_.run();
  EXPECT_THAT(invalidated_, ::testing::ElementsAre(11, 10));
  EXPECT_EQ(cache_->counters().invalidation_waits, 1u);
}

TEST_F(TranslationCacheTest, WhatWasTakenBackBeforeItIsHeldIsNotHeld) {
  put(4), put(5);
  TranslationCache::Hold hold(*cache_);
  const auto keep = [&](const TranslationCache::Found& found) { hold.add(found); };
  at(1, [&] {
    for (const std::uint64_t page : {4, 5}) cache_->find({kMine, page * kPage, true, true, 1}, keep);
  });
  at(5, [&] { take(5, 10); });
  at(10, [&] {
    EXPECT_FALSE(hold.begin());
    take(4, 11);  // not held either
  });
  bench_.run();
  EXPECT_THAT(invalidated_, ::testing::ElementsAre(10, 11));
}

// The answer to a translation request that an invalidation overtakes is discarded.
TEST_F(TranslationCacheTest, AnOldAnswerIsNotBelieved) {
  walk_ = Duration{3'000'000};
  put(4, true, 7 * kPage);
  Answer found;
  at(1, [&] { found = find(4, true, true); });
  at(3, [&] {
    take(4);
    put(4, true, 8 * kPage);
  });
  bench_.run();
  EXPECT_EQ((*found)->found.address, 8 * kPage);
  EXPECT_EQ(cache_->counters().translations, 2u);
}

TEST_F(TranslationCacheTest, AnInvalidationHasARangeAndAProcess) {
  for (std::uint64_t page = 0; page < 8; ++page) put(page);
  at(1, [&] {
    for (std::uint64_t page = 0; page < 8; ++page) find(page, true, true);
  });
  at(5, [&] {
    cache_->invalidate({kMine + 1, 0, 8, 1});
    cache_->invalidate({kMine, 2 * kPage, 3, 2});
  });
  at(10, [&] {
    for (std::uint64_t page = 0; page < 8; ++page) EXPECT_EQ(bool(*find(page, true, true)), page<2 || page> 4);
    cache_->invalidate({kMine, 0, ~0ull, 3});
    EXPECT_FALSE(*find(7, true, true));
  });
  bench_.run();
  EXPECT_EQ(invalidated_.size(), 3u);
}

TEST_F(TranslationCacheTest, AResetForgetsAllAndLeavesNobodyWaiting) {
  put(4);
  TranslationCache::Hold hold(*cache_);
  Answer waits;
  at(1, [&] {
    cache_->find({kMine, 4 * kPage, true, true, 1}, [&](const TranslationCache::Found& found) {
      hold.add(found);
      EXPECT_TRUE(hold.begin());
    });
    waits = find(9, true, true);
  });
  at(5, [&] {
    take(4, 10);
    EXPECT_TRUE(invalidated_.empty());
    bench_.dma().reset();
    cache_->reset();
    EXPECT_THAT(invalidated_, ::testing::ElementsAre(10));
    hold.end();
    cache_->respond({requests_.at(0).index, true});  // answers a page request from before the reset
    find(9, true, true);
  });
  at(10, [&] {
    ASSERT_EQ(requests_.size(), 2u);
    EXPECT_NE(requests_[1].index, requests_[0].index);
  });
  bench_.run();
  EXPECT_FALSE(*waits);
  EXPECT_FALSE(hold.begin());
}

class FewPlaces : public TranslationCacheTest {
 protected:
  FewPlaces() : TranslationCacheTest({.entries = 2, .ways = 2, .page_requests = 2}) {}
};

TEST_F(FewPlaces, TheOneUsedLongestAgoLeaves) {
  for (std::uint64_t page : {1, 2, 3}) put(page);
  at(1, [&] { find(1, false, true); });
  at(3, [&] { find(2, false, true); });
  at(5, [&] { EXPECT_TRUE(*find(1, false, true)); });
  at(7, [&] { find(3, false, true); });
  at(9, [&] {
    EXPECT_TRUE(*find(1, false, true));
    EXPECT_TRUE(*find(3, false, true));
    EXPECT_FALSE(*find(2, false, true));
  });
  bench_.run();
  EXPECT_EQ(cache_->counters().evictions, 2u);
}

// Two page requests at a time; the third is sent when one of them is answered.
TEST_F(FewPlaces, PageRequestsAreLimited) {
  std::vector<Answer> found;
  at(1, [&] {
    for (std::uint64_t page : {1, 2, 3}) found.push_back(find(page, true, true));
  });
  at(5, [&] {
    EXPECT_EQ(requests_.size(), 2u);
    EXPECT_EQ(cache_->counters().page_request_waits, 1u);
    put(1);
    cache_->respond({requests_[0].index, true});
  });
  at(10, [&] {
    ASSERT_EQ(requests_.size(), 3u);
    EXPECT_EQ(requests_[2].address, 3 * kPage);
    EXPECT_TRUE(*found[0]);
    EXPECT_FALSE(*found[1]);
  });
  bench_.run();
}

}  // namespace
}  // namespace rnicsim::nic::translation_cache_test
