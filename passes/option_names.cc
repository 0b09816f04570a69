#include "passes/option_names.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/onnx/whole_file.h"
#include "ir/status_macros.h"

namespace ascend_fuse {
namespace {

bool ParseNumber(std::string_view text, int64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseSize(std::string_view text, int64_t* number) { return ParseNumber(text, number) && *number >= 0; }

// The name of a dim as exporters write them: batch, unk__12, DynamicDimension.3.
bool IsDimName(std::string_view text) {
  if (text.empty() || text.find("..") != std::string_view::npos || absl::ascii_isdigit(static_cast<unsigned char>(text[0]))) {
    return false;
  }
  return std::all_of(text.begin(), text.end(), [](char letter) {
    return absl::ascii_isalnum(static_cast<unsigned char>(letter)) || letter == '_' || letter == '.';
  });
}

// "seq=128", "seq=1..2048", "seq=64..2048:16" for multiples of 16; "keys=seq" for the same dim.
bool ParseDim(std::string_view text, InferOptions* infer) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) return false;
  std::string_view range = text.substr(equals + 1);
  if (const std::string_view name = text.substr(0, equals); IsDimName(range) && range != name) {
    infer->equal_dims.emplace_back(name, range);
    return true;
  }
  const size_t dots = range.find("..");
  int64_t step = 1;
  if (const size_t colon = range.rfind(':'); dots != std::string_view::npos && colon != std::string_view::npos) {
    if (!ParseSize(range.substr(colon + 1), &step) || step == 0) return false;
    range = range.substr(0, colon);
  }
  int64_t low = 0, high = 0;
  if (!ParseSize(range.substr(0, dots), &low)) return false;
  high = low;
  if (dots != std::string_view::npos && !ParseSize(range.substr(dots + 2), &high)) return false;
  // The first and the last multiple in the range.
  const int64_t first = low / step + (low % step == 0 ? 0 : 1);
  const int64_t last = high / step;
  if (last < first) return false;
  infer->dims.push_back({std::string(text.substr(0, equals)), {first * step, last * step, step}});
  return true;
}

absl::Status SetDim(OptimizeOptions* options, std::string_view value) {
  if (ParseDim(value, &options->infer)) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "--dim {}: expected name=N, name=low..high, name=low..high:step or name=other, for example --dim seq=16..2048:16", value));
}

// A dim with one number, which is written into the model as well.
absl::Status SetFix(OptimizeOptions* options, std::string_view value) {
  auto& dims = options->infer.dims;
  const size_t before = dims.size();
  if (value.find("..") != std::string_view::npos || !ParseDim(value, &options->infer) || dims.size() == before) {
    return absl::InvalidArgumentError(fmt::format("--fix {}: expected name=N, for example --fix batch=1", value));
  }
  const std::string name = dims.back().first;
  if (std::count_if(dims.begin(), dims.end(), [&](const auto& dim) { return dim.first == name; }) > 1) {
    return absl::InvalidArgumentError(fmt::format("--fix {}: {} is bound twice", value, name));
  }
  options->fix.push_back(name);
  return absl::OkStatus();
}

absl::Status SetAssumption(OptimizeOptions* options, std::string_view value) {
  const size_t equals = value.rfind('=');
  const auto kind = equals == std::string_view::npos ? std::nullopt : AssumptionFromName(std::string(value.substr(equals + 1)));
  if (!kind.has_value() || equals == 0) {
    return absl::InvalidArgumentError(
        fmt::format("--assume {}: expected INPUT=ones, binary, left-padded or right-padded", value));
  }
  options->assumptions.push_back({std::string(value.substr(0, equals)), *kind});
  return absl::OkStatus();
}

absl::Status SetRules(OptimizeOptions* options, std::string_view value) {
  ASSIGN_OR_RETURN(auto text, ReadWholeFile(std::string(value)));
  options->rule_files.emplace_back(value, std::move(text));
  return absl::OkStatus();
}

absl::Status SetNames(std::vector<std::string>* names, std::string_view value) {
  while (true) {
    const size_t comma = value.find(',');
    names->emplace_back(value.substr(0, comma));
    if (comma == std::string_view::npos) return absl::OkStatus();
    value.remove_prefix(comma + 1);
  }
}

absl::Status SetSwitch(bool* field, std::string_view name, std::string_view value) {
  if (!value.empty() && value != "true" && value != "false") {
    return absl::InvalidArgumentError(fmt::format("--{} {}: expected true or false", name, value));
  }
  *field = value != "false";
  return absl::OkStatus();
}

