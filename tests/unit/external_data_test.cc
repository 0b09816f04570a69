// External data: found beside the model, refused elsewhere, checked before it is needed.
#include "ir/onnx/external_data.h"

#include <sys/stat.h>

#include "ir/onnx/model_file.h"
#include "ir/rewriter.h"
#include "tests/unit/models.h"

namespace ascend_fuse {
namespace {

using namespace ascend_fuse::testing;  // NOLINT

onnx::ModelProto External(const std::string& location, const std::string& offset, const std::string& length) {
  onnx::ModelProto proto = EmptyModel();
  auto* tensor = proto.mutable_graph()->add_initializer();
  tensor->set_name("w");
  tensor->set_data_type(onnx::TensorProto::INT32);
  tensor->add_dims(4);
  tensor->set_data_location(onnx::TensorProto::EXTERNAL);
  auto entry = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    auto* pair = tensor->add_external_data();
    pair->set_key(key);
    pair->set_value(value);
  };
  entry("location", location);
  entry("offset", offset);
  entry("length", length);
  AddNode(proto.mutable_graph(), "Neg", {"w"}, {"y"}, "neg");
  proto.mutable_graph()->add_output()->set_name("y");
  return proto;
}

TEST(ExternalData, LocationsThatAreRefused) {
  for (const char* bad : {"", "/etc/passwd", "../w.bin", "a/../../w.bin", "a/..", "C:\\w.bin", "..\\w.bin"}) {
    EXPECT_EQ(CheckExternalLocation(bad).code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_FALSE(LoadModelFromBytes(External(bad, "", "").SerializeAsString()).ok()) << bad;
  }
  for (const char* good : {"w.bin", "data/w.bin", "..w.bin", "w..bin", "./w.bin"}) {
    EXPECT_TRUE(CheckExternalLocation(good).ok()) << good;
  }
}

TEST(ExternalData, ReadsBesideTheModel) {
  TemporaryDirectory directory;
  WriteWhole(directory / "m.onnx", External("w.bin", "4", "16").SerializeAsString());
  auto load = [&] { return LoadModel(directory / "m.onnx"); };
  EXPECT_EQ(load().status().code(), absl::StatusCode::kFailedPrecondition);  // missing
  EXPECT_HAS(std::string(load().status().message()), "w.bin");
  WriteWhole(directory / "w.bin", "short");
  EXPECT_EQ(load().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_HAS(std::string(load().status().message()), "has 5 bytes, but the model needs 16 bytes from byte 4");
  const int32_t data[] = {0, 1, -2, 3, -4};
  WriteWhole(directory / "w.bin", std::string(reinterpret_cast<const char*>(data), sizeof(data)));
  auto model = load();
  ASSERT_TRUE(model.ok()) << model.status();
  const Tensor& tensor = *(*model)->graph().initializers()[0]->initializer;
  EXPECT_EQ(tensor.storage, Storage::kExternal);
  auto values = ReadIntegers(**model, tensor, 4);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(*values, (std::vector<int64_t>{1, -2, 3, -4}));
  EXPECT_EQ((*model)->external_locations(), std::vector<std::string>{"w.bin"});

  // Saving beside it leaves the data alone; elsewhere the data must be there too.
  Rewriter(model->get()).Rename(FindNode((*model)->graph(), "neg"), "npu", "Neg");
  EXPECT_TRUE(SaveModel(**model, directory / "out.onnx").ok());
  EXPECT_TRUE(LoadModel(directory / "out.onnx").ok());
  EXPECT_FALSE(SaveModel(**model, directory / "w.bin").ok());
  TemporaryDirectory other;
  absl::Status status = SaveModel(**model, other / "out.onnx");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_HAS(std::string(status.message()), "--copy-data");
  EXPECT_TRUE(other.Files().empty());
  std::filesystem::copy(directory / "w.bin", other / "w.bin");
  EXPECT_TRUE(SaveModel(**model, other / "out.onnx").ok());
  EXPECT_TRUE(LoadModel(other / "out.onnx").ok());

  // The file shrinks after loading.
  WriteWhole(directory / "w.bin", "");
  EXPECT_EQ(ReadIntegers(**model, tensor, 4).status().code(), absl::StatusCode::kDataLoss);
}

TEST(ExternalData, RefusesLinksAndSpecialFiles) {
  TemporaryDirectory outside;
  WriteWhole(outside / "secret", std::string(16, 's'));
  TemporaryDirectory directory;
  auto load = [&](const std::string& location) {
    WriteWhole(directory / "m.onnx", External(location, "", "").SerializeAsString());
    return LoadModel(directory / "m.onnx").status();
  };
  std::filesystem::create_symlink(outside / "secret", directory / "link");
  EXPECT_HAS(std::string(load("link").message()), "symbolic link");
  std::filesystem::create_directory_symlink(outside.path(), directory / "folder");
  EXPECT_EQ(load("folder/secret").code(), absl::StatusCode::kFailedPrecondition);
  std::filesystem::create_hard_link(outside / "secret", directory / "hard");
  EXPECT_HAS(std::string(load("hard").message()), "hard link");
  ASSERT_EQ(mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(load("pipe").code(), absl::StatusCode::kFailedPrecondition);
  std::filesystem::create_directory(directory / "real");
  EXPECT_EQ(load("real").code(), absl::StatusCode::kFailedPrecondition);
  WriteWhole(directory / "real/w.bin", std::string(16, 'w'));
  EXPECT_TRUE(load("real/w.bin").ok());
}

TEST(ExternalData, BadNumbersAndDoubleData) {
  for (const char* bad : {"-1", "1e3", "0x10", "99999999999999999999", " 1"}) {
    EXPECT_FALSE(LoadModelFromBytes(External("w.bin", bad, "").SerializeAsString()).ok()) << bad;
    EXPECT_FALSE(LoadModelFromBytes(External("w.bin", "", bad).SerializeAsString()).ok()) << bad;
  }
  onnx::ModelProto both = External("w.bin", "", "");
  both.mutable_graph()->mutable_initializer(0)->set_raw_data("abcd");
  EXPECT_FALSE(LoadModelFromBytes(both.SerializeAsString()).ok());
  // In memory there is nowhere to look: references are kept, elements cannot be read.
  auto model = MustLoad(External("w.bin", "", "16").SerializeAsString());
  EXPECT_EQ(ReadIntegers(*model, *model->graph().initializers()[0]->initializer, 4).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(ExternalData, InAttributesToo) {
  onnx::ModelProto proto = EmptyModel();
  auto* attribute = AddNode(proto.mutable_graph(), "Constant", {}, {"c"}, "c")->add_attribute();
  attribute->set_name("value");
  attribute->set_type(onnx::AttributeProto::TENSOR);
  *attribute->mutable_t() = External("../w.bin", "", "").graph().initializer(0);
  EXPECT_FALSE(LoadModelFromBytes(proto.SerializeAsString()).ok());
}

}  // namespace
}  // namespace ascend_fuse
