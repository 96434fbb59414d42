#include "safetensors.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <weightmill/base/error.h>
#include <testkit/random.h>

namespace weightmill {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Bytes = std::vector<std::uint8_t>;

class SafetensorsFile : public testing::Test {
 protected:
  void TearDown() override { fs::remove(path_); }

  Bytes written(std::span<const SafetensorsSource> tensors, const std::map<std::string, std::string>& metadata = {}) {
    write_safetensors(path_, tensors, metadata);
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string refusal_of(std::span<const SafetensorsSource> tensors) {
    try {
      write_safetensors(path_, tensors);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::bad_request);
      EXPECT_FALSE(fs::exists(path_));
      return error.what();
    }
    return "nothing refused";
  }

  fs::path path_ = fs::temp_directory_path() / ("weightmill_" + std::to_string(getpid()) + ".safetensors");
};

/// A file with `header` as it stands.
Bytes file_of(const std::string& header, std::size_t n_data) {
  Bytes file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<std::uint8_t>(header.size() >> (8 * i)));
  file.insert(file.end(), header.begin(), header.end());
  file.resize(file.size() + n_data);
  return file;
}

TEST_F(SafetensorsFile, IsWrittenAsTheFormatSays) {
  const Bytes a{1, 2, 3}, b{4, 0, 5, 0};
  const SafetensorsSource tensors[] = {{"a", DType::u8, {3}, a}, {"b", DType::i16, {2, 1}, b}};
  const Bytes file = written(tensors, {{"made", "by \"us\""}});
  const std::string header =
      R"({"__metadata__":{"made":"by \"us\""},"b":{"dtype":"I16","shape":[2,1],"data_offsets":[0,4]},)"
      R"("a":{"dtype":"U8","shape":[3],"data_offsets":[4,7]}})";
  const std::size_t padded = (header.size() + 7) / 8 * 8;
  EXPECT_EQ(file[0], padded);
  EXPECT_EQ(std::string(file.begin() + 8, file.end() - 7), header + std::string(padded - header.size(), ' '));
  EXPECT_EQ(Bytes(file.end() - 7, file.end()), (Bytes{4, 0, 5, 0, 1, 2, 3}));
}

TEST_F(SafetensorsFile, TakesBytesFromProducersInPieces) {
  const auto produce = [](const ByteSink& sink) {
    for (const std::uint8_t byte : Bytes{1, 2, 3}) sink({&byte, 1});
  };
  const SafetensorsSource tensors[] = {{"t", DType::u8, {3}, {}, produce}};
  const Bytes file = written(tensors);
  EXPECT_EQ(Bytes(file.end() - 3, file.end()), (Bytes{1, 2, 3}));
}

constexpr DType kTypes[] = {DType::f16,    DType::bf16, DType::f32, DType::f64, DType::f8e4m3,
                            DType::f8e5m2, DType::i8,   DType::i16, DType::i32, DType::i64,
                            DType::u8,     DType::u16,  DType::u32, DType::u64, DType::boolean};

TEST_F(SafetensorsFile, ReadsBackAsItWasWritten) {
  for (const std::uint64_t seed : testkit::seeds(50)) {
    SCOPED_TRACE(seed);
    testkit::Random random(seed);
    std::vector<Bytes> data;
    std::vector<SafetensorsSource> tensors;
    for (std::int64_t n = random.integer(0, 8); n > 0; --n) {
      SafetensorsSource tensor{
          "layer \"" + std::to_string(n) + "\" \u00fc", kTypes[random.bits() % std::size(kTypes)], {}, {}};
      for (std::int64_t rank = random.integer(0, 3); rank > 0; --rank) tensor.shape.push_back(random.integer(0, 5));
      data.emplace_back(size_bytes(tensor.shape, tensor.dtype, "t"));
      for (auto& byte : data.back()) byte = static_cast<std::uint8_t>(random.bits());
      tensor.data = data.back();
      tensors.push_back(std::move(tensor));
    }
    write_safetensors(path_, tensors, {{"seed", std::to_string(seed)}});
    const Safetensors read = read_safetensors(path_);
    EXPECT_EQ(read.metadata.at("seed"), std::to_string(seed));
    ASSERT_EQ(read.tensors.size(), tensors.size());
    for (const SafetensorsSource& tensor : tensors) {
      const SafetensorsTensor* found = read.find(tensor.name);
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->dtype, tensor.dtype);
      EXPECT_EQ(found->shape, tensor.shape);
      EXPECT_TRUE(std::equal(found->data.begin(), found->data.end(), tensor.data.begin(), tensor.data.end()));
      const auto offset = found->data.data() - read.file->bytes().data();
      EXPECT_EQ(offset % (size_bits(tensor.dtype) / 8), 0);
    }
    EXPECT_EQ(read.find("no such tensor"), nullptr);
  }
}

