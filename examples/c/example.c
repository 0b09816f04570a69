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

static int progress(void* user, const char* pass, size_t number, size_t count) {
  struct watch* watch = user;
  watch->told++;
  return number >= count || (watch->stop_at != NULL && strcmp(pass, watch->stop_at) == 0);
}

int main(int argc, char** argv) {
  struct watch watch = {0, NULL};
  ascend_fuse_model* model = NULL;
  ascend_fuse_report* report = NULL;
  ascend_fuse_options* options;
  ascend_fuse_code code;
  const void* bytes;
  size_t size;
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
