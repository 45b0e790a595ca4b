// SPDX-License-Identifier: Apache-2.0
// The JSON value: text that it writes, reads and refuses.
#include "sim/results/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace rnicsim::sim::json_test {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::string& text) {
  try {
    Json::parse(text);
  } catch (const JsonError& error) {
    return error.what();
  }
  return "";
}

Json value(int depth) {
  const auto kind = *rc::gen::inRange(0, depth > 0 ? 8 : 6);
  switch (kind) {
    case 0: return nullptr;
    case 1: return *rc::gen::arbitrary<bool>();
    case 2: return *rc::gen::arbitrary<std::int64_t>();
    case 3: return *rc::gen::arbitrary<std::uint64_t>();
    case 4: return double(*rc::gen::arbitrary<std::int32_t>()) / 1024;
    case 5: return *rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
    case 6: {
      Json array = Json::array();
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) array.push_back(value(depth - 1));
      return array;
    }
    default: {
      Json object = Json::object();
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) object["key" + std::to_string(i)] = value(depth - 1);
      return object;
    }
  }
}

TEST(Json, WhatIsWrittenIsReadAsTheSameValue) {
  EXPECT_TRUE(rc::check([] {
    const Json written = value(3);
    RC_ASSERT(Json::parse(written.dump()) == written);
    RC_ASSERT(Json::parse(written.dump(2)) == written);
    RC_ASSERT(Json::parse(written.dump()).dump() == written.dump());
  }));
}

TEST(Json, KeepsTheOrderOfMembersAndTheLastValueOfAKey) {
  Json json{{"z", 1}, {"a", 2.5}, {"list", Json::array({1, "two", nullptr})}};
  json["b"]["inside"] = true;
  json["z"] = 3;
  EXPECT_EQ(json.dump(), R"({"z":3,"a":2.5,"list":[1,"two",null],"b":{"inside":true}})");
  EXPECT_EQ(Json::parse(R"({"a": 1, "b": 2, "a": {"c": 3}})").dump(), R"({"a":{"c":3},"b":2})");
  json.erase("list");
  json.update({{"a", "new"}, {"last", 0}});
  EXPECT_EQ(json.dump(), R"({"z":3,"a":"new","b":{"inside":true},"last":0})");
}

TEST(Json, AnObjectOfManyMembers) {
  Json written = Json::object();
  std::string text = "{";
  for (int i = 0; i < 100; ++i) {
    const auto key = "key" + std::to_string(i);
    written[key] = Json{{"inside", i}};
    text += '"' + key + "\":{\"inside\":0},\"" + key + "\":{\"inside\":" + std::to_string(i) + "},";
  }
  written["last"] = true;
  EXPECT_EQ(Json::parse(text + "\"last\":true}").dump(), written.dump());
}

TEST(Json, IsMadeOfVectorsMapsAndLists) {
  EXPECT_EQ(Json(std::vector<std::string>{"a", "b"}).dump(), R"(["a","b"])");
  EXPECT_EQ(Json(std::map<std::string, int>{{"b", 2}, {"a", 1}}).dump(), R"({"a":1,"b":2})");
  EXPECT_EQ(Json({1, 2}).dump(), "[1,2]");
  EXPECT_EQ(Json({{"a", 1}, {"b", 2}}).dump(), R"({"a":1,"b":2})");
  EXPECT_EQ(Json({{"a", 1}, {"b", 2, 3}}).dump(), R"([["a",1],["b",2,3]])");
  EXPECT_EQ(Json::array({{"a", 1}, {"b", 2}}).dump(), R"([["a",1],["b",2]])");
}

TEST(Json, NumbersAreEqualByTheirValue) {
  EXPECT_EQ(Json(1), Json(1u));
  EXPECT_EQ(Json(1), Json(1.0));
  EXPECT_NE(Json(1), Json(1.5));
  EXPECT_NE(Json(1), Json("1"));
  EXPECT_NE(Json(1), Json(true));
}

