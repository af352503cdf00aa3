// SPDX-License-Identifier: Apache-2.0
/*
 * The embedding API of cleave: load a model, load rules, partition, compile a session, run it.
 *
 * Every function that can fail returns a `cleave_status_t` and takes a `cleave_error_t *` last: owned by the
 * caller, may be NULL; the first error that is written to it stays. The library never prints, exits or
 * asserts on input. Pointers are not NULL unless a function says that they may be; those that destroy,
 * release or free something take NULL, and do nothing then. Objects are not locked: use one object from one
 * thread at a time, except if a function says otherwise; different sessions over one model may run on
 * different threads.
 *
 * Structs that begin with `size` grow: later versions of cleave may add fields at their end. Whoever owns
 * such a struct sets `size` to its sizeof, also if a function is to fill it in; so a program runs with a
 * library that is older or newer than its headers. Of what a caller gives, fields that the caller's struct
 * does not have are 0, or the default that the struct names; of what a function fills in, it leaves alone the
 * size, and fields that it does not know. A size that is smaller than that of the first version, or 0 since
 * it was forgotten, is CLEAVE_ERROR_INVALID_ARGUMENT; functions without a status fill in what there is room
 * for. A struct of options, or a request, may be NULL, which is one that is all zero. Structs that cleave
 * makes and hands out by pointer have the size of the library: compare before reading a field that is younger
 * than the first version. Structs without `size` never change (cleave_error_t, cleave_message_t,
 * cleave_setting_t, cleave_rule_source_t, cleave_backend_option_t, ...), nor do those that lie in arrays
 * although they have a `size`, which nobody reads: cleave_tensor_view_t, cleave_attribute_view_t,
 * cleave_engine_device_t. What is between cleave and libraries has versions of its own: cleave/backend.h.
 *
 * A context holds what models share: backends, with the libraries that were loaded and their settings,
 * and the log. Whatever is made of a model is of the model's context. If a function takes a context, NULL
 * is the process's own, which is there from the start and for good. examples/embed/tour.c shows all of it.
 * Long file: one interface, in the order in which it is used.
 */
#ifndef CLEAVE_CLEAVE_H
#define CLEAVE_CLEAVE_H

#include "cleave/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- models --------------------------------------------------------------------------------------- */

/* A model: a graph with its weights. Shared by reference count; once loaded it is never changed, and may be
 * used by several threads at once. It is of the context that it was loaded in. Weights stay in the mapped
 * file where they lie there. */
typedef struct cleave_model cleave_model_t;

/* name=value for an option that a rule file or a model script declares. */
typedef struct cleave_setting {
  const char *name;
  const char *value; /* converted by the option's type */
} cleave_setting_t;

/* A number for a size that a file leaves open, by its name there. */
typedef struct cleave_open_size {
  const char *name;
  int64_t size;
} cleave_open_size_t;

/* A value for an input of one number or bool, which is a constant then. */
typedef struct cleave_fixed_input {
  const char *name;
  const char *value; /* "true", "3", "0.5": converted to the input's dtype */
  bool is_optional;  /* the model may have no such input */
} cleave_fixed_input_t;

/* How a model is loaded. All zero but `size`: as it is in its file. */
typedef struct cleave_model_load_options {
  size_t size;                      /* sizeof(cleave_model_load_options_t) */
  const cleave_setting_t *settings; /* of a script's options; one that it does not declare is an error */
  size_t setting_count;
  uint64_t seed; /* draws a script's weights; 0: the script's own default */
  /* An ONNX file whose operator set is newer than all that is known is refused, and so are functions that use
   * an operator set which they do not import, and outputs whose declared shape is not the inferred one.
   * Leniently, they are read as the newest operator set known (with a warning in the log), with what the
   * model imports, and with the inferred shape. */
  bool lenient;
  /* An input of an ONNX file that has an initializer as well is a constant, which is its default value; so
   * models that list all weights among their inputs (IR 3) fold and run like others. Inputs that are named
   * here are inputs, which every run gives; a name that is not an input of the file is an error. To replace a
   * default for good, and keep what depends on it folded, see cleave_model_set_constants. */
  const char *const *open_inputs;
  size_t open_input_count;
  /* The content of the file (.onnx or .json), in the place of reading `path`, which is then a name for
   * errors, or NULL. It is copied as far as it is needed. */
  const void *data;
  size_t data_size;
  /* Nodes that no output needs stay in the graph, to be looked at; otherwise they go before anything else.
   * They run with the others, and rules see them. */
  bool keep_dead;
  /* For conditions of an ONNX file (If) that sizes decide and that are open without these: only then they are
   * looked at, and the model has them alone. Names that the file does not have are passed over. */
  const cleave_open_size_t *sizes;
  size_t size_count;
  const char *ranges; /* of its values, for rules: a file of `cleave calibrate` for this model; or NULL */
  /* Inputs that get their value for good, and are inputs of the model no more: conditions of an ONNX file
   * (If) that depend on them are decided. The last value of a name counts. */
  const cleave_fixed_input_t *fixed_inputs;
  size_t fixed_input_count;
} cleave_model_load_options_t;