TEST_F(SafetensorsFile, IsNotWrittenFromWrongTensors) {
  const Bytes two{1, 2};
  const auto short_producer = [&](const ByteSink& sink) { sink(two); };
  const SafetensorsSource good{"a", DType::u8, {2}, two};
  EXPECT_THAT(refusal_of(std::vector{good, good}), HasSubstr("tensor 'a': is there twice"));
  EXPECT_THAT(refusal_of(std::vector<SafetensorsSource>{{"a", DType::u8, {3}, two}}),
              HasSubstr("has 2 bytes, wanted 3"));
  EXPECT_THAT(refusal_of(std::vector<SafetensorsSource>{{"a", DType::u8, {3}, {}, short_producer}}),
              HasSubstr("gave 2 bytes, wanted 3"));
  EXPECT_THAT(refusal_of(std::vector<SafetensorsSource>{{"a", DType::i4, {4}, two}}),
              HasSubstr("write its bytes as uint8"));
  EXPECT_THAT(refusal_of(std::vector<SafetensorsSource>{{"__metadata__", DType::u8, {2}, two}}),
              HasSubstr("keeps for metadata"));
  EXPECT_THAT(refusal_of(std::vector<SafetensorsSource>{{"\xff", DType::u8, {2}, two}}), HasSubstr("no UTF-8"));
}

TEST(Safetensors, ReadsTensorsInTheOrderOfTheirBytes) {
  const Bytes file = file_of(
      R"({"b":{"shape":[1],"dtype":"U8","data_offsets":[2,3]},"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}}   )",
      3);
  const Safetensors read = parse_safetensors(file, "f");
  ASSERT_EQ(read.tensors.size(), 2u);
  EXPECT_EQ(read.tensors[0].name, "a");
  EXPECT_EQ(read.tensors[1].name, "b");
}

struct Refusal {
  const char* header;
  const char* says;
  ErrorCode code = ErrorCode::bad_file;
};

TEST(Safetensors, RefusesHeadersThatAreWrong) {
  const Refusal refusals[] = {
      {R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})", "ends at byte 5 of 4"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", "has 4 bytes of data, its tensors take 3"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})", "begins at byte 1 of the data, wanted 0"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})",
       "'b': begins at byte 1"},
      {R"({"a":{"dtype":"I16","shape":[4],"data_offsets":[0,4]}})", "wanted 8 bytes for [4]"},
      {R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[4,0]}})", "begins at byte 4"},
      {R"({"a":{"dtype":"U8","shape":[9223372036854775807,2],"data_offsets":[0,4]}})", "too large"},
      {R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,4]}})", "number of 18446744073709551615"},
      {R"({"a":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,4]}})", "fraction"},
      {R"({"a":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}})", "negative"},
      {R"({"a":{"dtype":"U8","shape":[4.0],"data_offsets":[0,4]}})", "fraction"},
      {R"({"a":{"dtype":"U8","shape":[[4]],"data_offsets":[0,4]}})", "a list"},
      {R"({"a":{"dtype":"U8","shape":4,"data_offsets":[0,4]}})", "a number"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4,4]}})", "3 data_offsets, wanted 2"},
      {R"({"a":{"dtype":"U8","shape":[4]}})", "lacks"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":"y"}})", "a string"},
      {R"({"a":{"dtype":"U8","shape":[4],"shape":[4],"data_offsets":[0,4]}})", "'shape' twice"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       "has 'a' twice"},
      {R"({"a":{"dtype":"F4","shape":[8],"data_offsets":[0,4]}})", "'F4'", ErrorCode::unsupported},
      {R"({"a":{"dtype":{"x":"U8"},"shape":[4],"data_offsets":[0,4]}})", "an object"},
      {R"({"__metadata__":{"a":1}})", "a number"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", "metadata 'a' twice"},
      {R"({"__metadata__":"x"})", "a string"},
      {R"({"a":null})", "null"},
      {R"({"a":true})", "a truth value"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}} {})", "no JSON"},
      {R"({"a":{"dtype":"U8")", "no JSON"},
      {"{\"\xff\":{}}", "no JSON"},
      {R"([])", "begins with '{'"},
      {"", "begins with '{'"},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.header);
    try {
      parse_safetensors(file_of(refusal.header, 4), "f.safetensors");
      ADD_FAILURE() << "nothing refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, refusal.code);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("f.safetensors"), HasSubstr(refusal.says)));
    }
  }
}

TEST(Safetensors, RefusesDeepNestingWithoutRecursion) {
  EXPECT_THROW(parse_safetensors(file_of("{\"a\":" + std::string(1 << 20, '['), 0), "f"), Error);
}

TEST(Safetensors, RefusesLengthsThatAreWrong) {
  EXPECT_THROW(parse_safetensors(Bytes(7), "f"), Error);
  Bytes file = file_of("{}", 0);
  EXPECT_NO_THROW(parse_safetensors(file, "f"));
  file[0] = 3;
  EXPECT_THROW(parse_safetensors(file, "f"), Error);
  file[7] = 0xff;
  EXPECT_THROW(parse_safetensors(file, "f"), Error);
}

}  // namespace
}  // namespace weightmill
