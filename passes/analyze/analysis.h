// What a person learns from a model file: records of an analysis. The JSON has the names of proto/analysis.proto; docs/analyze.md
// explains them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "passes/core/records.h"

namespace ascend_fuse {

// The version of the JSON: names that change their meaning change it, names that are added do not.
inline constexpr int kAnalysisSchema = 1;

// A count as a function of the model's dims, and as a number for the dims of the analysis.
struct Amount {
  std::string formula;  // "2048*batch*seq"; "" where it has too many terms
  double value = 0;
};

struct BoundDim {  // a symbol, and the number that numbers are for
  std::string name;
  int64_t value = 0;
  std::string origin;  // dim (as --dim says; of a range its end) or default
};

// The whole graph on one side of the rewriting.
struct SideRecord {
  int64_t nodes = 0;    // that the outputs depend on, those of branches and bodies included
  int64_t kernels = 0;  // of them those that start a kernel on the chip
  int64_t ai_cpu = 0;   // nodes that run on the AI CPU
  int64_t host = 0;     // nodes that run on the host, shape arithmetic included
  int64_t folded = 0;   // nodes that depend on no input: constants after compilation
  int64_t unknown = 0;  // nodes whose shapes are not known: they are not counted below
  Amount flops;
  Amount bytes;          // read and written by kernels, in the types of the model
  double intensity = 0;  // FLOPs for each byte
};

struct RatioRecord {  // how many times faster, by the cost model
  double low = 1;
  double middle = 1;
  double high = 1;
  std::string launch;  // static or dynamic: how kernels are started
};

// One type of operator, or one module, on both sides.
struct ShareRecord {
  std::string name;  // "MatMul", "npu.NPURmsNorm"; a module path
  std::string kind;  // of an operator: matrix, attention, vector, move, view, control
  int64_t nodes_before = 0, nodes_after = 0;
  int64_t kernels_before = 0, kernels_after = 0;
  Amount flops_before, flops_after;
  Amount bytes_before, bytes_after;
  double intensity = 0;                      // FLOPs for each byte, before; after where there are none before
  double share_before = 0, share_after = 0;  // of the time that the cost model gives the whole graph
};

// Where nodes of a type run.
struct SupportRecord {
  std::string op;
  std::string engine;  // ai_core, ai_cpu, host, none (no kernel), folded, refused, misread
  std::string unit;    // on the AI Core: cube, vector, or both for an attention
  std::string kernel;  // the operator of GE that computes it; "" where the kernel list of the chip does not name it
  std::string shapes;  // dynamic: the kernel takes dims that are known when the model runs only; static; ""
  int64_t nodes = 0;
  bool after = false;  // of the graph that is written; else of the model as it is
  std::string because;
  std::string source;
  std::string way_out;
};

struct HeavyRecord {  // a node that takes much of the time
  std::string node;
  std::string op;
  std::string module;
  Amount flops;
  Amount bytes;
  double share = 0;
  std::string bound_by;  // flops, bytes, start
};

struct OpportunityRecord {  // places of one kind with one fate
  std::string kind;         // a kind of site, affine, elementwise_chain, packed_projections, near_miss, rewritten, swept
  std::string state;        // fused, by_ge, left
  int64_t count = 0;
  std::string place;  // model.layers.*.self_attn
  std::string emitted_op;
  double gain = 0;       // share of the time of the whole model as it is, by the cost model
  bool at_most = false;  // the gain is an upper bound
  int64_t kernels_saved = 0;
  double bytes_saved = 0;
  std::string because;
  std::string code;
  std::string source;
  std::string way;                 // how to get it; "" where nothing is known
  std::vector<std::string> nodes;  // one of each place
};

struct WeightRecord {  // of one type or one module
  std::string name;
  int64_t tensors = 0;
  double bytes = 0;
};

struct CurvePoint {  // memory of activations while a node runs
  int64_t step = 0;
  std::string node;
  double bytes = 0;
};

struct ActivationRecord {
  Amount peak;
  std::string at;  // the node that runs then
  std::vector<CurvePoint> curve;
};

struct CacheRecord {  // a tensor that is given to the model and comes back longer
  std::string input;
  std::string output;
  Amount bytes;  // of the output
};

struct MemoryFit {  // a size of the chip's memory
  double bytes = 0;
  bool fits = false;
  std::string source;
};

struct MemoryRecord {
  double weights = 0;         // bytes, shared ones once
  double weights_shared = 0;  // bytes that sharing saves
  double weights_half = 0;    // with floating-point weights in float16
  double weights_int8 = 0;    // with the weights of products in int8
  std::vector<WeightRecord> by_type;
  std::vector<WeightRecord> by_module;
  ActivationRecord before;
  ActivationRecord after;
  Amount cache;
  std::vector<CacheRecord> caches;
  double needed = 0;  // weights as the precision mode has them, the peak after, and caches
  std::vector<MemoryFit> fits;
};

struct HostRecord {  // what keeps the graph from running on the chip alone
  std::string code;  // shape-arithmetic, data-dependent-shape, reads-back, ai-cpu, control-flow
  std::string op;
  int64_t nodes = 0;
  std::string node;  // the first
  std::string module;
  std::string because;
  std::string way_out;
};

struct TypeRecord {
  std::string type;
  int64_t values = 0;
  int64_t kernels = 0;
  double bytes = 0;
};

struct PrecisionRecord {  // filled in further by the analysis of ranges
  std::vector<TypeRecord> types;
  int64_t casts = 0;
  std::vector<FindingRecord> findings;  // constants beyond half range, risks by construct
};

struct ReasonRecord {
  std::string level;  // high, medium, low
  std::string code;
  int64_t count = 0;
  std::string because;
  std::string way_out;
};

struct ComplexityRecord {
  std::string level = "low";
  std::vector<ReasonRecord> reasons;  // riskiest first
};

struct StepRecord {  // what to do next, in order
  std::string action;
  std::string because;
  std::string command;  // "" where it is not a command
};

struct SketchNode {
  std::string op;
  std::vector<int> inputs;  // indices into the nodes of the sketch, smaller than its own
};

struct SketchRecord {  // the subgraph of a site, for a drawing. Not part of the JSON.
  std::string kind;
  std::string state;
  std::string place;  // model.layers.*.self_attn
  std::string node;   // of the site that is drawn
  int64_t sites = 1;  // that look alike
  std::vector<SketchNode> before, after;
};

struct Analysis {  // all of it
  Report report;   // what `list` says, and as findings what `check` says of the model as it is
  std::vector<BoundDim> dims;
  std::string precision_bytes;  // how bytes of float32 are counted in times: float16 or float32
  SideRecord before;
  SideRecord after;
  RatioRecord ratio;
  std::vector<ShareRecord> operators;
  std::vector<ShareRecord> modules;
  std::vector<HeavyRecord> heaviest;  // of the graph that is written
  std::vector<SupportRecord> support;
  std::vector<OpportunityRecord> opportunities;
  MemoryRecord memory;
  std::vector<HostRecord> host;
  PrecisionRecord precision;
  ComplexityRecord complexity;
  std::vector<StepRecord> next;
  std::vector<std::string> uncounted;  // operators that the cost model has no row for
  std::vector<SketchRecord> sketches;
};

struct AnalysisTextOptions {
  bool verbose = false;
};

// The same analysis gives the same bytes.
std::string AnalysisToText(const Analysis& analysis, const AnalysisTextOptions& options = {});
std::string AnalysisToJson(const Analysis& analysis);
// Comma-separated, with a line of names.
std::string OperatorsToCsv(const Analysis& analysis);
std::string SitesToCsv(const Analysis& analysis);

}  // namespace ascend_fuse