/* Loads a model by the extension of its file: .onnx, .lua for a model script, or .json for a region that was
 * written by cleave_plan_save_regions. `path` may be NULL if the options have `data`. */
CLEAVE_MUST_USE cleave_status_t cleave_model_load(cleave_context_t *context, const char *path,
                                                  const cleave_model_load_options_t *options,
                                                  cleave_model_t **out_model, cleave_error_t *error);
/* An ONNX model, or a region as JSON, in memory, which may go after the call: weights are copied. Data in
 * other files is refused. `name` stands for the file in messages. */
CLEAVE_MUST_USE cleave_status_t cleave_model_load_memory(cleave_context_t *context, const void *data,
                                                         size_t size, const char *name,
                                                         cleave_model_t **out_model, cleave_error_t *error);
cleave_model_t *cleave_model_retain(cleave_model_t *model);
void cleave_model_release(cleave_model_t *model);

/* An input or output. `tensor` has dtype, rank and dims (negative: known at run time only), no data, and
 * points into the model. */
typedef struct cleave_port {
  size_t size; /* sizeof(cleave_port_t) */
  const char *name;
  cleave_tensor_view_t tensor;
} cleave_port_t;

uint32_t cleave_model_input_count(const cleave_model_t *model);
uint32_t cleave_model_output_count(const cleave_model_t *model);
/* CLEAVE_ERROR_INVALID_ARGUMENT beyond the last. */
CLEAVE_MUST_USE cleave_status_t cleave_model_input(const cleave_model_t *model, uint32_t index,
                                                   cleave_port_t *out_port, cleave_error_t *error);
CLEAVE_MUST_USE cleave_status_t cleave_model_output(const cleave_model_t *model, uint32_t index,
                                                    cleave_port_t *out_port, cleave_error_t *error);
/* Index of an input by its name, or CLEAVE_INDEX_NONE. Names are for people: positions are what counts. */
uint32_t cleave_model_find_input(const cleave_model_t *model, const char *name);
uint32_t cleave_model_find_output(const cleave_model_t *model, const char *name);

/* The model with sizes for the dimensions of its inputs that were left open: `inputs[k]` has dtype, rank and
 * dims of input k (no data needed), or is NULL if the model or the others say everything. Rules then see
 * sizes, not symbols, and what depends on sizes alone is computed once. The result shares the weights. */
CLEAVE_MUST_USE cleave_status_t cleave_model_bind(cleave_model_t *model,
                                                  const cleave_tensor_view_t *const *inputs,
                                                  size_t input_count, cleave_model_t **out_model,
                                                  cleave_error_t *error);

/* The constants of a model as its file has them (initialisers, weights): before anything is folded, so a
 * convolution's weight and the batch norm's scale, not what becomes of the two. Those without a name are not
 * counted. The port's tensor has data, which may be unaligned, and stays as long as the model. Of a bound
 * model: the constants of the model that was bound. */
uint32_t cleave_model_constant_count(const cleave_model_t *model);
/* CLEAVE_ERROR_INVALID_ARGUMENT beyond the last. */
CLEAVE_MUST_USE cleave_status_t cleave_model_constant(const cleave_model_t *model, uint32_t index,
                                                      cleave_port_t *out_port, cleave_error_t *error);

/* A model with other constants: new weights for the same network. `tensors[k]` (copied) takes the place of
 * the constant `names[k]`, with the same dtype and shape. Whatever was folded from a constant that changes is
 * computed anew; all else is shared with `model`, which stays as it is: plans and sessions over it go on.
 * If nothing changes, the result is `model` itself. For the new model, partition it, or take the plan over
 * with cleave_plan_rebase; then make a session, with the program cache of the session before: programs whose
 * constants did not change are not compiled again.
 *
 * CLEAVE_ERROR_INVALID_ARGUMENT: there is no such constant, or there are several, or one is given twice.
 * CLEAVE_ERROR_SHAPE: another dtype or shape. CLEAVE_ERROR_UNSUPPORTED: a constant that decides the structure
 * of the model, such as the shape that a Reshape takes: what is folded, a type or an attribute would be
 * another one. Thread-safe. A model made so keeps the first of its line in memory. */
