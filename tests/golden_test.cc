// Runs every tests/golden/<rule>/<case>.onnxtxt: an ONNX text model whose comments say what it shows, with
// which flags it is optimized (# RUN:, those of tests/support/run_flags.h, a file of --rules beside the case; what is not fused
// is kept as it is unless --tidy=all or --tidy=WORD says otherwise), and what must come out: the nodes of the graph (# GRAPH:)
// and the sites, their assumptions and the near misses (# REPORT:). BLESS=1 in the environment writes GRAPH and REPORT anew; the
// diff of the files is then what there is to review.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "ir/onnx/load.h"
#include "ir/onnx/save.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "passes/optimize.h"
#include "patterns/codes.h"
#include "proto/onnx.pb.h"
#include "tests/support/run_flags.h"
#include "tests/support/source_dir.h"

namespace ascend_fuse {
namespace {

constexpr std::string_view kGraph = "# GRAPH:";
constexpr std::string_view kReport = "# REPORT:";
constexpr std::string_view kRun = "# RUN:";

std::filesystem::path Folder() { return testing::SourceDir() / "tests" / "golden"; }

// "rms_norm/llama" for every file, sorted.
std::vector<std::string> Cases() {
  std::vector<std::string> cases;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(Folder())) {
    if (entry.path().extension() != ".onnxtxt") continue;
    cases.push_back(std::filesystem::relative(entry.path(), Folder()).replace_extension().generic_string());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

bool StartsWith(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

struct Golden {
  std::string head;                // everything before GRAPH: prose, RUN and the model
  std::vector<std::string> flags;  // words of RUN
  std::string expected;            // GRAPH and REPORT as written
};

Golden Split(const std::string& text) {
  Golden golden;
  bool expected = false;
  for (const std::string& line : Lines(text)) {
    if (StartsWith(line, kGraph) || StartsWith(line, kReport)) expected = true;
    if (StartsWith(line, kRun)) {
      std::istringstream words(line.substr(kRun.size()));
      for (std::string word; words >> word;) golden.flags.push_back(word);
    }
    (expected ? golden.expected : golden.head) += line + "\n";
  }
  while (!golden.head.empty() && std::isspace(static_cast<unsigned char>(golden.head.back())) != 0) {
    golden.head.pop_back();
  }
  return golden;
}

// A model as one message; value infos by name, for text keeps no order of them.
std::string Canonical(const std::string& bytes) {
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) return "not a model";
  auto* infos = model.mutable_graph()->mutable_value_info();
  std::sort(infos->begin(), infos->end(),
            [](const onnx::ValueInfoProto& a, const onnx::ValueInfoProto& b) { return a.name() < b.name(); });
  return model.SerializeAsString();
}

std::string PrintWhole(const Model& model) {
  PrintOptions options;
  options.max_elements = -1;
  return PrintModelText(model, options);
}

std::string GraphSection(const Model& model, bool unchanged) {
  std::string text = std::string(kGraph) + "\n";
  if (unchanged) return text + "#   unchanged\n";
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->dead) continue;
      text += fmt::format("#   {}{}\n", graph.get() == &model.graph() ? "" : "  ", PrintNode(*node));
    }
  }
  return text;
}

// A sentence's source, unless it is a line of a rule: those move with every edit.
std::string Source(const std::string& source) {
  return source.empty() || StartsWith(source, "patterns/") ? "" : fmt::format(" ({})", source);
}

// The warnings that say something about the graph of the case, and not about its opset or about ATC as such.
std::vector<WarningRecord> ShownWarnings(const Report& report) {
  static constexpr std::string_view kShown[] = {
      "plugin-needed",     "function-call-left", "decomposed",         "no-parser",       "adapted",
      "opset-converted",   "opset-kept",         "keys-shared",        "shape-start-end", "split-num-outputs",
      "reduce-axes-input", "pad-axes-input",     "constant-value-form"};
  std::vector<WarningRecord> shown;
  for (const WarningRecord& warning : report.warnings) {
    if (std::find(std::begin(kShown), std::end(kShown), warning.code) != std::end(kShown)) shown.push_back(warning);
  }
  return shown;
}

