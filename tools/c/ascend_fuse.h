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
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It grows when something is added; nothing is taken away or changes its meaning while the
 * first of the two numbers stays: compare ASCEND_FUSE_ABI / 1000 with ascend_fuse_abi () / 1000. */
#define ASCEND_FUSE_ABI 2000

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
/* What a pass of one's own works on: the whole model, to be read and changed while the pass runs. */
typedef struct ascend_fuse_graph ascend_fuse_graph;
/* A node of the graph. Equal pointers are the same node. */
typedef struct ascend_fuse_node ascend_fuse_node;
/* An edge of the graph. Equal pointers are the same value. */
typedef struct ascend_fuse_value ascend_fuse_value;

/* How far a run is: the name of the pass ("save" while a file is written), its number from 0 and the number of passes (of bytes
 * then), and what `user` was when the callback was given. */
typedef struct ascend_fuse_progress {
  void* user;
  const char* pass;
  size_t number;
  size_t count;
} ascend_fuse_progress;

/* ASCEND_FUSE_ABI of the library that is linked. */
int ascend_fuse_abi(void);
/* The version of the library: "0.1.0". */
const char* ascend_fuse_version(void);
/* The sentence of the last call that failed in this thread, "" if none did; valid until the next call that fails. */
const char* ascend_fuse_error(void);

/* The options of `ascend-fuse optimize` with their defaults. NULL only without memory. */
ascend_fuse_options* ascend_fuse_options_new(void);
/* Sets an option by the name of its flag, "target", "cann", "dim", "rules", "skip" ...: `dim` takes NAME=RANGE, `rules` a
 * file, a switch ("strict", "plugin") "true" or "false". Options that may be repeated add up. INVALID names what there is. Beside
 * them: "force" (ascend_fuse_optimize), "as-atc" (ascend_fuse_expand), "weights" and "copy-data" (ascend_fuse_save_as). */
ascend_fuse_code ascend_fuse_options_set(ascend_fuse_options* options, const char* name, const char* value);
/* Adds a file of rules by its text; messages call it `name`. */
ascend_fuse_code ascend_fuse_options_rules(ascend_fuse_options* options, const char* name, const char* text);
/* `progress` is told before each pass and now and then within one, in the thread of the run. What is not 0 ends the run with
 * CANCELLED. NULL: nobody is told. */
void ascend_fuse_options_progress(ascend_fuse_options* options, int (*progress)(const ascend_fuse_progress* at), void* user);
/* Adds a pass of one's own, by the name `name`: `run` is called in the thread of the run, `place` "before" or "after" the pass
 * `stage`. What is not 0 ends the run with CANCELLED. After it the graph is verified: INTERNAL where it broke the graph. */
ascend_fuse_code ascend_fuse_options_pass(ascend_fuse_options* options, const char* place, const char* stage, const char* name,
                                          int (*run)(ascend_fuse_graph* graph), void* user);
/* NULL is nothing. */
void ascend_fuse_options_free(ascend_fuse_options* options);

/* Loads the model at `path`; weights stay in the file. The file must not change while the handle lives. */
ascend_fuse_code ascend_fuse_load(const char* path, ascend_fuse_model** model);
/* The same of a model in memory, which may be freed afterwards. External data is looked for beside `path`, which may be NULL. */
ascend_fuse_code ascend_fuse_load_bytes(const void* bytes, size_t size, const char* path, ascend_fuse_model** model);
/* Writes the model; `path` may be the file that it was loaded from. Nothing is left behind by a failure. */
ascend_fuse_code ascend_fuse_save(const ascend_fuse_model* model, const char* path);
/* The same with the options "weights" ("copy", "reference" or the name of one file), "copy-data" and the progress. */
ascend_fuse_code ascend_fuse_save_as(const ascend_fuse_model* model, const char* path, const ascend_fuse_options* options);
/* The same bytes in memory, until the next call with this handle or its end. */
ascend_fuse_code ascend_fuse_save_bytes(ascend_fuse_model* model, const void** bytes, size_t* size);
/* The model as ONNX text, with up to `most_elements` elements of each tensor; valid as ascend_fuse_save_bytes says. */
ascend_fuse_code ascend_fuse_model_text(ascend_fuse_model* model, int64_t most_elements, const char** text);
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
 * report's JSON is that of docs/analyze.md. The model stays as it is. */