CLEAVE_MUST_USE cleave_status_t cleave_model_set_constants(cleave_model_t *model, const char *const *names,
                                                           const cleave_tensor_view_t *const *tensors,
                                                           size_t count, cleave_model_t **out_model,
                                                           cleave_error_t *error);

/* ---- rules and plans ------------------------------------------------------------------------------ */

/* The decisions of rules about a model: which backend runs what, and which operators are one kernel. It is
 * immutable, and threads may share it. It refers to its model, which must outlive it. */
typedef struct cleave_plan cleave_plan_t;

/* A rule file, or its text: one of the two is there. */
typedef struct cleave_rule_source {
  const char *path; /* of the file; with `text`: the name for messages */
  const char *text; /* NULL: read the file */
  size_t length;    /* of `text` */
} cleave_rule_source_t;

/* Rule files, and what they are given. */
typedef struct cleave_partition_request {
  size_t size;                         /* sizeof(cleave_partition_request_t) */
  const cleave_rule_source_t *sources; /* in the order in which they run */
  size_t source_count;
  const cleave_setting_t *settings; /* of their options; one that none of them declares is an error */
  size_t setting_count;
  /* In the place of the backends that the rule files name. Without rule files it runs all that it supports,
   * and `cpu` the rest. May be NULL: what the files name; without files, `cpu` runs everything. */
  const char *backend;
} cleave_partition_request_t;

/* Runs rule files over a model. `request` NULL: `cpu` runs everything. */
CLEAVE_MUST_USE cleave_status_t cleave_model_partition(cleave_model_t *model,
                                                       const cleave_partition_request_t *request,
                                                       cleave_plan_t **out_plan, cleave_error_t *error);
void cleave_plan_destroy(cleave_plan_t *plan);

/* Rule files that are loaded once, for any number of models: their interpreters stay. One thread at a time.
 */
typedef struct cleave_rule_files cleave_rule_files_t;

/* Nothing of the request is needed after the call. What is wrong with a file is reported here, before there
 * is a model: CLEAVE_ERROR_RULE with file, line and rule. */
CLEAVE_MUST_USE cleave_status_t cleave_rule_files_load(cleave_context_t *context,
                                                       const cleave_partition_request_t *request,
                                                       cleave_rule_files_t **out_files,
                                                       cleave_error_t *error);
/* The plan that cleave_model_partition would make. It does not need the rule files any more.
 * CLEAVE_ERROR_INVALID_ARGUMENT: the model is of another context. */
CLEAVE_MUST_USE cleave_status_t cleave_rule_files_partition(cleave_rule_files_t *files, cleave_model_t *model,
                                                            cleave_plan_t **out_plan, cleave_error_t *error);
/* NULL is a no-op. */
void cleave_rule_files_destroy(cleave_rule_files_t *files);

/* The values that are computed a second time instead of being kept. Bytes are estimates from the sizes of
 * values and the order of nodes, without inputs, constants and outputs. */
typedef struct cleave_recompute_report {
  size_t size;        /* sizeof(cleave_recompute_report_t) */
  int64_t kept_bytes; /* of values of forward that live when backward begins, or later */
  int64_t kept_bytes_before;
  int64_t peak_bytes; /* most bytes of values that live at the same time */
  int64_t peak_bytes_before;
  double flops_added;
  uint32_t node_count; /* that are computed a second time */
} cleave_recompute_report_t;

/* How gradients are made. All zero but `size`: by the rules that come with cleave. */
typedef struct cleave_gradient_options {
  size_t size; /* sizeof(cleave_gradient_options_t) */
  /* Rule files with `gradient` rules, which take the place of those that come with cleave, and of those of
   * the files before them. Their regions, if some backend of them has gradients of its own (`backward` in
   * cleave/backend.h), are asked first: cleave_model_backward. Rules that change graphs are passed over. */
  const cleave_rule_source_t *sources;
  size_t source_count;
  const cleave_setting_t *settings; /* of these files */
  size_t setting_count;
  /* Constants that get a gradient become inputs, after those of the model and in the order of the gradients:
   * what a training loop gives to each run anew, without compiling again. */
  bool open;
  /* Forward values that backward needs are computed again, so that the values of a run need at most this
   * share of the memory that they need if all are kept: more than 0, less than 1; 0: all are kept. What is
   * chosen costs the fewest additional FLOPs that were found. All sizes must be known (cleave_model_bind). */
  double recompute;
  cleave_recompute_report_t *out_recompute; /* filled in if `recompute` is not 0; may be NULL */
} cleave_gradient_options_t;