// Whether operators of the input were written in other operators or forms, though nothing was fused.
bool WasRewritten(const Report& report) {
  static constexpr std::string_view kRewritten[] = {"decomposed", "adapted", "opset-converted", "keys-shared"};
  if (!report.tidied.empty()) return true;
  return std::any_of(report.warnings.begin(), report.warnings.end(), [](const WarningRecord& warning) {
    return std::find(std::begin(kRewritten), std::end(kRewritten), warning.code) != std::end(kRewritten);
  });
}

std::string ReportSection(const Report& report) {
  std::string text = std::string(kReport) + "\n";
  auto add = [&text](const std::string& line) { text += "#   " + line + "\n"; };
  if (!report.target.style.empty()) add(fmt::format("style {}", report.target.style));
  for (const WarningRecord& warning : ShownWarnings(report)) {
    add(fmt::format("warning {}: {}", warning.code, warning.message));
  }
  if (const std::string tidied = TidiedInWords(report); !tidied.empty()) add(fmt::format("tidied {}", tidied));
  for (const SiteRecord& site : report.sites) {
    std::string line = fmt::format("{} {}", site.state, site.kind);
    if (site.state == "fused") {
      const size_t dot = site.emitted_op.rfind('.');
      line += fmt::format(" -> {}", dot == std::string::npos ? site.emitted_op : site.emitted_op.substr(dot + 1));
    }
    line += fmt::format("  {}", site.outputs.empty() ? site.node : site.outputs[0]);
    if (site.state == "fused" || !site.covers.empty()) {
      line += fmt::format("  [{} node{}]", site.covers.size(), site.covers.size() == 1 ? "" : "s");
    }
    if (!site.mask.empty()) line += fmt::format("  mask {}", site.mask);
    if (site.precision != "exact") line += fmt::format("  {}", site.precision);
    if (!site.pair.empty()) line += fmt::format("  pair of {}", site.pair);
    if (!site.because.empty()) line += fmt::format("  because {}{}", site.because, Source(site.source));
    add(line);
  }
  for (const SiteRecord& site : report.sites) {
    for (const std::string& sentence : site.assumptions) add(fmt::format("assumes  {}  {}", site.outputs[0], sentence));
    for (const std::string& sentence : site.mask_assumptions) {
      if (std::find(site.assumptions.begin(), site.assumptions.end(), sentence) != site.assumptions.end()) continue;
      add(fmt::format("mask rests on  {}  {}", site.outputs[0], sentence));
    }
  }
  for (const NearMissRecord& miss : report.near_misses) {
    const std::string wanted = miss.expected.empty() ? "" : fmt::format("expected {}, found ", miss.expected);
    add(fmt::format("near {}  {}  [{} nodes]  {}{}", miss.rule, miss.node, miss.matched_nodes, wanted, miss.found));
  }
  for (const ContradictionRecord& contradiction : report.contradictions) {
    add(fmt::format("contradiction  {}  declared {}, computed {}", contradiction.value, contradiction.declared,
                    contradiction.computed));
  }
  if (text.size() == kReport.size() + 1) add("nothing");
  return text;
}

// Every reason, near miss and warning has a code that `ascend-fuse explain` knows, and a site without a reason has none.
void CheckCodes(const Report& report) {
  for (const SiteRecord& site : report.sites) {
    if (site.because.empty()) {
      EXPECT_EQ(site.code, "") << site.kind;
    } else {
      EXPECT_NE(FindCode(site.code), nullptr) << "'" << site.code << "' of: " << site.because;
    }
  }
  for (const NearMissRecord& miss : report.near_misses) {
    EXPECT_NE(FindCode(miss.code), nullptr) << "'" << miss.code << "' of: " << miss.found;
  }
  for (const TidiedRecord& record : report.tidied) EXPECT_NE(FindCode(record.code), nullptr) << record.code;
  for (const WarningRecord& warning : report.warnings) {
    EXPECT_NE(FindCode(warning.code), nullptr) << "'" << warning.code << "' of: " << warning.message;
  }
}