TEST(Json, GivesWhatFitsTheTypeAndRefusesTheRest) {
  EXPECT_EQ(Json(7).get<std::uint8_t>(), 7);
  EXPECT_EQ(Json(7u).get<std::int64_t>(), 7);
  EXPECT_EQ(Json(7).get<double>(), 7.0);
  EXPECT_EQ(Json({1, 2}).get<std::vector<int>>(), (std::vector{1, 2}));
  EXPECT_THROW(Json(300).get<std::uint8_t>(), JsonError);
  EXPECT_THROW(Json(-1).get<std::uint64_t>(), JsonError);
  EXPECT_THROW(Json(std::numeric_limits<std::uint64_t>::max()).get<std::int64_t>(), JsonError);
  EXPECT_THROW(Json(1.5).get<int>(), JsonError);
  EXPECT_THROW(Json("1").get<double>(), JsonError);
  EXPECT_THROW(Json(1).get<bool>(), JsonError);
  EXPECT_THROW(Json(1).get<std::string>(), JsonError);
  EXPECT_THROW(Json(1).get<std::vector<int>>(), JsonError);
}

TEST(Json, SaysWhatIsNotThere) {
  const Json json{{"a", {{"b", 1}}}, {"list", Json::array({1})}};
  EXPECT_EQ(json.find("c"), nullptr);
  EXPECT_THROW(json.at("c"), JsonError);
  EXPECT_THROW(json["c"], JsonError);
  EXPECT_THROW(json["list"][1], JsonError);
  EXPECT_THROW(json["list"]["a"], JsonError);
  EXPECT_THROW(json["a"][0], JsonError);
  EXPECT_EQ(json.value("c", 5), 5);
  EXPECT_EQ(*json.find_pointer("/a/b"), Json(1));
  EXPECT_EQ(json.find_pointer("/a/c"), nullptr);
  EXPECT_EQ(json.find_pointer("/list/0"), nullptr);
  EXPECT_EQ(json.find_pointer("/a/b/c"), nullptr);
}

TEST(Json, NullHasNoElementsAndNoMembersAndBecomesEither) {
  const Json null;
  for (const Json& element : null) FAIL() << element.dump();
  for (const auto& [key, value] : null.items()) FAIL() << key << value.dump();
  Json array, object;
  array.push_back(1);
  object.update(Json::object());
  EXPECT_EQ(array.dump(), "[1]");
  EXPECT_EQ(object.dump(), "{}");
  EXPECT_THROW(Json(1).elements(), JsonError);
  EXPECT_THROW(Json::object().elements(), JsonError);
  EXPECT_THROW(Json::array().items(), JsonError);
}

TEST(Json, RefusesATextThatIsNoneAndSaysAtWhichByte) {
  for (const std::string text : {"", "{", "[1,", "{\"a\" 1}", "nul", "[1] 2", "\"\xff\"", "{1: 2}"}) {
    EXPECT_NE(error_of(text), "") << text;
    EXPECT_FALSE(Json::parse_if_valid(text)) << text;
  }
  try {
    Json::parse("[1, x]");
    FAIL();
  } catch (const JsonError& error) {
    EXPECT_EQ(error.byte, 5u);
  }
  EXPECT_EQ(error_of("1e999"), "a value of this JSON is out of range");
}

// Text from outside must not overflow the stack of recursive functions.
TEST(Json, RefusesATextThatIsNestedTooDeeply) {
  const auto nested = [](std::size_t times) { return std::string(times, '[') + std::string(times, ']'); };
  EXPECT_TRUE(Json::parse_if_valid(nested(500)));
  EXPECT_FALSE(Json::parse_if_valid(nested(501)));
  EXPECT_TRUE(Json::parse_if_valid(nested(3), 3));
  EXPECT_THAT(error_of(std::string(10'000'000, '[')), HasSubstr("nested more than 500 times"));
  EXPECT_THAT(error_of([] {
                std::string text;
                for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
                return text;
              }()),
              HasSubstr("nested more than 500 times"));
}

TEST(Json, WritesWhatIsNoUtf8AsReplacement) { EXPECT_EQ(Json("a\xff").dump(), "\"a\xef\xbf\xbd\""); }

}  // namespace
}  // namespace rnicsim::sim::json_test
