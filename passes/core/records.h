// The records of a run: one for each site, near miss, warning and contradiction. Passes fill them in, and the report
// (passes/report) prints them. The JSON has the names of proto/report.proto.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ascend_fuse {

// The version of the JSON: a program that reads it may rely on the names of one version.
inline constexpr int kReportSchema = 1;

// The kinds of sites, in the order in which reports list them.
const std::vector<std::string>& ReportKinds();

struct ReportTarget {  // what the model was optimized for
  std::string chip;
  std::string cann;
  std::string style;
  std::string precision_mode;
  int64_t opset = 0;
  bool plugin = false;
  std::vector<std::string> dims;  // what --dim and --fix bound, as they are given
};

// One place where a construct was recognised.
struct SiteRecord {
  std::string kind;
  std::string state;                          // "fused", "by_ge", "left"; empty while it is not decided
  std::string module;                         // model.layers.0.self_attn
  std::string rule;                           // the recogniser, or "native" for an operator that was there
  std::string emitted_op;                     // npu.NPURmsNorm
  std::vector<std::string> covers;            // names of the original nodes
  std::string precision = "exact";            // exact, reassociated, approximate
  std::string mask;                           // attention: none, causal_bottom_right, padding, ... explicit; sums with "+"
  std::string mask_offset;                    // of a causal mask: query i attends to keys up to i + that
  std::string mask_window;                    // "LEFT, RIGHT": keys from i + offset - LEFT on; RIGHT is 0 up to the offset
  std::vector<std::string> mask_padding;      // the values that its key padding is read from
  std::vector<std::string> mask_assumptions;  // what is taken for granted to call it that
  std::vector<std::string> assumptions;
  std::string code;                  // of `because`: see patterns/codes.h
  std::string because;               // why it was left, or why in this form
  std::string source;                // who says so
  std::string node;                  // the original node that computed the value, or the value's name
  std::vector<std::string> outputs;  // values that the construct computes
  std::string pair;                  // rotary: outputs[0] of the site that shares cos and sin
};

struct ReportKindCount {  // the sites of one kind, by what became of them
  std::string kind;
  int64_t found = 0;
  int64_t fused = 0;
  int64_t by_ge = 0;
  int64_t left = 0;
  std::string commonest_reason;
};

// An operator at which a construct begins and that no rule covered: the rule that got farthest, and where it stopped.
struct NearMissRecord {
  std::string rule;
  std::string node;
  std::string module;
  int64_t matched_nodes = 0;
  std::string stopped_by;  // a node
  std::string code;
  std::string expected;
  std::string found;
  std::string source;  // rule file, line and column
};

// Something about the whole model or about operators that no site covers.
struct WarningRecord {
  std::string code;
  std::string message;
};

// What ATC makes of a node, or of the whole model, that ONNX does not say: one finding of `check`.
struct FindingRecord {
  std::string code;
  // no_parser, refused, misread, loses_type, no_kernel: ATC ends with an error, or what it makes is another model;
  // ai_cpu, host, precision: it runs, and elsewhere or with less precision.
  std::string effect;
  bool certain = true;  // if not, `because` ends with what is open
  std::string op;       // "ReduceMean", "npu.NPURmsNorm"; "" for the whole model
  std::string node;     // its name, or that of what it computes
  std::string module;
  std::string because;   // a sentence
  std::string source;    // who says so
  std::string error;     // the code that ATC prints, where that is known
  std::string way_out;   // what to do, a clause
  std::string fixed_by;  // optimize, plugin, or ""
};

// Nodes that were written in another form, because ATC does not read theirs.
struct AdaptedRecord {
  std::string code;  // of the form
  std::string op;
  std::vector<std::string> nodes;  // their names, or those of what they computed
};

// Nodes of the rest of the graph that were tidied: joined with equal ones, written shorter, or gone.
struct TidiedRecord {
  std::string code;  // of the kind
  std::string op;
  std::vector<std::string> nodes;  // their names, or those of what they computed
};

struct PassRecord {  // one pass of the run
  std::string name;
  double milliseconds = 0;
  int64_t changes = 0;
};

// Two facts about one value that cannot both hold.
struct ContradictionRecord {
  std::string value;
  std::string declared;
  std::string computed;
  std::string node;  // the node whose semantics give `computed`
};

// What is known of the speed of a node that was emitted: see Gain of proto/operators.proto.
struct GainRecord {
  std::string node;  // "NPUSwiGlu"
  std::string evidence;
  std::string because;
  std::string source;
};

// An input that ATC is told the shape of. Not part of the JSON.
struct InputRecord {
  struct Dim {
    std::optional<int64_t> low, high;  // equal for a number, nullopt where there is no bound
  };
  std::string name;
  bool has_rank = false;
  std::vector<Dim> dims;
};

// Bytes of the constants of a model that are read.
struct WeightBytes {
  double all = 0;
  // Without the tables of which nodes gather rows: what a decoder reads to compute one token.
  double read = 0;
};

struct Report {  // all of it
  std::string model;
  ReportTarget target;
  std::vector<ReportKindCount> kinds;  // all of ReportKinds(), then others; made by Summarize
  int64_t nodes_before = 0;
  int64_t nodes_after = 0;
  WeightBytes weights_before, weights_after;
  std::vector<SiteRecord> sites;
  std::vector<NearMissRecord> near_misses;
  std::vector<PassRecord> passes;
  std::vector<ContradictionRecord> contradictions;
  std::vector<WarningRecord> warnings;
  // Of `check` all; of `optimize` and `list` those that ATC surely refuses or misreads of what is written.
  std::vector<FindingRecord> findings;
  std::vector<AdaptedRecord> adapted;
  std::vector<TidiedRecord> tidied;
  std::vector<GainRecord> gains;  // one for each kind of node that was emitted
  std::vector<InputRecord> inputs;

  // Adds a warning, once.
  void Warn(const WarningRecord& warning);
  // Counts `sites` into `kinds`. Call it when the sites are complete.
  void Summarize();
  // The count of a kind, or nullptr.
  const ReportKindCount* FindKind(const std::string& kind) const;
};

}  // namespace ascend_fuse