// Lines that are only in `expected` with -, those only in `found` with +.
std::string Diff(const std::string& expected, const std::string& found) {
  const std::vector<std::string> a = Lines(expected);
  const std::vector<std::string> b = Lines(found);
  std::vector<std::vector<int>> same(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t k = b.size(); k-- > 0;) {
      same[i][k] = a[i] == b[k] ? same[i + 1][k + 1] + 1 : std::max(same[i + 1][k], same[i][k + 1]);
    }
  }
  std::string text;
  size_t i = 0;
  size_t k = 0;
  while (i < a.size() || k < b.size()) {
    if (i < a.size() && k < b.size() && a[i] == b[k]) {
      text += fmt::format("  {}\n", a[i++]);
      ++k;
    } else if (k == b.size() || (i < a.size() && same[i + 1][k] >= same[i][k + 1])) {
      text += fmt::format("- {}\n", a[i++]);
    } else {
      text += fmt::format("+ {}\n", b[k++]);
    }
  }
  return text;
}

class GoldenTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, Matches) {
  const std::filesystem::path path = Folder() / (GetParam() + ".onnxtxt");
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const Golden golden = Split(text);
  EXPECT_TRUE(StartsWith(text, "# ") && !StartsWith(text, kRun) && !StartsWith(text, kGraph))
      << "the file must open with a sentence about what it shows";
  OptimizeOptions options;
  options.keep_rest = true;  // unless --tidy says what is to become of it
  const absl::Status flags = testing::ReadRunFlags(golden.flags, path.parent_path().generic_string(), &options);
  ASSERT_TRUE(flags.ok()) << flags.message();

  const absl::StatusOr<std::string> input = EncodeModelText(text);
  ASSERT_TRUE(input.ok()) << input.status().message();

  // Text is a round trip.
  {
    auto parsed = ParseModelText(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    const std::string printed = PrintWhole(**parsed);
    const absl::StatusOr<std::string> again = EncodeModelText(printed);
    ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << printed;
    EXPECT_EQ(Canonical(*again), Canonical(*input)) << printed;
  }

  auto model = LoadModelFromBytes(*input);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const absl::StatusOr<Report> report = Optimize(model->get(), options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  const absl::StatusOr<std::string> output = SaveModelToBytes(**model);
  ASSERT_TRUE(output.ok()) << output.status().message();
  const bool unchanged = *output == *input;
  const bool fused =
      std::any_of(report->sites.begin(), report->sites.end(), [](const SiteRecord& site) { return site.state == "fused"; });
  EXPECT_EQ(fused || WasRewritten(*report), !unchanged) << "a model changes if and only if something was rewritten";

  CheckCodes(*report);
  const std::string found = GraphSection(**model, unchanged) + "#\n" + ReportSection(*report);
  if (std::getenv("BLESS") != nullptr) {
    std::ofstream(path, std::ios::binary) << golden.head << "\n\n" << found;
  } else {
    EXPECT_TRUE(golden.expected == found) << "- expected, + found (BLESS=1 writes what was found):\n"
                                          << Diff(golden.expected, found);
  }

  // Listing says the same and changes nothing.
  {
    auto listed = LoadModelFromBytes(*input);
    ASSERT_TRUE(listed.ok()) << listed.status().message();
    const absl::StatusOr<Report> list = ListOpportunities(listed->get(), options);
    ASSERT_TRUE(list.ok()) << list.status().message();
    EXPECT_EQ(ReportSection(*list), ReportSection(*report));
    const absl::StatusOr<std::string> same = SaveModelToBytes(**listed);
    ASSERT_TRUE(same.ok()) << same.status().message();
    EXPECT_TRUE(*same == *input) << "listing changes the model";
  }

  // The optimized model is text too, and there is nothing left to do. The template of 2048 x 2048 booleans is 20 MB of text.
  constexpr size_t kMostBytes = size_t{1} << 20;
  if (output->size() < kMostBytes) {
    const std::string printed = PrintWhole(**model);
    auto parsed = ParseModelText(printed);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message() << "\n" << printed;
    EXPECT_EQ(PrintWhole(**parsed), printed);
  }
  auto second = LoadModelFromBytes(*output);
  ASSERT_TRUE(second.ok()) << second.status().message();
  const absl::StatusOr<Report> second_report = Optimize(second->get(), options);
  ASSERT_TRUE(second_report.ok()) << second_report.status().message();
  const absl::StatusOr<std::string> again = SaveModelToBytes(**second);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_TRUE(*again == *output) << "a second run changes the model:\n"
                                 << Diff(GraphSection(**model, false), GraphSection(**second, false));
}

std::string CaseName(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Golden, GoldenTest, ::testing::ValuesIn(Cases()), CaseName);

}  // namespace
}  // namespace ascend_fuse