/* The model with the gradients of `loss`: the name of an output or of any other value of floating-point
 * numbers; of a value with several elements: the gradients of their sum. The result has the inputs and
 * outputs of the model, and after them an output "grad(NAME)" for each of the `wrt_count` names of `wrt`:
 * inputs, constants of the file, or values in between, which are then treated as if they were given. With a
 * count of 0: for all floating-point constants of the file with one or more dimensions that the loss depends
 * on (not through the statistics of BatchNormalization), in the order of the file. A gradient has the dtype
 * and shape of what it is of.
 *
 * The result is a model like any other: it can be partitioned, saved, bound, given other constants, and
 * differentiated again. It shares the weights. `options` may be NULL.
 *
 * CLEAVE_ERROR_INVALID_ARGUMENT: there is no value of a name, it is not of floating-point numbers, it is
 * given twice, or the loss does not depend on it. CLEAVE_ERROR_UNSUPPORTED: an operator between the two has
 * no gradient; the message names the node, and how the loss depends on it. CLEAVE_ERROR_RULE: a rule file, or
 * a rule, failed. CLEAVE_ERROR_SHAPE, _LIMIT: `recompute` needs sizes that are not known, or more than the
 * share. Thread-safe. */
CLEAVE_MUST_USE cleave_status_t cleave_model_gradient(cleave_model_t *model, const char *loss,
                                                      const char *const *wrt, size_t wrt_count,
                                                      const cleave_gradient_options_t *options,
                                                      cleave_model_t **out_model, cleave_error_t *error);

/* Who made the gradients of a region of the forward graph. */
typedef struct cleave_backward_region {
  const char *name; /* NULL: of no region: the backend has no gradients of its own, and none was asked for */
  const char *backend;
  uint32_t node_count;
  const char *reason; /* why the gradient rules of its nodes made them, in one line; NULL: the backend did */
} cleave_backward_region_t;

/* The regions whose gradients a model that cleave_model_gradient made by rule files needed, from the loss
 * back, after backends that were not asked. NULL and 0 for other models. Borrowed from the model. */
const cleave_backward_region_t *cleave_model_backward(const cleave_model_t *model, uint32_t *out_count);

/* The inputs of a plan, which are those of its sessions: the model's, in their order, and after them what
 * rules (a `pass`) added. If none did, they are the model's. Outputs keep their number and order. */
uint32_t cleave_plan_input_count(const cleave_plan_t *plan);
/* The port points into the plan. CLEAVE_ERROR_INVALID_ARGUMENT beyond the last. */
CLEAVE_MUST_USE cleave_status_t cleave_plan_input(const cleave_plan_t *plan, uint32_t index,
                                                  cleave_port_t *out_port, cleave_error_t *error);
/* Index of an input by its name, or CLEAVE_INDEX_NONE. */
uint32_t cleave_plan_find_input(const cleave_plan_t *plan, const char *name);

typedef enum cleave_plan_format {
  CLEAVE_PLAN_TEXT, /* for people */
  CLEAVE_PLAN_JSON
} cleave_plan_format_t;

/* The plan as text; the same plan gives the same bytes. Free with cleave_text_free. */
CLEAVE_MUST_USE cleave_status_t cleave_plan_format(const cleave_plan_t *plan, cleave_plan_format_t format,
                                                   char **out_text, cleave_error_t *error);

/* Writes a plan by the extension of the file: .txt, .json, .dot (Graphviz, regions and fusions as clusters),
 * or .onnx: the model with each region, and inside of it each fusion, as a model-local function in the
 * domains cleave.region and cleave.fusion, which any runtime can run. `opset_version` is for .onnx: 13 to 24,
 * or 0 for that of the model. What it lacks is written as functions of the domain cleave.operator;
 * CLEAVE_ERROR_UNSUPPORTED if it cannot be spelled with its operators, with the node, its operator, and an
 * operator set that would do. */
CLEAVE_MUST_USE cleave_status_t cleave_plan_save(const cleave_plan_t *plan, const char *path,
                                                 int32_t opset_version, cleave_error_t *error);

/* How a saved plan is taken up again. */
typedef struct cleave_plan_load_options {
  size_t size;      /* sizeof(cleave_plan_load_options_t) */
  bool fallback;    /* a region whose backend is missing, or refuses a part of it, runs node by node on `cpu`,
                       with a note that says why; otherwise it is an error */
  const char *text; /* of the plan (.json), in the place of reading the file; NULL: read it */
  size_t length;    /* of `text` */
} cleave_plan_load_options_t;

/* A plan that was saved as .json, for this model: no rule file is read and no Lua runs. One that was made for
 * other sizes than a bound model has is taken over as by cleave_plan_rebase. CLEAVE_ERROR_FORMAT: it is not
 * a plan. CLEAVE_ERROR_MISMATCH: it is of another model ("node 17 is Conv 'x', the plan has Relu 'y'"), or
 * for sizes that this one cannot have. CLEAVE_ERROR_UNSUPPORTED: a backend is missing, or refuses a region.
 * With the same sizes the result saves to the same bytes. `options` may be NULL. `path` may also be an .onnx
 * file that cleave_plan_save wrote, and the model that was loaded from it; with `options->text` it is a name
 * for messages, or NULL. */
