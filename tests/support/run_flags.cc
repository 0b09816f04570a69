#include "tests/support/run_flags.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fmt/format.h"
#include "ir/status_macros.h"
#include "passes/option_names.h"

namespace ascend_fuse::testing {
namespace {

absl::Status AddRules(const std::string& folder, const std::string& name, OptimizeOptions* options) {
  const std::string path = (std::filesystem::path(folder) / name).generic_string();
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(fmt::format("the rules file {} cannot be read", path));
  options->rule_files.emplace_back(name, std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>()));
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadRunFlags(const std::vector<std::string>& words, const std::string& folder, OptimizeOptions* options) {
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (name == "--target") {
      const bool file = std::filesystem::path(value).extension() == ".txtpb";
      options->target.chip = file ? (std::filesystem::path(folder) / value).generic_string() : value;
    } else if (name == "--cann") {
      options->target.cann = value;
    } else if (name == "--style") {
      options->target.style = value;
    } else if (name == "--precision-mode") {
      options->target.precision_mode = value;
    } else if (word == "--plugin") {
      options->target.plugin = true;
    } else if (word == "--strict") {
      options->strict = true;
    } else if (name == "--prefer") {
      options->prefer.push_back(value);
    } else if (word == "--keep-rest") {
      options->keep_rest = true;
    } else if (name == "--tidy") {
      options->keep_rest = false;
      if (value != "all") RETURN_IF_ERROR(SetOption(options, "tidy", value));
    } else if (name == "--skip") {
      options->skip.push_back(value);
    } else if (name == "--assume") {
      const size_t equals = value.rfind('=');
      const auto kind = AssumptionFromName(value.substr(equals + 1));
      if (!kind.has_value()) return absl::InvalidArgumentError(fmt::format("{} is no assumption", word));
      options->assumptions.push_back({value.substr(0, equals), *kind});
    } else if (name == "--rules") {
      const absl::Status read = AddRules(folder, value, options);
      if (!read.ok()) return read;
    } else if (name == "--quantised") {
      RETURN_IF_ERROR(SetOption(options, "quantised", value));
    } else if (name == "--dim") {
      RETURN_IF_ERROR(SetOption(options, "dim", value));
    } else {
      return absl::InvalidArgumentError(fmt::format("{} is no flag that tests understand", word));
    }
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse::testing