absl::Status SetQuantised(Quantised* field, std::string_view value) {
  static constexpr std::pair<std::string_view, Quantised> kWords[] = {{"exact", Quantised::kExact},
                                                                      {"fast", Quantised::kFast},
                                                                      {"per-token", Quantised::kPerToken},
                                                                      {"float", Quantised::kFloat}};
  for (const auto& [word, quantised] : kWords) {
    if (value != word) continue;
    *field = quantised;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(fmt::format("--quantised {}: expected exact, fast, per-token or float", value));
}

absl::Status SetText(std::string* field, std::string_view value) {
  *field = std::string(value);
  return absl::OkStatus();
}

}  // namespace

const std::vector<OptionName>& OptionNames() {
  static const auto* const kNames = new std::vector<OptionName>{
      {"target", "CHIP", "chip, an ATC --soc_version, or a path to a .txtpb"},
      {"cann", "VERSION", "CANN version, or a path to a .txtpb"},
      {"plugin", "", "emit nodes that ATC reads only with our op plugin installed"},
      {"precision-mode", "MODE", "what atc will be given as --precision_mode"},
      {"style", "D|N|X", "emission style; default: chosen for the target"},
      {"rules", "FILE", "rule file that adds or overrides rules", true},
      {"dim", "NAME=RANGE",
       "name=N, name=low..high or name=low..high:step (multiples of step): what a symbolic dim can be; name=other: the same as "
       "that one",
       true},
      {"fix", "NAME=N", "what a symbolic dim is, written into the model", true},
      {"strict", "", "refuse what rests on an assumption"},
      {"skip", "NAME,...", "kinds, rules or nodes not to use", true},
      {"prefer", "NODE,...", "nodes that are not emitted without it, as they were measured slower", true},
      {"assume", "INPUT=WORD", "what an input holds: ones, binary (0 and 1), left-padded, right-padded", true},
      {"keep-rest", "", "leave what is not fused as it is, byte for byte"},
      {"tidy", "WORD,...", "kinds of tidying of what is not fused; default: all", true},
      {"quantised", "exact|fast|per-token|float",
       "exact: what ONNX Runtime computes of quantised operators (default); fast: kernels of integers wherever there is one; "
       "per-token: as fast, and what the model quantises by the range of a tensor is quantised by rows; float: activations are "
       "not "
       "rounded"},
      {"limit", "N", "at most so many rewrites"},
      {"dump", "FOLDER", "write the model after each pass there"},
  };
  return *kNames;
}

absl::Status SetOption(OptimizeOptions* options, std::string_view name, std::string_view value) {
  TargetOptions& target = options->target;
  if (name == "target") return SetText(&target.chip, value);
  if (name == "cann") return SetText(&target.cann, value);
  if (name == "plugin") return SetSwitch(&target.plugin, name, value);
  if (name == "precision-mode") return SetText(&target.precision_mode, value);
  if (name == "style") return SetText(&target.style, value);
  if (name == "rules") return SetRules(options, value);
  if (name == "dim") return SetDim(options, value);
  if (name == "strict") return SetSwitch(&options->strict, name, value);
  if (name == "skip") return SetNames(&options->skip, value);
  if (name == "prefer") return SetNames(&options->prefer, value);
  if (name == "keep-rest") return SetSwitch(&options->keep_rest, name, value);
  if (name == "tidy") return SetNames(&options->tidy, value);
  if (name == "quantised") return SetQuantised(&options->quantised, value);
  if (name == "fix") return SetFix(options, value);
  if (name == "assume") return SetAssumption(options, value);
  if (name == "dump") return SetText(&options->dump_directory, value);
  if (name == "limit") {
    if (ParseNumber(value, &options->limit)) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format("--limit {}: expected a number", value));
  }
  std::vector<std::string_view> names;
  for (const OptionName& option : OptionNames()) names.push_back(option.name);
  return absl::InvalidArgumentError(fmt::format("{} is not an option; there are {}", name, fmt::join(names, ", ")));
}

void SetWeights(SaveOptions* options, std::string_view weights) {
  if (weights == "reference") {
    options->weights = Weights::kReference;
  } else if (weights != "copy") {
    options->weights = Weights::kOneFile;
    options->weights_file = weights;
  }
}

}  // namespace ascend_fuse