ascend_fuse_code ascend_fuse_analyze(ascend_fuse_model* model, const ascend_fuse_options* options, ascend_fuse_report** report);
/* NPU nodes back to standard operators. Of the options `rules` and `dim` count, and progress; with "as-atc" standard operators
 * are taken as ATC of `target` and `cann` reads them. */
ascend_fuse_code ascend_fuse_expand(ascend_fuse_model* model, const ascend_fuse_options* options);

/* The report as JSON, with the names of docs/report.md; valid as long as the report. */
const char* ascend_fuse_report_json(const ascend_fuse_report* report);
/* The report as a person reads it, valid as long as the report; "" without memory. */
const char* ascend_fuse_report_text(const ascend_fuse_report* report);
/* Reads a report from its JSON, as ascend_fuse_report_json or the command line wrote it. */
ascend_fuse_code ascend_fuse_report_read(const char* json, ascend_fuse_report** report);
/* The report in another form, until the next call with this handle: "optimize", "list" and "check" are texts, with "verbose-"
 * before them every site has its line; with "page-" they are pages for a browser, with "part-" what is in the body of one.
 * "unwritten" is why ATC would refuse or misread the result, a sentence a line. Of ascend_fuse_analyze there are "analyze",
 * "verbose-analyze" and "page-analyze". */
ascend_fuse_code ascend_fuse_report_as(ascend_fuse_report* report, const char* form, const char** text);
/* What of `kinds`, a list with commas, was left or not found: a sentence a line, until the next call with this handle. */
ascend_fuse_code ascend_fuse_report_unmet(ascend_fuse_report* report, const char* kinds, const char** text);
/* Whether ATC ends with an error, or makes another model, because of a finding. */
int ascend_fuse_is_fatal(int certain, const char* effect);
/* NULL is nothing. */
void ascend_fuse_report_free(ascend_fuse_report* report);

/* What the library knows, until the next call in this thread: "codes"; "code", of a report, by `name`; "chips", "cann" and
 * "stages", a name a line; "targets"; "target" with its operators, that of `options`, or one operator of it by `name`. */
ascend_fuse_code ascend_fuse_describe(const char* subject, const char* name, const ascend_fuse_options* options,
                                      const char** text);

/* --- Passes of one's own. `graph`, nodes and values are valid while `run` runs, also of nodes that are gone from the graph.
 * Texts and lists are valid until the next call with `graph`. In JSON, a byte of a text that is not ASCII is the character of its
 * number: "\u00e9" is the byte 0xe9. --- */

/* `user` of ascend_fuse_options_pass. */
void* ascend_fuse_graph_user(const ascend_fuse_graph* graph);
/* The opset of the default domain. */
int64_t ascend_fuse_graph_opset(ascend_fuse_graph* graph);
/* The nodes that are alive, those of one operator or, with `op_type` NULL, all; bodies of If, Loop and Scan after the graph
 * around them. Gives their number. */
size_t ascend_fuse_graph_nodes(ascend_fuse_graph* graph, const char* op_type, const char* domain,
                               const ascend_fuse_node* const** nodes);
/* The inputs of the model. */
size_t ascend_fuse_graph_inputs(ascend_fuse_graph* graph, const ascend_fuse_value* const** values);
/* The outputs of the model. */
size_t ascend_fuse_graph_outputs(ascend_fuse_graph* graph, const ascend_fuse_value* const** values);

/* The operator. */
const char* ascend_fuse_node_op_type(ascend_fuse_graph* graph, const ascend_fuse_node* node);
/* The domain of the operator; "" for the default one. */
const char* ascend_fuse_node_domain(ascend_fuse_graph* graph, const ascend_fuse_node* node);
/* Its name; "" where it has none. */
const char* ascend_fuse_node_name(ascend_fuse_graph* graph, const ascend_fuse_node* node);
/* The node as ONNX text. */
const char* ascend_fuse_node_text(ascend_fuse_graph* graph, const ascend_fuse_node* node);
/* The kind of the construct that it was made for, or NULL: such a node belongs to `lower` and `restore`, leave it alone. */
const char* ascend_fuse_node_site(ascend_fuse_graph* graph, const ascend_fuse_node* node);
/* 0 once it was replaced and nothing reads it. */
int ascend_fuse_node_alive(ascend_fuse_graph* graph, const ascend_fuse_node* node);
/* Its inputs; NULL is an optional one that is left out. */
size_t ascend_fuse_node_inputs(ascend_fuse_graph* graph, const ascend_fuse_node* node, const ascend_fuse_value* const** values);
/* Its outputs; NULL is one that is left out. */
size_t ascend_fuse_node_outputs(ascend_fuse_graph* graph, const ascend_fuse_node* node, const ascend_fuse_value* const** values);
/* Its attributes as a JSON object; null stands for a tensor, a graph or a type. A float has a point or an exponent. */
const char* ascend_fuse_node_attributes(ascend_fuse_graph* graph, const ascend_fuse_node* node);

