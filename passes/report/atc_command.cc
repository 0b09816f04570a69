#include "passes/report/atc_command.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/text/visible.h"

namespace ascend_fuse {
namespace {

struct Option {
  std::string word;
  std::string comment;
};

// What ATC is told of one dim: a number, a range, or -1.
struct ToldDim {
  std::string text;
  bool open = false;    // -1
  bool ranged = false;  // low~high
};

ToldDim Tell(const InputRecord::Dim& dim, bool takes_ranges) {
  if (!dim.low.has_value() || !dim.high.has_value()) return {"-1", true};
  if (*dim.low == *dim.high) return {fmt::format("{}", *dim.low)};
  if (!takes_ranges) return {"-1", true};
  return {fmt::format("{}~{}", *dim.low, *dim.high), false, true};
}

// --input_shape, and what a reader of the script must know of it.
Option InputShape(const std::vector<InputRecord>& inputs, const Target& target) {
  std::vector<std::string> told_inputs;
  std::vector<std::string> unknown;
  bool open = false;
  bool ranged = false;
  for (const InputRecord& input : inputs) {
    if (!input.has_rank) {
      unknown.push_back(input.name);
      continue;
    }
    std::vector<std::string> words;
    for (const InputRecord::Dim& dim : input.dims) {
      const ToldDim told = Tell(dim, target.TakesShapeRanges());
      open = open || told.open;
      ranged = ranged || told.ranged;
      words.push_back(told.text);
    }
    told_inputs.push_back(fmt::format("{}:{}", input.name, fmt::join(words, ",")));
  }
  Option option = {fmt::format("--input_shape={}", fmt::join(told_inputs, ";")), "the inputs"};
  if (ranged) option.comment += ", ranges as given with --dim: the runtime must be told the shape of every run";
  if (open && target.TakesShapeRanges()) {
    option.comment += "; -1 is any length: --dim NAME=N or NAME=low..high of ascend-fuse makes it a number or a range";
  }
  if (open && !target.TakesShapeRanges()) {
    option.comment += "; ATC takes no ranges for this chip: write numbers, or leave -1 and list the lengths with --dynamic_dims";
  }
  if (!unknown.empty()) {
    option.comment += fmt::format("; the shape of {} is not known: add it", fmt::join(unknown, ", "));
  }
  return option;
}

std::vector<Option> OptionsFor(const std::vector<InputRecord>& inputs, const Target& target, const std::string& path) {
  std::string_view stem(path);
  if (stem.ends_with(".onnx")) stem.remove_suffix(5);
  std::vector<Option> options = {
      {fmt::format("--model={}", path), ""},
      {"--framework=5", "ONNX"},
      {fmt::format("--output={}", stem), "ATC adds .om"},
      {"--input_format=ND", "the default is NCHW, which gives every input a layout that it has not"},
      InputShape(inputs, target),
      {fmt::format("--precision_mode={}", target.options().precision_mode), "what the nodes were judged by"},
  };
  return options;
}

// What is known of --soc_version: the word that the target was named by, or a variable of the shell.
constexpr char kSocVariable[] = "--soc_version=\"$SOC_VERSION\"";

}  // namespace

std::string ShellWord(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=,:-";
  const bool plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string AtcCommand(const std::vector<InputRecord>& inputs, const Target& target, const std::string& path) {
  std::string text = "atc";
  for (const Option& option : OptionsFor(inputs, target, path)) text += " " + ShellWord(option.word);
  return text + " " +
         (target.NamedSoc().empty() ? std::string(kSocVariable) : fmt::format("--soc_version={}", target.NamedSoc()));
}

std::string AtcScript(const std::vector<InputRecord>& inputs, const Target& target, const std::string& path) {
  std::string text = "#!/bin/sh\n";
  text +=
      fmt::format("# Compiles the model for {} with CANN {}. Written by ascend-fuse.\nset -e\n\n", target.chip(), target.cann());
  const std::vector<std::string> socs = target.Socs();
  if (target.NamedSoc().empty()) {
    text += "# The word for the processor that the model will run on: `npu-smi info` names it.\n";
    if (!socs.empty()) text += fmt::format("# Known words of this chip: {}.\n", fmt::join(socs, ", "));
    text += ": \"${SOC_VERSION:?set it to the word for your processor}\"\n\n";
  }
  if (target.options().plugin) {
    text += "# The model holds nodes that ATC reads only with the op plugin installed (ASCEND_CUSTOM_OPP_PATH).\n\n";
  }
  for (const Option& option : OptionsFor(inputs, target, path)) {
    // Names of inputs are in it: one with a line break must not become a line of the script.
    text += fmt::format("# {}: {}\n", option.word.substr(0, option.word.find('=')),
                        option.comment.empty() ? "the model" : Visible(option.comment));
  }
  return text + "\n" + AtcCommand(inputs, target, path) + "\n";
}

}  // namespace ascend_fuse