CLEAVE_MUST_USE cleave_status_t cleave_plan_load(cleave_model_t *model, const char *path,
                                                 const cleave_plan_load_options_t *options,
                                                 cleave_plan_t **out_plan, cleave_error_t *error);

/* The regions of a plan, in the order in which they run. Texts live as long as the plan; "" beyond the last.
 */
uint32_t cleave_plan_region_count(const cleave_plan_t *plan);
const char *cleave_plan_region_name(const cleave_plan_t *plan, uint32_t index);
const char *cleave_plan_region_backend(const cleave_plan_t *plan, uint32_t index);

/* The place of the large constants of a region (small ones are always in its text). */
typedef enum cleave_region_constants {
  CLEAVE_REGION_CONSTANTS_INLINE, /* into the text */
  CLEAVE_REGION_CONSTANTS_FILES,  /* into .npy files beside it */
  CLEAVE_REGION_CONSTANTS_TYPES /* nowhere: their types remain, and numbers are drawn for them when it is read
                                 */
} cleave_region_constants_t;

/* A region as JSON: all that its backend gets, which makes a model of its own that any function
 * here takes. The format is described in backends/README.md. Not CONSTANTS_FILES, since there is no file.
 * Free with cleave_text_free. */
CLEAVE_MUST_USE cleave_status_t cleave_plan_region_json(const cleave_plan_t *plan, uint32_t index,
                                                        cleave_region_constants_t constants, char **out_text,
                                                        cleave_error_t *error);
/* All regions, each as <folder>/<name>.json, where characters that are not letters, digits, '_', '-' or '.'
 * became '_'. The folder is made if it is missing. */
CLEAVE_MUST_USE cleave_status_t cleave_plan_save_regions(const cleave_plan_t *plan, const char *folder,
                                                         cleave_region_constants_t constants,
                                                         cleave_error_t *error);

/* Was the model a region? Then this is the plan it came with: itself with its fusions, on `backend` or, if
 * that is NULL, the backend that it says. CLEAVE_ERROR_INVALID_ARGUMENT: it was none.
 * CLEAVE_ERROR_UNSUPPORTED: the backend refuses a part of it (`options` may ask to fall back instead; it may
 * be NULL). */
bool cleave_model_is_region(const cleave_model_t *model);
CLEAVE_MUST_USE cleave_status_t cleave_model_plan_region(cleave_model_t *model, const char *backend,
                                                         const cleave_plan_load_options_t *options,
                                                         cleave_plan_t **out_plan, cleave_error_t *error);

/* Takes over the decisions for another version of the model (cleave_model_set_constants, the same network
 * loaded from elsewhere, or, if the plan is of a bound model, bound to other sizes): the same regions and
 * fusions on the same nodes, no rule runs. What rewrites and passes did is done again, so that what they
 * folded follows. CLEAVE_ERROR_MISMATCH: the model is not the same node by node, with the first thing that
 * differs. CLEAVE_ERROR_UNSUPPORTED: a rewrite or pass made use of a constant (0.5 in a spelled-out Gelu) or
 * a size that is another one now, or a backend refuses a region: run the rules over the new model. Attributes
 * that rules gave to fusions and regions stay. The result refers to `model`, and not to `plan`. */
CLEAVE_MUST_USE cleave_status_t cleave_plan_rebase(const cleave_plan_t *plan, cleave_model_t *model,
                                                   cleave_plan_t **out_plan, cleave_error_t *error);

/* The question. All zero but `size` asks for the best near misses of all rules, as text. */
typedef struct cleave_why_options {
  size_t size;      /* sizeof(cleave_why_options_t) */
  const char *node; /* its name, "#12", or "op:Conv": what every rule did with it; NULL: with no node */
  const char *rule; /* where it matched and nearly matched, with edits that would let it match; or NULL */
  cleave_plan_format_t format;
} cleave_why_options_t;

/* Why? With a node and a rule: what that rule did at that node. Partitions the model on its own; plans cost
 * nothing for being asked about. `options` may be NULL. Free with cleave_text_free. */
CLEAVE_MUST_USE cleave_status_t cleave_model_why(cleave_model_t *model,
                                                 const cleave_partition_request_t *request,
                                                 const cleave_why_options_t *options, char **out_text,
                                                 cleave_error_t *error);

/* ---- sessions ------------------------------------------------------------------------------------- */

