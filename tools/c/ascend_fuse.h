/* ascend-fuse in C: exported ONNX in, the same model with Ascend NPU nodes out, and a report.
 *
 * This interface needs no C++ and no other library's headers. All text is UTF-8 and ends with a zero. Functions that can
 * fail give a code, and ascend_fuse_error () the sentence of the last failure in the calling thread. No function ends the
 * program or lets a C++ exception out. There is no other state than the handles: different handles may be used in different
 * threads at the same time, one handle only in one.
 */
#ifndef ASCEND_FUSE_H
#define ASCEND_FUSE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It grows when something is added; nothing is taken away or changes its meaning while the
 * first of the two numbers stays: compare ASCEND_FUSE_ABI / 1000 with ascend_fuse_abi () / 1000. */
#define ASCEND_FUSE_ABI 1001

typedef enum ascend_fuse_code { /* what a call came to */
                                ASCEND_FUSE_OK = 0,
                                ASCEND_FUSE_INVALID =
                                    1, /* a model, an option or a rule that is not valid; a graph broken by a pass */
                                ASCEND_FUSE_NOT_FOUND = 2, /* a file, a target */
                                ASCEND_FUSE_REFUSED = 3,   /* it cannot be done with this model: external data is missing, a node
                                                              that no rule knows ... */
                                ASCEND_FUSE_CANCELLED = 4, /* the progress callback said so; the model is to be dropped */
                                ASCEND_FUSE_SYSTEM = 5,    /* the file system: no permission, no room */
                                ASCEND_FUSE_INTERNAL = 6   /* a fault of this library */
} ascend_fuse_code;

/* A model: its graph, and the file that its weights stay in. */
typedef struct ascend_fuse_model ascend_fuse_model;
/* What a run is to do, by name. */
typedef struct ascend_fuse_options ascend_fuse_options;
/* What a run did: sites fused and left, warnings, findings. */
typedef struct ascend_fuse_report ascend_fuse_report;

/* ASCEND_FUSE_ABI of the library that is linked. */
int ascend_fuse_abi(void);
/* The version of the library: "0.1.0". */
const char* ascend_fuse_version(void);
/* The sentence of the last call that failed in this thread, "" if none did; valid until the next call that fails. */
const char* ascend_fuse_error(void);

/* The options of `ascend-fuse optimize` with their defaults. NULL only without memory. */
ascend_fuse_options* ascend_fuse_options_new(void);
/* Sets an option by the name of its flag, "target", "cann", "dim", "rules", "skip" ...: `dim` takes NAME=RANGE, `rules` a
 * file, a switch ("strict", "plugin") "true" or "false". Options that may be repeated add up. INVALID names what there is. */
ascend_fuse_code ascend_fuse_options_set(ascend_fuse_options* options, const char* name, const char* value);
/* `progress` is told before each pass and now and then within one, in the thread of the run: the name of the pass, its
 * number from 0 and the number of passes. What is not 0 ends the run with CANCELLED. NULL: nobody is told. */
void ascend_fuse_options_progress(ascend_fuse_options* options,
                                  int (*progress)(void* user, const char* pass, size_t number, size_t count), void* user);
/* NULL is nothing. */
void ascend_fuse_options_free(ascend_fuse_options* options);

/* Loads the model at `path`; weights stay in the file. The file must not change while the handle lives. */
ascend_fuse_code ascend_fuse_load(const char* path, ascend_fuse_model** model);
/* The same of a model in memory, which may be freed afterwards. External data is looked for beside `path`, which may be NULL. */
ascend_fuse_code ascend_fuse_load_bytes(const void* bytes, size_t size, const char* path, ascend_fuse_model** model);
/* Writes the model; `path` may be the file that it was loaded from. Nothing is left behind by a failure. */
ascend_fuse_code ascend_fuse_save(const ascend_fuse_model* model, const char* path);
/* The same bytes in memory, until the next call with this handle or its end. */
ascend_fuse_code ascend_fuse_save_bytes(ascend_fuse_model* model, const void** bytes, size_t* size);
/* NULL is nothing. */
void ascend_fuse_model_free(ascend_fuse_model* model);

/* Rewrites the model for the target. `options` NULL: the defaults. `report` NULL: it is not wanted. After a failure the model
 * is to be dropped: all but ascend_fuse_model_free refuse it. REFUSED, with a report, where ATC would refuse or misread the
 * result, unless the option "force" is "true". */
ascend_fuse_code ascend_fuse_optimize(ascend_fuse_model* model, const ascend_fuse_options* options, ascend_fuse_report** report);
/* What ascend_fuse_optimize would do. The model stays as it is. */
ascend_fuse_code ascend_fuse_list(ascend_fuse_model* model, const ascend_fuse_options* options, ascend_fuse_report** report);
/* What ATC of the target refuses or misreads in the model as it is. The model is to be dropped afterwards. */
ascend_fuse_code ascend_fuse_check(ascend_fuse_model* model, const ascend_fuse_options* options, ascend_fuse_report** report);
/* What the model computes, moves and needs, as it is and as ascend_fuse_optimize would write it, and what to do next: the
 * report's JSON is that of docs/analyze.md. The model stays as it is. Since ABI 1001. */
ascend_fuse_code ascend_fuse_analyze(ascend_fuse_model* model, const ascend_fuse_options* options, ascend_fuse_report** report);
/* NPU nodes back to standard operators. Of the options `rules` and `dim` count, and progress. */
ascend_fuse_code ascend_fuse_expand(ascend_fuse_model* model, const ascend_fuse_options* options);

/* The report as JSON, with the names of docs/report.md; valid as long as the report. */
const char* ascend_fuse_report_json(const ascend_fuse_report* report);
/* The report as a person reads it; valid as long as the report. */
const char* ascend_fuse_report_text(const ascend_fuse_report* report);
/* NULL is nothing. */
void ascend_fuse_report_free(ascend_fuse_report* report);

#ifdef __cplusplus
}
#endif

#endif
