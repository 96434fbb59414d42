#include "npy.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <weightmill/base/error.h>
#include <testkit/random.h>

namespace weightmill {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Bytes = std::vector<std::uint8_t>;

/// A file of version 1 with `header` as it stands.
Bytes file_of(const std::string& header, const Bytes& data, unsigned version = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  for (std::size_t i = 0; i < (version == 1 ? 2u : 4u); ++i) text += static_cast<char>(header.size() >> (8 * i) & 0xff);
  text += header;
  Bytes file(text.begin(), text.end());
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

Bytes bytes_of(const NpyArray& array) { return {array.data.begin(), array.data.end()}; }

TEST(Npy, ReadsWhatItWrites) {
  for (const std::uint64_t seed : testkit::seeds(100)) {
    SCOPED_TRACE(seed);
    testkit::Random random(seed);
    const DType dtype =
        std::array{DType::i16, DType::i8, DType::u8, DType::f32, DType::f64, DType::boolean}[random.bits() % 6];
    Shape shape;
    for (std::int64_t rank = random.integer(0, 4); rank > 0; --rank) shape.push_back(random.integer(0, 5));
    Bytes data(size_bytes(shape, dtype, "t"));
    for (auto& byte : data) byte = static_cast<std::uint8_t>(random.bits());
    const Bytes file = make_npy(dtype, shape, data);
    const NpyArray array = parse_npy(file, "a.npy");
    EXPECT_EQ(array.dtype, dtype);
    EXPECT_EQ(array.shape, shape);
    EXPECT_EQ(bytes_of(array), data);
  }
}

TEST(Npy, ReadsEveryVersionAndAnyOrderOfKeys) {
  for (const unsigned version : {1u, 2u, 3u}) {
    const Bytes file = file_of(R"({"shape": (2,1),"fortran_order":False , 'descr':'<i2'}  )", {1, 0, 2, 0}, version);
    const NpyArray array = parse_npy(file, "a.npy");
    EXPECT_EQ(array.dtype, DType::i16);
    EXPECT_THAT(array.shape, ElementsAre(2, 1));
    EXPECT_THAT(bytes_of(array), ElementsAre(1, 0, 2, 0));
  }
}

TEST(Npy, SwapsBigEndianBytes) {
  const Bytes file = file_of("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", {1, 2, 3, 4});
  EXPECT_THAT(bytes_of(parse_npy(file, "a.npy")), ElementsAre(2, 1, 4, 3));
}

TEST(Npy, TakesFortranOrderWhereItIsCOrder) {
  const Bytes file = file_of("{'descr': '|i1', 'fortran_order': True, 'shape': (1, 3, 1), }", {1, 2, 3});
  EXPECT_THAT(bytes_of(parse_npy(file, "a.npy")), ElementsAre(1, 2, 3));
}

struct Refusal {
  const char* header;
  const char* says;
  ErrorCode code = ErrorCode::bad_file;
};

TEST(Npy, RefusesHeadersThatAreWrong) {
  const Refusal refusals[] = {
      {"{'descr': '<i2', 'fortran_order': True, 'shape': (2, 2), }", "np.ascontiguousarray", ErrorCode::unsupported},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "pickled objects", ErrorCode::unsupported},
      {"{'descr': [('x', '<i2')], 'fortran_order': False, 'shape': (2,), }", "records", ErrorCode::unsupported},
      {"{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }", "'<c8'", ErrorCode::unsupported},
      {"{'descr': '', 'fortran_order': False, 'shape': (2,), }", "type ''", ErrorCode::unsupported},
      {"{'descr': '|i2', 'fortran_order': False, 'shape': (2,), }", "without a byte order"},
      {"{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }", "has 4 bytes of data, wanted 6 for int16[3]"},
      {"{'descr': '<i2', 'fortran_order': False, 'shape': (-2,), }", "from 0 on"},
      {"{'descr': '<i2', 'fortran_order': False, 'shape': (99999999999999999999,), }", "from 0 on"},
      {"{'descr': '<i2', 'fortran_order': False, 'shape': (9999999999, 9999999999), }", "too large"},
      {"{'descr': '<i2', 'fortran_order': False, 'shape': (2 2), }", "',' or ')'"},
      {"{'descr': '<i2', 'fortran_order': False, 'shape': (2,)", "',' or '}'"},
      {"{'descr': '<i2', 'fortran_order': False, 'shape': 2, }", "no '('"},
      {"{'descr': '<i2', 'fortran_order': 0, 'shape': (2,), }", "neither True nor False"},
      {"{'descr': '<i2', 'fortran_order': False, }", "lacks"},
      {"{'descr': '<i2', 'descr': '<i2', 'fortran_order': False, 'shape': (2,), }", "twice"},
      {"{'descr': '<i2', 'fortran_order': False, 'shape': (2,), 'more': 'x'}", "'more'"},
      {"{'descr': '<i2", "text without end"},
      {"{'descr': '<i2', 'fortran_order': False, 'shape': (2,), } x", "goes on"},
      {"import os", "no '{'"},
      {"", "no '{'"},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.header);
    try {
      parse_npy(file_of(refusal.header, {1, 2, 3, 4}), "a.npy");
      ADD_FAILURE() << "nothing refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, refusal.code);
      EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("a.npy"), HasSubstr(refusal.says)));
    }
  }
}

TEST(Npy, RefusesOtherVersionsAndAnyTruncation) {
  EXPECT_THROW(parse_npy(file_of("{}", {}, 4), "a.npy"), Error);
  EXPECT_THROW(parse_npy(file_of("{}", {}, 0), "a.npy"), Error);
  const Bytes whole = make_npy(DType::i16, {2}, Bytes{1, 2, 3, 4});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(parse_npy(std::span(whole).first(size), "a.npy"), Error) << size;
  }
}

TEST(Npy, RefusesToWriteWhatNumpyCannotHold) {
  EXPECT_THROW(make_npy(DType::i4, {2}, Bytes{1}), Error);
  EXPECT_THROW(make_npy(DType::i16, {2}, Bytes{1, 2, 3}), Error);
}

TEST(Npy, GoesThroughAFile) {
  const auto path = std::filesystem::temp_directory_path() / ("weightmill_" + std::to_string(getpid()) + ".npy");
  write_npy(path, DType::u8, {3}, Bytes{7, 8, 9});
  EXPECT_THAT(bytes_of(read_npy(path)), ElementsAre(7, 8, 9));
  std::filesystem::remove(path);
  EXPECT_THROW(read_npy(path), Error);
}

}  // namespace
}  // namespace weightmill
