#include "patterns/target/load.h"

#include <algorithm>
#include <cctype>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "embedded/target_data.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "ir/onnx/whole_file.h"
#include "ir/status_macros.h"
#include "patterns/edit_distance.h"
#include "proto/contract.pb.h"

namespace ascend_fuse::contract {
namespace {

constexpr std::string_view kFolder = "patterns/targets/";
constexpr std::string_view kSuffix = ".txtpb";
constexpr std::string_view kCannPrefix = "cann-";
// Stands between a chip and the stock base when our op plugin is installed.
constexpr std::string_view kPlugin = "_plugin";

const embedded::File* FindBuiltIn(std::string_view name) {
  const std::string path = fmt::format("{}{}{}", kFolder, name, kSuffix);
  for (size_t i = 0; i < embedded::target_data_count; ++i) {
    if (embedded::target_data[i].path == path) return &embedded::target_data[i];
  }
  return nullptr;
}

// Names of chips, or of CANN versions. Files that start with _ are bases only.
std::vector<std::string> BuiltInNames(bool cann) {
  std::vector<std::string> names;
  for (size_t i = 0; i < embedded::target_data_count; ++i) {
    std::string_view name = embedded::target_data[i].path;
    name.remove_prefix(kFolder.size());
    name.remove_suffix(kSuffix.size());
    if (name[0] == '_') continue;
    const bool is_cann = name.substr(0, kCannPrefix.size()) == kCannPrefix;
    if (is_cann != cann) continue;
    if (is_cann) name.remove_prefix(kCannPrefix.size());
    names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (text_.empty()) text_ = fmt::format("line {}, column {}: {}", line + 1, column + 1, message);
  }
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

template <typename Message>
absl::StatusOr<OpenedFile<Message>> OpenUsersFile(const std::string& path) {
  ASSIGN_OR_RETURN(std::string text, ReadWholeFile(path));
  auto message = std::make_shared<Message>();
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(text, message.get())) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", path, error.text()));
  }
  return OpenedFile<Message>{path, true, std::move(message)};
}

// Parsed once for all targets that live at the same time.
template <typename Message>
absl::StatusOr<OpenedFile<Message>> OpenBuiltIn(const embedded::File& file) {
  struct Parsed {
    std::mutex mutex;
    absl::flat_hash_map<const embedded::File*, std::weak_ptr<const Message>> files;
  };
  static auto* const parsed = new Parsed;  // never destroyed: threads may outlive main's statics
  const std::lock_guard<std::mutex> lock(parsed->mutex);
  std::weak_ptr<const Message>& kept = parsed->files[&file];
  if (auto message = kept.lock()) return OpenedFile<Message>{std::string(file.path), false, std::move(message)};
  auto message = std::make_shared<Message>();
  if (!message->ParseFromArray(file.text.data(), static_cast<int>(file.text.size()))) {
    return absl::InternalError(fmt::format("the built-in target file {} is damaged", file.path));
  }
  kept = message;
  return OpenedFile<Message>{std::string(file.path), false, std::move(message)};
}

// A file by path or, where `built_in` is one, a built-in file; `what` and `names` are for the sentence when
// it is neither.
template <typename Message>
absl::StatusOr<OpenedFile<Message>> Open(const std::string& name, const embedded::File* built_in, std::string_view what,
                                         const std::vector<std::string>& names) {
  if (IsPath(name)) return OpenUsersFile<Message>(name);
  if (built_in != nullptr) return OpenBuiltIn<Message>(*built_in);
  return absl::NotFoundError(
      fmt::format("no {} is called {}; there are {}, or give the path of a .txtpb", what, name, fmt::join(names, ", ")));
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// "310P3", "ascend 310p3" and "Ascend310P3" are one name.
std::string Canonical(const std::string& name) {
  std::string lower = Lower(name);
  lower.erase(std::remove(lower.begin(), lower.end(), ' '), lower.end());
  return lower.starts_with("ascend") ? lower : "ascend" + lower;
}

// The words for --soc_version of a built-in chip.
std::vector<std::string> SocsOf(const std::string& chip) {
  const auto file = OpenBuiltIn<proto::TargetFile>(*FindBuiltIn(chip));
  if (!file.ok()) return {};
  return {file->data->soc().begin(), file->data->soc().end()};
}

// The chip that is named, or one of its words for --soc_version: one that is listed, or the name of the chip and a bin
// after it (ascend910b9). Where names of other chips begin like that (ascend910), only what is listed counts. "" if none.
std::string ResolveChip(const std::string& name) {
  const std::string wanted = Canonical(name);
  const std::vector<std::string> chips = ChipNames();
  if (std::find(chips.begin(), chips.end(), wanted) != chips.end()) return wanted;  // before any file is parsed for its words
  std::string best;
  for (const std::string& chip : chips) {
    const std::vector<std::string> socs = SocsOf(chip);
    if (std::any_of(socs.begin(), socs.end(), [&](const std::string& soc) { return Lower(soc) == wanted; })) return chip;
    const bool begins_others = std::any_of(chips.begin(), chips.end(), [&](const std::string& other) {
      return other.size() > chip.size() && other.starts_with(chip);
    });
    if (begins_others || !wanted.starts_with(chip) || chip.size() <= best.size()) continue;
    const bool rest_is_a_bin = std::all_of(wanted.begin() + static_cast<int>(chip.size()), wanted.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
    });
    if (rest_is_a_bin) best = chip;
  }
  return best;
}

// "; did you mean ascend310p?", or "".
std::string DidYouMean(const std::string& name) {
  constexpr size_t kLongest = 40;
  const std::string wanted = Canonical(name);
  std::string best;
  size_t least = 2 + wanted.substr(std::string_view("ascend").size()).size() / 5;  // a short name has few letters to err in
  if (name.size() > kLongest) return "";
  const auto look = [&](const std::string& candidate) {
    const size_t distance = EditDistance(wanted, Lower(candidate));
    if (distance < least) least = distance, best = candidate;
  };
  for (const std::string& chip : ChipNames()) {
    look(chip);
    for (const std::string& soc : SocsOf(chip)) look(soc);
  }
  return best.empty() ? "" : fmt::format("; did you mean {}?", best);
}

// Adds to `files`, which holds one file, its bases. `replace` may put another base in the place of one.
template <typename Message, typename Replace>
absl::Status AddBases(const std::vector<std::string>& names, Replace replace, std::vector<OpenedFile<Message>>* files) {
  std::set<std::string> seen;
  while (!files->back().data->base().empty()) {
    const std::string base = replace(files->back().data->base());
    const embedded::File* next = FindBuiltIn(base);
    if (next == nullptr || !seen.insert(base).second) {
      return absl::InvalidArgumentError(fmt::format("{}: base `{}` is not one of the built-in target files ({})",
                                                    files->back().path, base, fmt::join(names, ", ")));
    }
    ASSIGN_OR_RETURN(OpenedFile<Message> file, OpenBuiltIn<Message>(*next));
    files->push_back(std::move(file));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsPath(std::string_view name) {
  return name.find('/') != std::string_view::npos ||
         (name.size() > kSuffix.size() && name.substr(name.size() - kSuffix.size()) == kSuffix);
}

std::vector<std::string> ChipNames() { return BuiltInNames(false); }
std::vector<std::string> CannNames() { return BuiltInNames(true); }

absl::StatusOr<std::vector<OpenedFile<proto::TargetFile>>> OpenChip(const std::string& name, bool plugin) {
  std::vector<std::string> names = ChipNames();
  const embedded::File* built_in = IsPath(name) ? nullptr : FindBuiltIn(ResolveChip(name));  // which reads the words of all chips
  auto file = Open<proto::TargetFile>(name, built_in, "target", names);
  if (file.status().code() == absl::StatusCode::kNotFound && !IsPath(name)) {
    return absl::NotFoundError(std::string(file.status().message()) + DidYouMean(name));
  }
  if (!file.ok()) return file.status();
  if (file->data->chip().empty()) {
    return absl::InvalidArgumentError(fmt::format("{}: `chip` is missing", file->path));
  }
  std::vector<OpenedFile<proto::TargetFile>> files = {*std::move(file)};
  names.emplace_back(kStock);
  bool placed = !plugin;
  const auto replace = [&placed](const std::string& base) {
    placed = placed || base == kPlugin;
    if (placed || base != kStock) return base;
    placed = true;
    return std::string(kPlugin);
  };
  RETURN_IF_ERROR(AddBases(names, replace, &files));
  return files;
}

absl::StatusOr<std::vector<OpenedFile<proto::CannFile>>> OpenCann(const std::string& name) {
  const std::vector<std::string> names = CannNames();
  ASSIGN_OR_RETURN(auto file,
                   Open<proto::CannFile>(name, FindBuiltIn(fmt::format("{}{}", kCannPrefix, name)), "CANN version", names));
  std::vector<OpenedFile<proto::CannFile>> files = {std::move(file)};
  const auto keep = [](const std::string& base) { return base; };
  RETURN_IF_ERROR(AddBases({"_parser"}, keep, &files));
  return files;
}

}  // namespace ascend_fuse::contract