/* Its name. */
const char* ascend_fuse_value_name(ascend_fuse_graph* graph, const ascend_fuse_value* value);
/* Its name, type and shape. */
const char* ascend_fuse_value_text(ascend_fuse_graph* graph, const ascend_fuse_value* value);
/* "float", "float16", "int64" ...; NULL where it is not known, and before `infer`. */
const char* ascend_fuse_value_dtype(ascend_fuse_graph* graph, const ascend_fuse_value* value);
/* Its shape as a JSON list: numbers, expressions in symbols ("2*seq"), or null; null where the rank is not known. */
const char* ascend_fuse_value_shape(ascend_fuse_graph* graph, const ascend_fuse_value* value);
/* The elements of a small tensor, row by row, as a JSON list; null where they are not known. */
const char* ascend_fuse_value_elements(ascend_fuse_graph* graph, const ascend_fuse_value* value);
/* Whether all elements are one number, and which. */
int ascend_fuse_value_splat(ascend_fuse_graph* graph, const ascend_fuse_value* value, double* number);
/* The node that computes it; NULL for inputs and constants. */
const ascend_fuse_node* ascend_fuse_value_producer(ascend_fuse_graph* graph, const ascend_fuse_value* value);
/* The nodes that read it, each once. */
size_t ascend_fuse_value_consumers(ascend_fuse_graph* graph, const ascend_fuse_value* value,
                                   const ascend_fuse_node* const** nodes);
/* Whether the model has it as an input. */
int ascend_fuse_value_is_input(ascend_fuse_graph* graph, const ascend_fuse_value* value);
/* Whether the model has it as an output. */
int ascend_fuse_value_is_output(ascend_fuse_graph* graph, const ascend_fuse_value* value);
/* Whether it is a constant of the model. */
int ascend_fuse_value_is_constant(ascend_fuse_graph* graph, const ascend_fuse_value* value);

/* Attributes of the next node that ascend_fuse_replace or ascend_fuse_insert makes; when that has failed, too, they are gone. */
ascend_fuse_code ascend_fuse_attribute_int(ascend_fuse_graph* graph, const char* name, int64_t number);
ascend_fuse_code ascend_fuse_attribute_float(ascend_fuse_graph* graph, const char* name, float number);
ascend_fuse_code ascend_fuse_attribute_text(ascend_fuse_graph* graph, const char* name, const char* bytes, size_t size);
ascend_fuse_code ascend_fuse_attribute_ints(ascend_fuse_graph* graph, const char* name, const int64_t* numbers, size_t count);
ascend_fuse_code ascend_fuse_attribute_floats(ascend_fuse_graph* graph, const char* name, const float* numbers, size_t count);
/* A new node that computes these values, in the place of the nodes that did. Their names and readers stay. `made` may be NULL. */
ascend_fuse_code ascend_fuse_replace(ascend_fuse_graph* graph, const ascend_fuse_value* const* outputs, size_t output_count,
                                     const char* op_type, const ascend_fuse_value* const* inputs, size_t input_count,
                                     const char* domain, const char* name, const ascend_fuse_node** made);
/* A new node with new values, after the nodes that compute its inputs. */
ascend_fuse_code ascend_fuse_insert(ascend_fuse_graph* graph, const char* op_type, const ascend_fuse_value* const* inputs,
                                    size_t input_count, const char* domain, const char* name, size_t output_count,
                                    const ascend_fuse_node** made);
/* Makes that input of the node read another value; NULL leaves it out. NOT_FOUND where the node has no such input. */
ascend_fuse_code ascend_fuse_set_input(ascend_fuse_graph* graph, const ascend_fuse_node* node, size_t index,
                                       const ascend_fuse_value* value);
/* A constant of packed little-endian elements. */
ascend_fuse_code ascend_fuse_constant(ascend_fuse_graph* graph, const void* elements, size_t size, const char* dtype,
                                      const int64_t* shape, size_t rank, const char* name, const ascend_fuse_value** made);

#ifdef __cplusplus
}
#endif

#endif