/* A plan compiled for concrete input shapes, with all its memory. One thread at a time; different sessions
 * may run at the same time. */
typedef struct cleave_session cleave_session_t;

typedef struct cleave_program_cache cleave_program_cache_t;

/* Compiled programs that sessions share. A session that is made while others of the same cache live takes
 * over their programs for every region that is the same in operators, attributes, shapes, fusions, constants
 * (by version: the model must be the same one, or made of it by cleave_model_set_constants, not loaded
 * again), backend and threads; so only what a change of rules or constants changed is compiled. The cache
 * keeps nothing itself: a program goes with the last session that uses it. A shared program runs for one
 * session at a time: sessions on several threads wait for each other region by region, so that threads that
 * are to run at the same time for speed should each have sessions without a common cache. Backends share
 * packed weights between programs on their own, whether or not there is a cache, since running only reads
 * them. Thread-safe. */
CLEAVE_MUST_USE cleave_status_t cleave_program_cache_create(cleave_program_cache_t **out_cache,
                                                            cleave_error_t *error);
/* Sessions that were made with it keep what they need of it. */
void cleave_program_cache_release(cleave_program_cache_t *cache);

/* key=value for the compiler of a backend. cleave itself reads `device`: the number of the backend's device
 * that regions run on, unless the rule that made a region says otherwise (its attribute `device`). A key that
 * the backend does not have is an error. */
typedef struct cleave_backend_option {
  const char *backend;
  const char *key;
  const char *value;
} cleave_backend_option_t;

typedef struct cleave_session_options {
  size_t size;                      /* sizeof(cleave_session_options_t) */
  int32_t threads;                  /* that a run may use; 0: see cleave_session_create */
  bool profile;                     /* keep times per step: costs a little */
  cleave_program_cache_t *programs; /* shared with other sessions; NULL: none */
  bool strict; /* a region that its backend does not compile is an error, not a note and nodes one by one */
  /* Every node of a region is a step of its own on the region's backend: through its executors, or as a
   * region of one node. Fusions are dissolved; a node that the backend does not run alone runs on `cpu`. */
  bool imperative;
  const cleave_backend_option_t *backend_options; /* copied */
  uint32_t backend_option_count;
  /* Folder, made if it is missing, in which compiled regions are kept for later processes, for backends
   * that can serialise their programs; NULL: none. Nothing in it can make a session fail: what is broken or
   * of another version, library, device or option is compiled anew, and the log says why. */
  const char *blob_folder;
  uint64_t blob_limit; /* bytes; beyond, what was not used for the longest time goes. 0: 2 GiB */
  /* If a backend fails in a run, `cpu` computes the region in that run and in all later ones; if a device
   * has no memory for a session, or does not start (no device, `properties`, streams, events), `cpu` gets
   * its regions; if copies or events of a device fail in a run, the run is done once more, with `cpu` in
   * the device's place, unless an output was added to (CLEAVE_REQUEST_ADD). What failed beside other steps
   * or late on a stream is repeated step by step first; where it does not fail again, the device stays. A
   * note or the log says which and why. The backend's programs never write over their inputs then.
   * Operators of libraries have nobody else to compute them: the failure of a region with one is an error. */
  bool fallback;
  /* Steps side by side, on threads of the session (cleave/engine.h). 1: none, a run is the work of the
   * calling thread, and of streams. 2 and more: so many threads compute on the host, each a branch of the
   * model with its share of `threads`, and one for each device and for each direction of its copies; values
   * need more memory then. 0: as with 1, unless the session runs on several devices that do not only wait for
   * each other; then a thread for the host and those of the devices. Not with `profile`. Outputs are the same
   * in every run; between numbers of workers they differ only if a backend computes otherwise with fewer
   * threads.
   */
  int32_t workers;
} cleave_session_options_t;

/* Threads 0: OMP_NUM_THREADS of the environment, else one for each processor that the process may run on, but
 * no more than the quota of its control groups is worth. Sessions with several threads have a thread of the
 * library look, 100 times a second while they run, for other processes on the same processors; meanwhile all
 * threads of libgomp in this process sleep instead of spin while they wait, unless the environment sets
 * OMP_WAIT_POLICY or GOMP_SPINCOUNT. Sessions on two threads whose runs take less than 20 ms then compile
 * their regions once more, for one thread (up to 32 MiB of packed weights), and run the faster way. Outputs
 * do not depend on it: one thread is used only if it computed the same bits. Compiles. `plan` NULL: every
 * operator runs on `cpu`. `inputs` as for cleave_model_bind, by the plan's inputs: those after the model's
 * may be left out if the plan says their whole shape; `options` may be NULL. The session retains the model;
 * the plan must outlive it. */
