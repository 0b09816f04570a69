/* The interface in C: a model is listed, optimized with options, progress and a report, and saved; errors are sentences.
 *     cc -std=c99 example.c $(pkg-config --cflags --libs ascend_fuse) -o example_c && ./example_c llama.onnx out.onnx
 */
#include <ascend_fuse.h>
#include <stdio.h>
#include <string.h>

static int failed(const char* what, ascend_fuse_code code) {
  printf("%s: code %d: %s\n", what, (int)code, ascend_fuse_error());
  return 1;
}

/* Counts how often it is told; ends the run at the pass that `user` names. */
struct watch {
  int told;
  const char* stop_at;
};

static int progress(const ascend_fuse_progress* at) {
  struct watch* watch = at->user;
  watch->told++;
  return at->number >= at->count || (watch->stop_at != NULL && strcmp(at->pass, watch->stop_at) == 0);
}

/* A pass: x * x for Pow (x, 2). Lists of the graph hold until the next call, so the node is kept before more is asked. */
static int square(ascend_fuse_graph* graph) {
  int* replaced = ascend_fuse_graph_user(graph);
  for (;;) {
    const ascend_fuse_node* const* nodes;
    const ascend_fuse_value* const* values;
    const ascend_fuse_value *operands[2], *output;
    const ascend_fuse_node* pow;
    double exponent = 0;
    if (ascend_fuse_graph_nodes(graph, "Pow", "", &nodes) == 0) return 0;
    pow = nodes[0];
    if (ascend_fuse_node_inputs(graph, pow, &values) != 2) return 1;
    if (!ascend_fuse_value_splat(graph, values[1], &exponent) || exponent != 2) return 1;
    operands[0] = operands[1] = values[0];
    ascend_fuse_node_outputs(graph, pow, &values);
    output = values[0];
    if (ascend_fuse_replace(graph, &output, 1, "Mul", operands, 2, "", "", NULL) != ASCEND_FUSE_OK) return 1;
    ++*replaced;
  }
}

int main(int argc, char** argv) {
  struct watch watch = {0, NULL};
  ascend_fuse_model* model = NULL;
  ascend_fuse_report* report = NULL;
  ascend_fuse_options* options;
  ascend_fuse_code code;
  const void* bytes;
  size_t size;
  int replaced = 0;
  if (argc != 3) return 2;
  if (ascend_fuse_abi() / 1000 != ASCEND_FUSE_ABI / 1000) return 2;
  printf("version %s\n", ascend_fuse_version());

  options = ascend_fuse_options_new();
  if (options == NULL) return failed("options", ASCEND_FUSE_SYSTEM);
  code = ascend_fuse_options_set(options, "target", "ascend910b");
  if (code == ASCEND_FUSE_OK) code = ascend_fuse_options_set(options, "dim", "batch=1..8");
  if (code != ASCEND_FUSE_OK) return failed("options", code);
  code = ascend_fuse_options_set(options, "dim", "batch");
  printf("a wrong value: code %d: %s\n", (int)code, ascend_fuse_error());
  ascend_fuse_options_progress(options, progress, &watch);

  code = ascend_fuse_load("there is no such file.onnx", &model);
  printf("a missing file: code %d: %s\n", (int)code, ascend_fuse_error());
  code = ascend_fuse_load(argv[1], &model);
  if (code != ASCEND_FUSE_OK) return failed("load", code);
  code = ascend_fuse_list(model, options, &report);
  if (code != ASCEND_FUSE_OK) return failed("list", code);
  printf("listed, %s\n", strstr(ascend_fuse_report_text(report), "can be fused") != NULL ? "with a text" : "without");
  ascend_fuse_report_free(report);

  /* The same with a pass, in a dry run: what it does is taken back. */
  code = ascend_fuse_options_pass(options, "after", "infer", "square", square, &replaced);
  if (code == ASCEND_FUSE_OK) code = ascend_fuse_list(model, options, NULL);
  if (code != ASCEND_FUSE_OK) return failed("a pass", code);
  printf("a pass replaced %d Pow\n", replaced);
  ascend_fuse_options_free(options);

  options = ascend_fuse_options_new();
  if (options == NULL || ascend_fuse_options_set(options, "dim", "batch=1..8") != ASCEND_FUSE_OK) return 1;
  ascend_fuse_options_progress(options, progress, &watch);
  code = ascend_fuse_optimize(model, options, &report);
  if (code != ASCEND_FUSE_OK) return failed("optimize", code);
  printf("optimized, attention is %s\n",
         strstr(ascend_fuse_report_json(report), "npu.NPUPromptFlashAttention") != NULL ? "fused" : "not fused");
  ascend_fuse_report_free(report);
  printf("progress was %s\n", watch.told > 0 ? "told" : "not told");
  code = ascend_fuse_save_bytes(model, &bytes, &size);
  if (code != ASCEND_FUSE_OK) return failed("save_bytes", code);
  code = ascend_fuse_save(model, argv[2]);
  if (code != ASCEND_FUSE_OK) return failed("save", code);
  ascend_fuse_model_free(model);

  /* The saved model again, and a run that is cancelled. */
  code = ascend_fuse_load(argv[2], &model);
  if (code != ASCEND_FUSE_OK) return failed("load again", code);
  code = ascend_fuse_expand(model, options);
  if (code != ASCEND_FUSE_OK) return failed("expand", code);
  watch.stop_at = "recognise";
  code = ascend_fuse_optimize(model, options, NULL);
  printf("cancelled: code %d: %s\n", (int)code, ascend_fuse_error());
  code = ascend_fuse_save(model, argv[2]);
  printf("saved after that: code %d: %s\n", (int)code, ascend_fuse_error());
  ascend_fuse_model_free(model);
  ascend_fuse_options_free(options);
  return 0;
}
