#include "../openvino.h"

#include <ctime>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weightmill/base/error.h>

#include "testkit/ir_builder.h"

namespace weightmill {
namespace {

using testing::HasSubstr;
using testkit::IrBuilder;

Ir parse(const std::string& xml, const std::vector<std::uint8_t>& bin) {
  return Ir({reinterpret_cast<const std::uint8_t*>(xml.data()), xml.size()}, "m.xml", bin, "m.bin");
}

/// The message that parsing ends in.
std::string refusal(const std::string& xml, const std::vector<std::uint8_t>& bin,
                    ErrorCode code = ErrorCode::bad_file) {
  try {
    parse(xml, bin);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "was not refused";
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// Weights behind a FakeQuantize, as a network has them.
IrBuilder small_model() {
  IrBuilder ir;
  const int w = ir.constant("w", "f32", {2, 3}, {1, 2, 3, 4, 5, 6});
  const int fq = ir.fake_quantize("fq", w, -1, 1, 255);
  const int x = ir.parameter("x", {2, 3});
  ir.result(ir.binary("sum", "Add", x, fq));
  return ir;
}

TEST(OpenvinoIr, ReadsLayersEdgesAndPayloads) {
  const IrBuilder built = small_model();
  for (const int version : {10, 11}) {
    const Ir ir = parse(built.xml(version), built.bin());
    ASSERT_EQ(ir.n_graphs(), 1u);
    const auto& layers = ir.graph(0).layers;
    ASSERT_EQ(layers.size(), 7u);
    EXPECT_EQ(layers[3].type, "FakeQuantize");
    EXPECT_EQ(layers[3].inputs[0].layer, 0u);
    EXPECT_TRUE(layers[3].constant);
    EXPECT_FALSE(layers[5].constant);
    EXPECT_EQ(layers[3].uses.size(), 1u);
    EXPECT_EQ(ir.attribute(0, 3, "levels"), "255");
    EXPECT_EQ(ir.attribute(0, 3, "nothing"), std::nullopt);
    const IrConstant w = ir.constant(0, 0);
    EXPECT_EQ(w.shape, (Shape{2, 3}));
    EXPECT_EQ(w.bytes.size(), 24u);
  }
}

TEST(OpenvinoIr, KnowsTheBytesOfEveryElementType) {
  struct Case {
    const char* type;
    std::uint64_t bytes_of_5;
  };
  for (const auto& [type, bytes] :
       {Case{"f32", 20},   Case{"f16", 10},   Case{"bf16", 10},  Case{"f64", 40},   Case{"i8", 5},
        Case{"u8", 5},     Case{"i16", 10},   Case{"u16", 10},   Case{"i32", 20},   Case{"u32", 20},
        Case{"i64", 40},   Case{"u64", 40},   Case{"i4", 3},     Case{"u4", 3},     Case{"nf4", 3},
        Case{"f4e2m1", 3}, Case{"f8e4m3", 5}, Case{"f8e5m2", 5}, Case{"f8e8m0", 5}, Case{"u1", 1},
        Case{"u2", 2},     Case{"u3", 3},     Case{"u6", 6},     Case{"boolean", 5}}) {
    ASSERT_NE(ir_type(type), nullptr) << type;
    EXPECT_EQ(ir_size_bytes(*ir_type(type), 5, "t"), bytes) << type;
  }
  EXPECT_EQ(ir_type("f99"), nullptr);
  EXPECT_THROW(ir_size_bytes(*ir_type("f64"), ~std::uint64_t{0}, "t"), Error);
}

TEST(OpenvinoIr, AnUneditedModelKeepsItsXml) {
  // As OpenVINO writes it; the strange layer and attribute stand for what this program knows nothing of.
  const std::string xml =
      "<?xml version=\"1.0\"?>\n<net name=\"a\" version=\"11\" zeta=\"1\" alpha=\"2\">\n\t<layers>\n"
      "\t\t<layer id=\"7\" name=\"p &amp; q\" type=\"Odd\" version=\"opset99\" weird=\"&lt;\">\n"
      "\t\t\t<data b=\"1\" a=\"2\" />\n\t\t\t<rt_info>\n\t\t\t\t<attribute name=\"x\" version=\"0\" value=\"y\" "
      "/>\n\t\t\t</rt_info>\n"
      "\t\t\t<output>\n\t\t\t\t<port id=\"3\" precision=\"FP32\" "
      "names=\"n,m\">\n\t\t\t\t\t<dim>-1</dim>\n\t\t\t\t</port>\n"
      "\t\t\t</output>\n\t\t</layer>\n\t</layers>\n\t<edges />\n\t<!-- a remark -->\n\t<rt_info>\n"
      "\t\t<info name=\"OpenVINO Runtime\" value=\"1\" />\n\t</rt_info>\n</net>\n";
  EXPECT_EQ(parse(xml, {}).xml(), xml);
}

TEST(OpenvinoIr, ReadsBodiesOfLayers) {
  const IrBuilder body = small_model();
  const std::string inner = body.xml();
  const auto begin = inner.find("<layers>"), end = inner.find("<rt_info");
  const std::string xml =
      "<net name=\"a\" version=\"11\"><layers><layer id=\"0\" name=\"if\" type=\"If\" version=\"opset8\">"
      "<then_body>" +
      inner.substr(begin, end - begin) + "</then_body></layer></layers><edges /></net>";
  const Ir ir = parse(xml, body.bin());
  ASSERT_EQ(ir.n_graphs(), 2u);
  EXPECT_EQ(ir.graph(1).layers.size(), 7u);
}

TEST(OpenvinoIr, PutsIntegersInThePlaceOfWeights) {
  IrBuilder built;
  const int w = built.constant("w", "f16", {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const int wide = built.convert("wide", w, "f32");
  const int x = built.parameter("x", {2, 4});
  built.result(built.binary("sum", "Add", x, wide));
  built.result(built.binary("difference", "Add", wide, x));
  Ir ir = parse(built.xml(), built.bin());
  IrQuantizedWeight weight;
  weight.name = "w";
  weight.before = 0;
  weight.readers = {{3, 1}, {5, 0}};
  weight.code_type = DType::u4;
  weight.float_type = DType::f16;
  weight.codes_shape = {2, 2, 2};
  weight.scale_shape = {2, 2, 1};
  weight.shape = {2, 4};
  weight.codes = {0, 4};
  weight.scale = {4, 16};
  weight.zero_point = IrPayload{20, 2};
  weight.target_shape = IrPayload{22, 16};
  ir.dequantize_weight(0, weight);
  ir.remove(0, 1);
  ir.remove(0, 0);
  const std::vector<std::uint8_t> bin(64);
  const Ir after = parse(ir.xml(), bin);
  std::vector<std::string> types;
  for (const IrLayer& layer : after.graph(0).layers) types.push_back(layer.type);
  EXPECT_THAT(types, testing::ElementsAre("Const", "Convert", "Const", "Convert", "Subtract", "Const", "Multiply",
                                          "Const", "Reshape", "Convert", "Parameter", "Add", "Result", "Add",
                                          "Result"));
  const auto& layers = after.graph(0).layers;
  EXPECT_EQ(layers[9].uses.size(), 2u);
  EXPECT_EQ(layers[11].inputs[1].layer, 9u);
  EXPECT_EQ(layers[13].inputs[0].layer, 9u);
  EXPECT_EQ(after.constant(0, 0).shape, (Shape{2, 2, 2}));
  EXPECT_EQ(after.attribute(0, 9, "destination_type"), "f16");
}

TEST(OpenvinoIr, ManyPortsTakeNoTimeOfTheirOwn) {
  constexpr int kPorts = 200000;
  std::string ports, edges;
  for (int i = 0; i < kPorts; ++i) {
    ports += fmt::format("<port id=\"{}\"/>", kPorts - i);
    edges += fmt::format("<edge from-layer=\"0\" from-port=\"0\" to-layer=\"1\" to-port=\"{}\"/>", i + 1);
  }
  const std::string xml =
      "<net version=\"11\"><layers><layer id=\"0\" type=\"Parameter\"><output><port id=\"0\"/></output></layer>"
      "<layer id=\"1\" type=\"Concat\"><input>" +
      ports + "</input></layer></layers><edges>" + edges + "</edges></net>";
  const std::clock_t started = std::clock();
  const Ir ir = parse(xml, {});
  EXPECT_EQ(ir.graph(0).layers[0].uses.front().input, std::size_t{kPorts - 1});
  EXPECT_LT(std::clock() - started, 5 * CLOCKS_PER_SEC) << "took a minute when each edge looked through all ports";
}

TEST(OpenvinoIr, RefusesBrokenXml) {
  EXPECT_THAT(refusal("<net", {}), HasSubstr("broken XML"));
  EXPECT_THAT(refusal("<a/>", {}), HasSubstr("<net>"));
  EXPECT_THAT(refusal("<net version=\"11\"/>", {}), HasSubstr("<layers>"));
  EXPECT_THAT(refusal("<net version=\"9\"><layers/></net>", {}, ErrorCode::unsupported), HasSubstr("version '9'"));
  EXPECT_THAT(refusal("<net version=\"12\"><layers/></net>", {}, ErrorCode::unsupported), HasSubstr("wanted 10 or 11"));
  std::string deep = "<net version=\"11\"><layers/>";
  for (int i = 0; i < 100000; ++i) deep += "<a>";
  for (int i = 0; i < 100000; ++i) deep += "</a>";
  EXPECT_THAT(refusal(deep + "</net>", {}), HasSubstr("nested"));
}

TEST(OpenvinoIr, RefusesBrokenLayersAndEdges) {
  const IrBuilder built = small_model();
  const std::string xml = built.xml();
  const auto& bin = built.bin();
  const std::string edge = "<edge from-layer=\"0\" from-port=\"0\" to-layer=\"3\" to-port=\"0\" />";
  EXPECT_THAT(refusal(replaced(xml, "id=\"1\"", "id=\"0\""), bin), HasSubstr("same id"));
  EXPECT_THAT(refusal(replaced(xml, "id=\"1\"", "id=\"x\""), bin), HasSubstr("whole number"));
  EXPECT_THAT(refusal(replaced(xml, "layer id=\"1\"", "layer"), bin), HasSubstr("id is missing"));
  EXPECT_THAT(refusal(replaced(xml, edge, ""), bin), HasSubstr("no edge leads to input port 0"));
  EXPECT_THAT(refusal(replaced(xml, edge, edge + edge), bin), HasSubstr("two edges"));
  EXPECT_THAT(refusal(replaced(xml, edge, replaced(edge, "from-layer=\"0\"", "from-layer=\"99\"")), bin),
              HasSubstr("no layer"));
  EXPECT_THAT(refusal(replaced(xml, edge, replaced(edge, "from-port=\"0\"", "from-port=\"4\"")), bin),
              HasSubstr("output port 4"));
  EXPECT_THAT(refusal(replaced(xml, edge, replaced(edge, "to-port=\"0\"", "to-port=\"9\"")), bin),
              HasSubstr("input port 9"));
  EXPECT_THAT(refusal(replaced(xml, "type=\"Add\"", "type=\"Convert\""), bin), HasSubstr("Convert with 2 inputs"));
  EXPECT_THAT(refusal(replaced(xml, "type=\"FakeQuantize\"", "type=\"Multiply\""), bin), HasSubstr("wanted 2 and 1"));
}

TEST(OpenvinoIr, RefusesCycles) {
  IrBuilder built;
  const int a = built.parameter("a", {1});
  built.binary("b", "Add", a, a);
  built.binary("c", "Add", 1, 1);
  const std::string xml = replaced(built.xml(), "from-layer=\"0\" from-port=\"0\" to-layer=\"1\" to-port=\"1\"",
                                   "from-layer=\"2\" from-port=\"2\" to-layer=\"1\" to-port=\"1\"");
  EXPECT_THAT(refusal(xml, {}), HasSubstr("cycle"));
}

TEST(OpenvinoIr, RefusesPayloadsOutsideTheBin) {
  const IrBuilder built = small_model();
  const std::string xml = built.xml();
  const auto& bin = built.bin();
  EXPECT_THAT(refusal(xml, {}), HasSubstr("needs 24 bytes at offset 0, but m.bin has 0"));
  EXPECT_THAT(refusal(replaced(xml, "size=\"24\"", "size=\"25000\""), bin), HasSubstr("needs 25000"));
  EXPECT_THAT(refusal(replaced(xml, "offset=\"0\"", "offset=\"18446744073709551615\""), bin), HasSubstr("but m.bin"));
  EXPECT_THAT(refusal(replaced(xml, "offset=\"0\"", "offset=\"-1\""), bin), HasSubstr("whole number"));
  EXPECT_THAT(refusal(replaced(xml, "size=\"24\"", "size=\"23\""), bin), HasSubstr("its shape wants 24"));
  EXPECT_THAT(refusal(replaced(xml, " size=\"24\"", ""), bin), HasSubstr("size is missing"));
  EXPECT_THAT(refusal(replaced(xml, "shape=\"2, 3\" offset", "shape=\"2, -3\" offset"), bin),
              HasSubstr("extents >= 0"));
  EXPECT_THAT(refusal(replaced(xml, "shape=\"2, 3\" offset", "shape=\"2 3\" offset"), bin), HasSubstr("commas"));
  std::string axes = "1";
  for (int i = 0; i < 64; ++i) axes += ", 1";
  EXPECT_THAT(refusal(replaced(xml, "shape=\"2, 3\" offset", "shape=\"" + axes + "\" offset"), bin),
              HasSubstr("more than 64 extents"));
  EXPECT_THAT(refusal(replaced(xml, "shape=\"2, 3\" offset", "shape=\"9999999999, 9999999999\" offset"), bin),
              HasSubstr(""));
}

TEST(OpenvinoIr, AcceptsWhatOpenvinoAccepts) {
  const IrBuilder built = small_model();
  const std::string xml = built.xml();
  EXPECT_NO_THROW(parse(replaced(xml, "<rt_info />", ""), built.bin())) << "no rt_info";
  EXPECT_NO_THROW(parse(replaced(xml, "precision=\"FP32\"", "precision=\"WRONG\""), built.bin()))
      << "ports are not read";
  const Ir longer = parse(replaced(xml, "size=\"24\"", "size=\"28\""), built.bin());
  EXPECT_EQ(longer.constant(0, 0).bytes.size(), 24u) << "a payload may be longer than its shape";
  const Ir unknown =
      parse(replaced(xml, "element_type=\"f32\" shape=\"2", "element_type=\"q99\" shape=\"2"), built.bin());
  EXPECT_EQ(unknown.constant(0, 0).type, nullptr);
}

TEST(OpenvinoIr, RecognisesItsFiles) {
  const auto looks = [](std::string_view text) {
    return is_ir({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  };
  EXPECT_TRUE(looks("<?xml version=\"1.0\"?>\n<net name=\"a\" version=\"11\">"));
  EXPECT_TRUE(looks("\xef\xbb\xbf<net>"));
  EXPECT_FALSE(looks("<network>"));
  EXPECT_FALSE(looks("\x08\x07\x12"));
  EXPECT_FALSE(looks(""));
}

}  // namespace
}  // namespace weightmill