CLEAVE_MUST_USE cleave_status_t cleave_session_create(cleave_model_t *model, const cleave_plan_t *plan,
                                                      const cleave_tensor_view_t *const *inputs,
                                                      size_t input_count,
                                                      const cleave_session_options_t *options,
                                                      cleave_session_t **out_session, cleave_error_t *error);
void cleave_session_destroy(cleave_session_t *session);

/* Input `index` is read from tensor->data in every run from now on: nothing is copied, the buffer must stay
 * until it is replaced. Dtype and shape must be those the session was made for. Any alignment. */
CLEAVE_MUST_USE cleave_status_t cleave_session_set_input(cleave_session_t *session, uint32_t index,
                                                         const cleave_tensor_view_t *tensor,
                                                         cleave_error_t *error);

/* Runs once. Allocates nothing, unless shapes depend on data and are larger than ever before. */
CLEAVE_MUST_USE cleave_status_t cleave_session_run(cleave_session_t *session, cleave_error_t *error);

/* Output `index` of the last run: memory of the session (or of an input, if the model hands it through),
 * valid until the next run; or the user's own, if cleave_session_set_output gave it.
 * CLEAVE_ERROR_INVALID_ARGUMENT: the last run failed or there was none, its request is NONE, or no run has
 * come since cleave_session_set_output. */
CLEAVE_MUST_USE cleave_status_t cleave_session_output(const cleave_session_t *session, uint32_t index,
                                                      cleave_tensor_view_t *out_tensor,
                                                      cleave_error_t *error);

/* Notes from making the session that its user would like to know: regions that do not run on their backend,
 * and why. "" beyond the last; lives as long as the session. */
uint32_t cleave_session_note_count(const cleave_session_t *session);
const char *cleave_session_note(const cleave_session_t *session, uint32_t index);

/* The number of programs of a session: regions that share one count once; nodes whose shapes depend on data
 * add theirs as they run. */
uint32_t cleave_session_program_count(const cleave_session_t *session);
/* The number of them that another session of the same program cache had compiled. */
uint32_t cleave_session_reused_count(const cleave_session_t *session);
/* The number of them that were loaded from the folder of compiled regions. */
uint32_t cleave_session_loaded_count(const cleave_session_t *session);

/* Sets what becomes of output `index` in every run from now on. WRITE with a tensor: it is written to
 * tensor->data, without a copy if the step that computes it can write there (memory aligned to 64 bytes);
 * without one (NULL): to memory of the session, as at first. ADD: it is added to what tensor->data holds,
 * numbers only. NONE: nobody wants it, and what is computed for it alone is left out if that is simple.
 * The memory must stay until it is replaced, and must not overlap inputs or other outputs. Dtype and shape
 * must be the output's; if its shape is known only at run time, a run whose output has another one fails.
 * After a run that failed, what the memory holds is undefined. */
CLEAVE_MUST_USE cleave_status_t cleave_session_set_output(cleave_session_t *session, uint32_t index,
                                                          const cleave_tensor_view_t *tensor,
                                                          cleave_request_t request, cleave_error_t *error);

/* State that stays: what a run writes to output `output` is input `input` of the next run. The session keeps
 * the memory: one buffer if the step that computes the output may write over the input and nothing reads the
 * input later (TensorScatter into a cache of keys), else two that change places; nothing is copied. The first
 * run reads the tensor that cleave_session_set_input gave, which is copied now, or zeros. From then on
 * cleave_session_set_input for this input copies its tensor in, as the state of the next run, and
 * cleave_session_output shows the state after the last run. After a run that failed, the state is undefined
 * until it is set again.
 *
 * CLEAVE_ERROR_SHAPE: the two are not of the same dtype and shape, or the shape is known only at run time.
 * CLEAVE_ERROR_INVALID_ARGUMENT: one of them is fed already, or the output has memory of the user or another
 * request than WRITE; later, cleave_session_set_output for this output. */
CLEAVE_MUST_USE cleave_status_t cleave_session_feed(cleave_session_t *session, uint32_t output,
                                                    uint32_t input, cleave_error_t *error);

/* key=value that the programs of a backend are given with every run from now on; copied. NULL takes it back.
 * CLEAVE_ERROR_INVALID_ARGUMENT: the session runs nothing on this backend, or its programs have no such
 * option.
 */
CLEAVE_MUST_USE cleave_status_t cleave_session_set_run_option(cleave_session_t *session, const char *backend,
                                                              const char *key, const char *value,
                                                              cleave_error_t *error);

/* ---- watching rule files -------------------------------------------------------------------------- */

/* A model that runs by rule files while they are edited. Whenever one of them, or a file that they include,
 * is saved, cleave_rules_watch_poll loads them again in a fresh interpreter, makes the new plan, compiles
 * what differs, compares outputs and speed with the plan before, and reports. Rule files that are broken
 * change nothing but the report. Linux only. One thread at a time; nothing happens but in its functions. */
typedef struct cleave_rules_watch cleave_rules_watch_t;

typedef struct cleave_rules_watch_options {
  size_t size;      /* sizeof(cleave_rules_watch_options_t) */
  int32_t quiet_ms; /* files are read when nothing has been written for so long; 0: 20 */
  /* Milliseconds after saving until which a reload may run the plans before and after alternately to measure
   * them, at least once each; 0: 200; negative: nothing is measured, and the session before is not run. */
  int32_t measure_ms;
  /* The options of all sessions; may be NULL. Without `programs` the watch has a cache of its own. */
  const cleave_session_options_t *session;
  /* Inputs as for cleave_session_create, but with data, which must stay, because the sessions read it. */
  const cleave_tensor_view_t *const *inputs;
  size_t input_count;
} cleave_rules_watch_options_t;

/* The result of one change of the files. Texts live until the next poll. */
typedef struct cleave_reload {
  size_t size;
  cleave_status_t status;   /* CLEAVE_OK: the new plan is in use; otherwise the one before stays */
  const char *message;      /* of a failure: one line with file, line and rule; "" */
  const char *path;         /* a file that was saved, or is gone */
  bool same;                /* the new plan decides as the one before did */
  const char *changes;      /* nodes that moved, rules that gained or lost matches, ...: lines for people */
  const char *changes_json; /* the same as one JSON object */
  uint32_t programs_compiled;
  uint32_t programs_reused;   /* that the session before had compiled */
  bool compared;              /* both ran on the same inputs, and what follows is filled in */
  double largest_difference;  /* of all outputs; infinite if types differ, or NaN meets a number */
  double relative_difference; /* over the largest value of that output before */
  const char *largest_output; /* its name */
  uint32_t runs;              /* of each, alternately; 0: not measured */
  double before_ms;           /* medians */
  double after_ms;
  double rules_ms;     /* loading the rule files */
  double partition_ms; /* running the rules */
  double compile_ms;
  double total_ms; /* from saving to this report */
  /* How much slower the new plan is: the median over the pairs of runs of now / before - 1, with an interval
   * that has it with at least 95 % confidence. Only if there are pairs enough (6), and the plans differ.
   */
  bool has_change;
  double change;
  double change_low;
  double change_high;
} cleave_reload_t;

/* Loads, partitions and compiles once; what is wrong with the rules now is an error. Sources are files: paths
 * that can be opened, at least one. The watch retains the model. `options` may be NULL for a model without
 * inputs. */
CLEAVE_MUST_USE cleave_status_t cleave_rules_watch_create(cleave_model_t *model,
                                                          const cleave_partition_request_t *request,
                                                          const cleave_rules_watch_options_t *options,
                                                          cleave_rules_watch_t **out_watch,
                                                          cleave_error_t *error);
void cleave_rules_watch_destroy(cleave_rules_watch_t *watch);

/* For event loops: readable when cleave_rules_watch_poll has something to do, which may be to wait on: call
 * it with timeout 0. */
int cleave_rules_watch_descriptor(const cleave_rules_watch_t *watch);

/* Waits for a change, at most `timeout_ms` (0: not at all, negative: forever), and takes it up. *out_reload
 * is what came of it, or NULL if nothing changed or a signal came. Fails only if watching itself does.
 */
CLEAVE_MUST_USE cleave_status_t cleave_rules_watch_poll(cleave_rules_watch_t *watch, int32_t timeout_ms,
                                                        const cleave_reload_t **out_reload,
                                                        cleave_error_t *error);

/* Runs the plan before and the one in use alternately, `pairs` times more, and says in the last reload what
 * all runs together say about times: a reload does not wait until there are enough. *out_reload is the last
 * one. CLEAVE_ERROR_INVALID_ARGUMENT: it failed, or was not measured. */
CLEAVE_MUST_USE cleave_status_t cleave_rules_watch_measure(cleave_rules_watch_t *watch, uint32_t pairs,
                                                           const cleave_reload_t **out_reload,
                                                           cleave_error_t *error);

/* The plan and session in use. They change only in a poll that reports CLEAVE_OK, and stay valid, for whoever
 * still runs the session before on another thread (then with measure_ms negative), until the next such poll.
 */
const cleave_plan_t *cleave_rules_watch_plan(const cleave_rules_watch_t *watch);
cleave_session_t *cleave_rules_watch_session(const cleave_rules_watch_t *watch);

#ifdef __cplusplus
}
#endif

#endif /* CLEAVE_CLEAVE_H */
