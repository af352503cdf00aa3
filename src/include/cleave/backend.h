// SPDX-License-Identifier: Apache-2.0
/*
 * The one header between cleave and whatever executes: the backends that ship with cleave (cpu, onednn)
 * and accelerator libraries loaded at run time see nothing else. Plain C, no other header of cleave.
 *
 * A backend is a struct of function pointers. cleave describes the part of the graph that a rule gave to
 * the backend as a `cleave_region_view_t`: values, nodes in topological order, and the fusions that the
 * backend accepted. The backend compiles a view into a program of its own and runs it many times.
 *
 * Conventions that hold everywhere:
 *  - Every struct starts with `size`, the bytes the side that filled it knew about. Fields are only ever
 *    added at the end. A reader checks `size` before it reads a field younger than ABI version 2.0: these
 *    are marked with their version. Structs that views hold in arrays (values, nodes, fusions, attributes)
 *    never grow; what is new about them comes as an array beside them.
 *  - Pointers in views are borrowed: they live as long as the call, unless a field says otherwise.
 *  - No function throws, exits, prints or keeps a lock. A failure is a status, and one lower-case line in
 *    the message buffer.
 *  - Strings are UTF-8 and end in NUL. Operators, their inputs, outputs and attributes are those of the
 *    ONNX operator set (https://onnx.ai/onnx/operators), in the version given by `opset_version`.
 * Long file: one interface in one file, which a library needs nothing else for.
 */
#ifndef CLEAVE_BACKEND_H
#define CLEAVE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A backend of another major version is refused; of an older or newer minor version, accepted. */
#define CLEAVE_BACKEND_ABI_MAJOR 2
#define CLEAVE_BACKEND_ABI_MINOR 2

/* Tensors have at most this many dimensions; models with more are refused when they are read. */
#define CLEAVE_MAX_RANK 8

/* "No such thing" for every 32-bit index below. */
#define CLEAVE_INDEX_NONE UINT32_MAX

#if defined(__GNUC__)
#define CLEAVE_MUST_USE __attribute__((warn_unused_result))
#define CLEAVE_EXPORT __attribute__((visibility("default")))
#else
#define CLEAVE_MUST_USE
#define CLEAVE_EXPORT
#endif

/* Outcome of everything that can fail. Zero is success. */
typedef enum cleave_status {
  CLEAVE_OK = 0,
  CLEAVE_ERROR_INVALID_ARGUMENT = 1, /* the caller broke the contract of a function */
  CLEAVE_ERROR_OUT_OF_MEMORY = 2,
  CLEAVE_ERROR_IO = 3,          /* a file cannot be opened, read or written */
  CLEAVE_ERROR_FORMAT = 4,      /* a file or text from outside is malformed */
  CLEAVE_ERROR_UNSUPPORTED = 5, /* well-formed, but not something cleave or a backend can do */
  CLEAVE_ERROR_SHAPE = 6,       /* shapes or dtypes do not fit together */
  CLEAVE_ERROR_RULE = 7,        /* a rule file is wrong, or a rule failed */
  CLEAVE_ERROR_LIMIT = 8,       /* a budget of time, memory, depth or size is used up */
  CLEAVE_ERROR_BACKEND = 9,     /* a backend failed */
  CLEAVE_ERROR_MISMATCH = 10,   /* a check of values failed */
  CLEAVE_ERROR_INTERNAL = 11    /* a bug in cleave */
} cleave_status_t;

/* Element types, numbered as in ONNX's TensorProto.DataType. BOOL is one byte, 0 or 1. STRING tensors hold
 * `const char *` elements owned by the tensor. F16 is IEEE binary16, BF16 the upper half of a binary32. */
typedef enum cleave_dtype {
  CLEAVE_DTYPE_UNKNOWN = 0,
  CLEAVE_DTYPE_F32 = 1,
  CLEAVE_DTYPE_U8 = 2,
  CLEAVE_DTYPE_I8 = 3,
  CLEAVE_DTYPE_U16 = 4,
  CLEAVE_DTYPE_I16 = 5,
  CLEAVE_DTYPE_I32 = 6,
  CLEAVE_DTYPE_I64 = 7,
  CLEAVE_DTYPE_STRING = 8,
  CLEAVE_DTYPE_BOOL = 9,
  CLEAVE_DTYPE_F16 = 10,
  CLEAVE_DTYPE_F64 = 11,
  CLEAVE_DTYPE_U32 = 12,
  CLEAVE_DTYPE_U64 = 13,
  CLEAVE_DTYPE_BF16 = 16
} cleave_dtype_t;

/* Why something is refused, for programs; the text beside it is for people. */
typedef enum cleave_reason_code {
  CLEAVE_REASON_NONE = 0,      /* not said */
  CLEAVE_REASON_OPERATOR = 1,  /* the operator, or the combination of operators */
  CLEAVE_REASON_DTYPE = 2,     /* an element type */
  CLEAVE_REASON_SHAPE = 3,     /* a rank or size, or one that is not known */
  CLEAVE_REASON_ATTRIBUTE = 4, /* the value of an attribute */
  CLEAVE_REASON_CONSTANT = 5,  /* an operand must be a constant and is not, or has the wrong value */
  CLEAVE_REASON_VERSION = 6,   /* the operator set version */
  CLEAVE_REASON_SIZE = 7,      /* too large or too small to be worth it */
  CLEAVE_REASON_DEVICE = 8     /* no device, or not enough of its memory */
} cleave_reason_code_t;

/* A backend writes the one line that says why into this. Never NULL when passed. */
typedef struct cleave_message {
  char text[256];
  cleave_reason_code_t code;
} cleave_message_t;

/* ---- what a backend sees of the graph ------------------------------------------------------------- */

typedef enum cleave_attribute_kind {
  CLEAVE_ATTRIBUTE_INT = 1,
  CLEAVE_ATTRIBUTE_FLOAT = 2,
  CLEAVE_ATTRIBUTE_STRING = 3,
  CLEAVE_ATTRIBUTE_INTS = 4,
  CLEAVE_ATTRIBUTE_FLOATS = 5,
  CLEAVE_ATTRIBUTE_STRINGS = 6,
  CLEAVE_ATTRIBUTE_TENSOR = 7
} cleave_attribute_kind_t;

/* How the elements of a tensor lie in memory; the sparse forms are those of MXNet's storage types. */
typedef enum cleave_storage {
  CLEAVE_STORAGE_DENSE = 0,     /* row-major, without gaps */
  CLEAVE_STORAGE_CSR = 1,       /* rank 2: the elements that are not zero, row after row */
  CLEAVE_STORAGE_ROW_SPARSE = 2 /* the rows (slices along dimension 0) that are not zero */
} cleave_storage_t;

/* The places of the elements of a sparse tensor. */
typedef struct cleave_sparse_view {
  size_t size;
  int64_t stored;         /* elements (CSR) or rows (ROW_SPARSE) that `data` holds */
  const int64_t *indices; /* `stored` of them, ascending: columns, in each row; or numbers of rows */
  const int64_t *offsets; /* CSR: dims[0] + 1 places in `data` where rows begin and end; otherwise NULL */
} cleave_sparse_view_t;

/* Memory of the host; device k of a backend has number k + 1. */
#define CLEAVE_MEMORY_HOST 0u

/* A tensor. `data` is NULL if only the type is known. Constant data from model files may be unaligned:
 * read it with memcpy or unaligned loads, or copy it. */
typedef struct cleave_tensor_view {
  size_t size;
  cleave_dtype_t dtype;
  int32_t rank;        /* -1: unknown */
  const int64_t *dims; /* rank entries; a negative one is unknown until run time */
  const void *data;    /* row-major without gaps, unless `storage` says otherwise */
  uint64_t version;    /* changes whenever the content of a constant changes */
  /* The meaning of the dimensions, a letter each, in views of regions: "NCHW", weights "OIHW"; NULL if no
   * operator of the region gives them one. */
  const char *layout;
  cleave_storage_t storage;
  uint32_t memory;                    /* CLEAVE_MEMORY_HOST, or k + 1: `data` is of alloc of device k */
  const cleave_sparse_view_t *sparse; /* NULL for dense tensors */
  bool is_weight; /* a constant of the model: the same in every run until its version changes */
} cleave_tensor_view_t;

/* Graphs of cleave hold their attributes in the same struct. */
typedef struct cleave_attribute_view {
  size_t size;
  const char *name;
  cleave_attribute_kind_t kind;
  uint32_t count; /* elements of a list kind; length in bytes of STRING */
  int64_t i;
  double f;
  const char *s;
  const int64_t *ints;
  const float *floats;
  const char *const *strings;
  const cleave_tensor_view_t *tensor;
  struct cleave_tensor
      *held; /* for cleave alone: the tensor of an attribute of a graph; libraries leave it NULL */
} cleave_attribute_view_t;

/* One value of a region. A value with `tensor.data` set is a constant (a weight), and so is not among the
 * run-time inputs of the region. */
typedef struct cleave_value_view {
  size_t size;
  const char *name; /* for people; never an identity */
  cleave_tensor_view_t tensor;
  uint32_t producer; /* node of this region, or CLEAVE_INDEX_NONE for inputs and constants */
  bool is_output;    /* used outside the region */
} cleave_value_view_t;

typedef struct cleave_node_view {
  size_t size;
  const char *op;        /* "Conv" */
  const char *domain;    /* "" for ai.onnx */
  const char *name;      /* for people */
  int32_t opset_version; /* of the domain's operator set whose meaning applies */
  uint32_t input_count;
  uint32_t output_count;
  uint32_t attribute_count;
  const uint32_t *inputs;  /* values of the region; CLEAVE_INDEX_NONE: an optional input left out */
  const uint32_t *outputs; /* values of the region; CLEAVE_INDEX_NONE: an output nothing uses */
  const cleave_attribute_view_t *attributes; /* complete: defaults of the operator filled in */
  uint32_t fusion;                           /* fusion of the region it belongs to, or CLEAVE_INDEX_NONE */
} cleave_node_view_t;

/* Attributes in order of their names. Those that rules give are numbers, texts and lists of them; booleans
 * are integers, 0 or 1. */
typedef struct cleave_attribute_list {
  uint32_t count;
  const cleave_attribute_view_t *items;
} cleave_attribute_list_t;

/* Nodes that one kernel of the backend computes. */
typedef struct cleave_fusion_view {
  size_t size;
  const char *rule; /* name of the `fuse` rule */
  uint32_t node_count;
  const uint32_t *nodes;     /* nodes of the region, in topological order */
  const char *const *labels; /* per node: the pattern's name for it ("conv"), or "" */
} cleave_fusion_view_t;

typedef struct cleave_region_view {
  size_t size;
  const char *name; /* unique in the plan */
  const char *rule; /* the rule that made it, or "" */
  uint64_t hash;    /* of structure, attributes, shapes, dtypes; not of constant data */
  uint32_t value_count;
  uint32_t node_count;
  uint32_t fusion_count;
  uint32_t input_count;
  uint32_t output_count;
  const cleave_value_view_t *values;
  const cleave_node_view_t *nodes; /* in topological order */
  const cleave_fusion_view_t *fusions;
  const uint32_t *inputs;  /* values that come from outside at run time, each once */
  const uint32_t *outputs; /* values used outside, each once */

  /* The attributes that the rule's `review` gave the region, in order of names; part of `hash`. */
  uint32_t attribute_count;
  const cleave_attribute_view_t *attributes;
  const cleave_attribute_list_t *fusion_attributes; /* per fusion: those of its rule */
  const double *flops; /* per node: floating-point operations, a multiply-add is two; 0: not known */
} cleave_region_view_t;

/* A view may end here, or behind any later field: what is missing is empty. */
#define CLEAVE_REGION_VIEW_SIZE_REQUIRED offsetof(cleave_region_view_t, attribute_count)

/* ---- what cleave offers a backend ----------------------------------------------------------------- */

/* Body of a parallel loop over [begin, end). */
typedef void (*cleave_parallel_fn_t)(void *context, int64_t begin, int64_t end);

typedef struct cleave_host {
  size_t size;
  uint32_t abi_major;
  uint32_t abi_minor;
  const char *version; /* of cleave: "0.1.0" */
  /* Runs `body` over [0, count) in chunks of at least `grain`, on at most `threads` threads, the caller's
   * among them; returns when all is done. May be called from `compile` and a program's `run` only. */
  void (*parallel_for)(int32_t threads, int64_t count, int64_t grain, cleave_parallel_fn_t body,
                       void *context);

  /* A line for the log of whoever embeds cleave; `host` is this struct; level 0 error, 1 warning,
   * 2 information, 3 detail. */
  void (*log)(const struct cleave_host *host, int32_t level, const char *line);

  /* Regions as JSON, for compilers that take text, for files, for logs: every member of the view, as
   * described in backends/README.md of cleave. The text ends in NUL, *out_length does not count it, and is
   * freed with `free_json`. Without `with_constants`, constants of more than 1024 bytes leave their types.
   * The way back reads text from anywhere: CLEAVE_ERROR_FORMAT and the member that is wrong. Such a view
   * belongs to the library, until `free_region`; constants whose content was left out have no data and are
   * not inputs. May be called at any time, from any thread. */
  cleave_status_t (*region_to_json)(const cleave_region_view_t *region, bool with_constants, char **out_text,
                                    size_t *out_length, cleave_message_t *message);
  void (*free_json)(char *text);
  cleave_status_t (*region_from_json)(const char *text, size_t length,
                                      const cleave_region_view_t **out_region, cleave_message_t *message);
  void (*free_region)(const cleave_region_view_t *region);

  /* The library has a form of its own of these bytes of a constant, and does not expect to read them again
   * soon: cleave may let go of the memory behind them, if it can have them back from the model's file. They
   * stay valid and as they were. Any part of a constant's data, or all between parts of several; at any time,
   * from any thread. */
  void (*constant_packed)(const void *data, size_t bytes);
} cleave_host_t;

/* ---- compiling and running ------------------------------------------------------------------------ */

/* Texts in pairs: options, and the two ways of `configure`. */
typedef struct cleave_key_value {
  const char *key;
  const char *value;
} cleave_key_value_t;

typedef struct cleave_compile_options {
  size_t size;
  int32_t threads; /* that compiling and `run` may use; at least 1 */
  bool profile;    /* keep per-step times for `profile` */

  /* */
  uint32_t device;       /* of the backend's devices, where the program will run */
  uint32_t option_count; /* from the command line or the session, for this backend */
  const cleave_key_value_t *options;
} cleave_compile_options_t;

/* Output `output` of the region may share the memory of input `input`: the program reads every element of
 * the input before it writes the one at the same place. Same byte size needed. */
typedef struct cleave_inplace_pair {
  uint32_t input;
  uint32_t output;
} cleave_inplace_pair_t;

/* The planner must know this of a program, which owns it. */
typedef struct cleave_program_info {
  size_t size;
  size_t workspace_bytes;  /* scratch memory for `run`, 64-byte aligned, shared with other programs */
  size_t persistent_bytes; /* memory that the program holds itself: packed weights, tables */
  uint32_t inplace_count;
  const cleave_inplace_pair_t *inplace;
  const char *note; /* 2.1: what users may want to know of how it was compiled, a line; or NULL */
} cleave_program_info_t;

/* How a run treats the memory of an output, as in MXNet's OpReqType. */
typedef enum cleave_request {
  CLEAVE_REQUEST_WRITE = 0, /* overwrite */
  CLEAVE_REQUEST_ADD = 1,   /* add to what is there */
  CLEAVE_REQUEST_NONE = 2   /* not requested: leave it alone */
} cleave_request_t;

typedef struct cleave_run_args {
  size_t size;
  const cleave_tensor_view_t
      *inputs; /* as region->inputs; all shapes known; 64-byte aligned unless borrowed from the user */
  cleave_tensor_view_t *outputs; /* as region->outputs; `data` is writable memory of the known shape */
  void *workspace;               /* workspace_bytes */
  /* For outputs whose shape was unknown at compile time (their `data` is NULL): asks for memory of this
   * shape, and sets outputs[output].data and dims. `dims` are copied. May be called again for an output: its
   * memory of before is gone then. From the thread that runs only. NULL if no output needs it.
   * CLEAVE_ERROR_INVALID_ARGUMENT: there is no such output, or it is no shape. CLEAVE_ERROR_SHAPE: the shape
   * contradicts what inference or the model says of the output. CLEAVE_ERROR_LIMIT: it is too large.
   * CLEAVE_ERROR_OUT_OF_MEMORY. A run that returns this status with an empty message gets the reason as
   * its message. */
  cleave_status_t (*resize_output)(void *session, uint32_t output, int32_t rank, const int64_t *dims);
  void *session; /* for resize_output */

  /* */
  const cleave_request_t *requests; /* per output; NULL: WRITE all. Others only if `adds` says so */
  void *stream;                     /* of `devices->stream_create`, to run on; NULL: done on return */
  uint32_t option_count;            /* of this run */
  const cleave_key_value_t *options;
} cleave_run_args_t;

/* Time of one step of a program, for profiles. */
typedef struct cleave_step_time {
  size_t size;
  const char *label; /* "conv+relu nChw16c"; owned by the program */
  uint32_t node;     /* first node of the step, or CLEAVE_INDEX_NONE (a reorder) */
  uint32_t fusion;   /* or CLEAVE_INDEX_NONE */
  uint64_t start_ns; /* monotonic clock */
  uint64_t end_ns;
} cleave_step_time_t;

/* The groups of functions below are what a library may have beyond regions. */

/* ---- devices with memory of their own --------------------------------------------------------------- */

typedef struct cleave_device_properties {
  size_t size;
  char name[64];           /* "H200 0" */
  uint64_t memory_bytes;   /* 0: not known */
  bool shares_host_memory; /* tensors in host memory need no copy */
  /* While one thread is in `stream_wait`, or in `event_wait` without a stream, other threads may call all
   * functions of the device: work is put on a stream while the host waits for what is on another one. */
  bool waits_aside;
} cleave_device_properties_t;

/* A backend without this group computes on host memory. Inputs, outputs and the workspace of a program that
 * runs on a device lie in memory of `alloc`, and their views say so (`memory`); constants of views stay in
 * host memory. Where the device shares host memory, all of them lie in host memory and no stream is used. All
 * functions may be called from any thread, for one device from one thread at a time; `alloc` also from inside
 * of `resize_output`. That is of this group alone: while a thread is in one of them, others may compile, run
 * and unload programs of the same device, each program in one thread at a time. */
typedef struct cleave_backend_devices {
  size_t size;
  uint32_t (*count)(void *state);
  cleave_status_t (*properties)(void *state, uint32_t device, cleave_device_properties_t *out_properties,
                                cleave_message_t *message);
  /* At least 64-byte aligned. CLEAVE_ERROR_OUT_OF_MEMORY if the device is full. */
  cleave_status_t (*alloc)(void *state, uint32_t device, size_t bytes, void **out_memory,
                           cleave_message_t *message);
  void (*free)(void *state, uint32_t device, void *memory);
  /* Frees all that `alloc` gave out on the device and that is still there: nothing uses the device any more.
   * May be NULL. */
  void (*release_all)(void *state, uint32_t device);
  /* Dense tensors of one type and shape, one of them in memory of the device, the other in the host's; on the
   * stream if it is not NULL, otherwise done on return. */
  cleave_status_t (*copy_to)(void *state, uint32_t device, const cleave_tensor_view_t *to,
                             const cleave_tensor_view_t *from, void *stream, cleave_message_t *message);
  cleave_status_t (*copy_from)(void *state, uint32_t device, const cleave_tensor_view_t *to,
                               const cleave_tensor_view_t *from, void *stream, cleave_message_t *message);

  /* Streams: all of these, or none (NULL). What is put on one stream happens in order; what it reads and
   * writes stays until `stream_wait` returns. That is also where a failure may come out late; a stream that
   * failed is not used again. */
  cleave_status_t (*stream_create)(void *state, uint32_t device, void **out_stream,
                                   cleave_message_t *message);
  void (*stream_destroy)(void *state, void *stream);
  cleave_status_t (*stream_wait)(void *state, void *stream, cleave_message_t *message);
  /* Events: all of these, or none. `event_record` marks a place in a stream; `event_wait` makes another
   * stream (NULL: the caller) wait until it is reached. */
  cleave_status_t (*event_create)(void *state, uint32_t device, void **out_event, cleave_message_t *message);
  void (*event_destroy)(void *state, void *event);
  cleave_status_t (*event_record)(void *state, void *event, void *stream, cleave_message_t *message);
  cleave_status_t (*event_wait)(void *state, void *event, void *stream, cleave_message_t *message);
} cleave_backend_devices_t;

/* ---- single operators -------------------------------------------------------------------------------- */

/* Imperative execution: an executor per operator and types, without compiling. A backend without this group
 * runs single operators as regions of one node. */
typedef struct cleave_backend_imperative {
  size_t size;
  /* `node` is a region of one node. Unlike in regions that are compiled, constants have their data and are
   * among node->inputs all the same: every value that the node reads is, once, in order of first use. Shapes
   * are known, except for outputs whose shape depends on data. CLEAVE_ERROR_UNSUPPORTED: no such executor. */
  cleave_status_t (*get_executor)(void *state, const cleave_region_view_t *node,
                                  const cleave_compile_options_t *options, void **out_executor,
                                  cleave_message_t *message);
  void (*release_executor)(void *executor);
  /* Does what `run` of a program does. Inputs are those of node->inputs, constants among them, in memory of
   * the device (in host memory they may be unaligned), and outputs those of node->outputs; there is no
   * workspace. One call at a time per executor. */
  cleave_status_t (*execute)(void *executor, const cleave_run_args_t *args, cleave_message_t *message);
} cleave_backend_imperative_t;

/* ---- compiled regions as bytes ----------------------------------------------------------------------- */

/* A compiled program as bytes, kept across processes. cleave stores a blob under all that a program
 * depends on: the region, the content of its constants, backend, version and code of the library,
 * the settings that `configure` got, the device's name, and the compile options. A blob need not hold the
 * constants: `load` gets them. */
typedef struct cleave_backend_blobs {
  size_t size;
  /* Called right after `compile`, before any run. CLEAVE_ERROR_UNSUPPORTED: not for this program. It returns
   * a failure of `write` as it is. */
  cleave_status_t (*save)(const void *program,
                          cleave_status_t (*write)(void *context, const void *data, size_t bytes),
                          void *context, cleave_message_t *message);
  /* Can this library, on this device, use the blob? CLEAVE_ERROR_UNSUPPORTED: no, and why. The bytes come
   * from a file: they are those that `save` wrote, unless somebody wants to do harm. Aligned to 64 bytes,
   * read only, and valid during the call. */
  cleave_status_t (*check)(void *state, uint32_t device, const void *data, size_t bytes,
                           cleave_message_t *message);
  /* Makes the program from a blob of the same region that `check` has accepted. If it fails, the region is
   * compiled. `data` stays where it is until the program has been unloaded: a program may read its weights
   * there, in memory that processes share. */
  cleave_status_t (*load)(void *state, const cleave_region_view_t *region,
                          const cleave_compile_options_t *options, const void *data, size_t bytes,
                          void **out_program, cleave_message_t *message);
} cleave_backend_blobs_t;

/* ---- what a library adds to cleave -------------------------------------------------------------------- */

/* An operator that no table knows. Nodes of it come from models (the domain and name there; a model that was
 * read before the library was loaded does not know it) and from scripts, as "my.company.Gemm". A library
 * whose definition is wrong, or that another library or ONNX has already, is refused. All functions may be
 * called from several threads at once, `execute` for one executor from one at a time. */
typedef struct cleave_custom_operator {
  size_t size;
  const char *domain; /* not one of ONNX's: "my.company" */
  const char *name;   /* letters, digits and '_' */
  /* The first and the last version of the domain's operator set that the definition holds for; models that
   * import another one are refused. `last_version` 0: `version` alone. */
  int32_t version;
  int32_t last_version;
  const char *inputs; /* names, '?' optional, '*' one or more at the end: "X W B?" */
  const char *outputs;
  /* name:kind, name:kind=default, or name:kind! that must be there; kinds i f s is fs ss t, defaults of lists
   * separated by commas: "alpha:f=1 mode:s=linear axis:i!" */
  const char *attributes;
  bool is_commutative; /* inputs 0 and 1 may change places */
  /* An executor keeps something between runs: never folded, and a program that has it is never shared. Where
   * shapes are known only at run time, there is one executor all the same, created with sizes open. */
  bool is_stateful;
  void *self; /* what `infer` and `create` get first */
  /* Types of the outputs, as far as they are known: fills in dtype and rank of `outputs`, and `dims` (room
   * for CLEAVE_MAX_RANK each); sizes that are not known are negative, and one that is copied from an input
   * stays the same size. `node` is a region of one node, its inputs as for executors; constants have their
   * data. May be asked again when more is known of the inputs, and asked at run time. Must be there. */
  cleave_status_t (*infer)(void *self, const cleave_region_view_t *node, cleave_tensor_view_t *outputs,
                           int64_t (*dims)[CLEAVE_MAX_RANK], cleave_message_t *message);
  /* Kernels in host memory, used if no backend takes the node; all three, or NULL. As in
   * cleave_backend_imperative_t, one executor per node of a session: every value that the node reads is an
   * input once, constants among them, and outputs are those that somebody uses. */
  cleave_status_t (*create)(void *self, const cleave_region_view_t *node,
                            const cleave_compile_options_t *options, void **out_executor,
                            cleave_message_t *message);
  void (*destroy)(void *executor);
  cleave_status_t (*execute)(void *executor, const cleave_run_args_t *args, cleave_message_t *message);
} cleave_custom_operator_t;

/* A region rule in C. A rule file uses it as region "x" { partitioner = "my_part" }; without one, `--rules
 * LIBRARY` runs all passes and partitioners of a library, and `--rules LIBRARY/my_part` one. Options are
 * those that the rule file declares, or, without one, all that were set. `graph` is the whole graph as a
 * region, and lives as long as the rule works on it; node numbers are those of graph->nodes, in topological
 * order. Either `supported` or the selector. The backend's `supports` has the last word on every node. */
typedef struct cleave_custom_partitioner {
  size_t size;
  const char *name;
  const char *backend; /* that runs the regions, if no rule file says it; NULL: the library's own */
  void *self;
  /* Before and after the rule works on a graph, for what is computed once for it: the functions below get
   * *out_state first. Both, or NULL: then they get `self`. */
  cleave_status_t (*begin)(void *self, const cleave_region_view_t *graph, const cleave_key_value_t *options,
                           uint32_t option_count, void **out_state, cleave_message_t *message);
  void (*end)(void *state);
  /* Group per node, -2 at first: -1 any group, from 0 the same group, -2 not supported. */
  cleave_status_t (*supported)(void *state, const cleave_region_view_t *graph,
                               const cleave_key_value_t *options, uint32_t option_count, int64_t *groups,
                               cleave_message_t *message);
  /* MXNet's SubgraphSelector, a fresh one per seed. select_input asks about the producer of an input of a
   * node that is in, select_output about a reader of an output; NULL: no. */
  cleave_status_t (*create_selector)(void *state, const cleave_region_view_t *graph,
                                     const cleave_key_value_t *options, uint32_t option_count,
                                     void **out_selector, cleave_message_t *message);
  void (*destroy_selector)(void *selector);
  bool (*select)(void *selector, uint32_t node);
  bool (*select_input)(void *selector, uint32_t node, uint32_t input);
  bool (*select_output)(void *selector, uint32_t node, uint32_t output);
  void (*filter)(void *selector, const uint32_t *candidates, uint32_t count, bool *keep); /* may be NULL */
  /* May refuse a region (CLEAVE_ERROR_UNSUPPORTED and why), drop nodes (keep[k] = false), and attach pairs
   * that the backend sees as attributes of the region: `attach` copies them; cleave itself reads `device`,
   * the number of the device that the region runs on. May be NULL. */
  cleave_status_t (*review)(void *state, const cleave_region_view_t *region,
                            const cleave_key_value_t *options, uint32_t option_count, bool *keep,
                            void (*attach)(void *context, const char *key, const char *value), void *context,
                            cleave_message_t *message);
} cleave_custom_partitioner_t;

/* A node that a pass adds. Texts may be NULL, but for `op`. */
typedef struct cleave_new_node {
  size_t size;
  const char *domain; /* "" or NULL for ai.onnx */
  const char *op;
  const char *name;
  const uint32_t *inputs; /* values; CLEAVE_INDEX_NONE: an optional input left out */
  uint32_t input_count;
  const cleave_attribute_view_t *attributes;
  uint32_t attribute_count;
  uint32_t output_count;
} cleave_new_node_t;

/* A graph that a pass changes. Values and nodes are numbers that stay valid while they live. A step that
 * cannot be done (a number that is not there, types that do not fit, a cycle, what the operator's schema does
 * not allow) changes nothing and says why; the pass may go on. Names may be NULL, or get a number if they
 * are taken; inputs need new names. The plan keeps a log of the steps, and replays without the library. */
typedef struct cleave_graph_editor {
  size_t size;
  void *graph; /* for the functions below */
  /* The graph as it is now; valid until the next change. values[k] is value `value_of(graph, k)` of the last
   * view, nodes[k] node `node_of(graph, k)`. NULL if the changes so far contradict each other: the pass
   * has failed then. A pass that looks at the view counts as one that read every constant. */
  const cleave_region_view_t *(*view)(void *graph);
  uint32_t (*value_of)(void *graph, uint32_t view_value);
  uint32_t (*node_of)(void *graph, uint32_t view_node);
  cleave_status_t (*add_input)(void *graph, const char *name, const cleave_tensor_view_t *type,
                               uint32_t *out_value, cleave_message_t *message);
  cleave_status_t (*add_constant)(void *graph, const char *name, const cleave_tensor_view_t *tensor,
                                  uint32_t *out_value, cleave_message_t *message);
  /* Sets out_values[k] for each of the node's outputs. */
  cleave_status_t (*add_node)(void *graph, const cleave_new_node_t *node, uint32_t *out_values,
                              cleave_message_t *message);
  cleave_status_t (*set_attribute)(void *graph, uint32_t node, const cleave_attribute_view_t *attribute,
                                   cleave_message_t *message);
  cleave_status_t (*set_input)(void *graph, uint32_t node, uint32_t port, uint32_t value,
                               cleave_message_t *message);
  cleave_status_t (*replace_uses)(void *graph, uint32_t from, uint32_t to, cleave_message_t *message);
  cleave_status_t (*remove_node)(void *graph, uint32_t node, cleave_message_t *message);
} cleave_graph_editor_t;

/* A pass of a rule file in C: pass "x" { library = "my_pass" }, or by the library's name like a partitioner.
 */
typedef struct cleave_custom_pass {
  size_t size;
  const char *name;
  void *self; /* what `run` gets first */
  cleave_status_t (*run)(void *self, const cleave_graph_editor_t *editor, const cleave_key_value_t *options,
                         uint32_t option_count, cleave_message_t *message);
} cleave_custom_pass_t;

/* Lists of pointers, so that what they point to can grow. All live as long as the library. */
typedef struct cleave_backend_extensions {
  size_t size;
  const cleave_custom_operator_t *const *operators;
  uint32_t operator_count;
  const cleave_custom_partitioner_t *const *partitioners;
  uint32_t partitioner_count;
  const cleave_custom_pass_t *const *passes;
  uint32_t pass_count;
  const char *const *rule_files; /* beside the library: "mirror.lua" is found as --rules mirror */
  uint32_t rule_file_count;
} cleave_backend_extensions_t;

/* ---- gradients of a region ----------------------------------------------------------------------------- */

/* 2.2: a region of a graph that gets gradients, before there are any of its nodes. What the library adds
 * reads values of the region and gradients of its outputs, and is then partitioned like the rest: rules and
 * `supports` give it to a backend. */
typedef struct cleave_backward_request {
  size_t size;
  const cleave_region_view_t *forward;
  const uint32_t *values;    /* per value of the region: its number for the editor */
  const uint32_t *gradients; /* per output of the region: the number of its gradient, which has its dtype and
                              * shape; CLEAVE_INDEX_NONE: the loss does not depend on it */
  const bool *wanted;        /* per value: an input or constant whose gradient is wanted */
  uint32_t *results; /* per value, CLEAVE_INDEX_NONE at first: numbers of gradients of the value's dtype and
                      * shape. All that are wanted are to be there; what others hold does not matter */
  const cleave_graph_editor_t *editor; /* has `add_constant` and `add_node`; the rest is NULL */
} cleave_backward_request_t;

/* ---- the backend itself ------------------------------------------------------------------------------- */

typedef struct cleave_backend {
  size_t size;
  uint32_t abi_major;
  uint32_t abi_minor;
  const char *name;        /* "onednn": what a ruleset's `backend` names */
  const char *version;     /* of the library behind it, for people */
  const char *description; /* one line */

  /* Called once for each state, before anything else: a program may start a library several times, with a
   * `host` and a state for each. May refuse, saying why. `host` lives until `destroy`. */
  cleave_status_t (*initialise)(const cleave_host_t *host, void **out_state, cleave_message_t *message);
  void (*destroy)(void *state);

  /* Can the backend run these nodes? The view holds one node (fusion_count 0), or exactly one fusion and
   * its nodes, with the shapes known so far (dims may be unknown). CLEAVE_OK: yes. CLEAVE_ERROR_UNSUPPORTED:
   * no, and `reason` says why. Thread-safe. */
  cleave_status_t (*supports)(void *state, const cleave_region_view_t *view, cleave_message_t *reason);

  /* Compiles a region. Constant data stays valid until `unload`; all else in the view only for this call.
   * Thread-safe. */
  cleave_status_t (*compile)(void *state, const cleave_region_view_t *region,
                             const cleave_compile_options_t *options, void **out_program,
                             cleave_message_t *message);
  void (*unload)(void *program);
  const cleave_program_info_t *(*info)(const void *program);

  /* Runs a program; one call at a time per program, though it may be put on one stream several times.
   * Allocates nothing unless it calls resize_output. */
  cleave_status_t (*run)(void *program, const cleave_run_args_t *args, cleave_message_t *message);

  /* Times of the last run, if compiled with `profile`; may be NULL. Owned by the program. */
  uint32_t (*profile)(const void *program, const cleave_step_time_t **out_steps);

  /* Nanoseconds that one run of the region takes, with everything that its boundary costs (conversions,
   * copies), estimated without compiling; may be NULL. The same view always gets the same answer, on every
   * machine and whatever else it is doing: plans depend on it. CLEAVE_ERROR_UNSUPPORTED: it cannot tell (a
   * shape is not known, an operator is not), and `message` says why. Thread-safe. */
  cleave_status_t (*cost)(void *state, const cleave_region_view_t *view, double *out_nanoseconds,
                          cleave_message_t *message);

  /* A second look at a whole region, with its attributes, before it is accepted: clears keep[k] of nodes to
   * leave out, or refuses all of it (CLEAVE_ERROR_UNSUPPORTED, and why). May be NULL. Thread-safe. */
  cleave_status_t (*review)(void *state, const cleave_region_view_t *region, bool *keep,
                            cleave_message_t *message);
  /* Settings and questions for which there is no function here. A setting whose
   * value is NULL only asks; without settings, all is asked that there is. CLEAVE_ERROR_UNSUPPORTED: a key is
   * not known, and `message` says which. The answers live until the next call; one call at a time. May be
   * NULL. Keys that begin with "hint." change nothing about programs. cleave itself sets hint.recompiles to
   * "1" if variants of programs will be compiled while these live (rule files are being edited), to "0"
   * when that is over. `cleave kernels` sets hint.kernels to "1", or to "cuda" if it is asked for CUDA text,
   * and after compiling asks kernels.text: the text of all generated kernels, without control characters. */
  cleave_status_t (*configure)(void *state, const cleave_key_value_t *settings, uint32_t setting_count,
                               const cleave_key_value_t **out_answers, uint32_t *out_answer_count,
                               cleave_message_t *message);
  bool adds; /* `run` and `execute` know CLEAVE_REQUEST_ADD */
  /* Constants that are sparse in the model come in their sparse form in all views; otherwise they come
   * dense. What a run is given is dense. */
  bool takes_sparse;

  /* Groups of functions, each NULL if the library has none of it. */
  const cleave_backend_devices_t *devices;
  const cleave_backend_imperative_t *imperative;
  const cleave_backend_blobs_t *blobs;
  const cleave_backend_extensions_t *extensions;

  /* Keys of the options that `compile` and the runs of programs know; `device` is not among them, cleave
   * reads it itself. Users who give another key are refused, with these. */
  const char *const *option_keys;
  uint32_t option_key_count;

  /* 2.2: asked for each region of a graph that gets gradients: adds the nodes that compute them. May be NULL.
   * CLEAVE_ERROR_UNSUPPORTED: cleave's own rules for the gradients of its nodes do it, and `reason` says why;
   * what was added is dropped. One call at a time for a graph. Libraries in processes of their own are not
   * asked. */
  cleave_status_t (*backward)(void *state, const cleave_backward_request_t *request,
                              cleave_message_t *reason);
} cleave_backend_t;

/* A struct may end here, or behind any later field: what is missing is NULL, 0 or false. */
#define CLEAVE_BACKEND_SIZE_REQUIRED offsetof(cleave_backend_t, cost)

/* A loadable library exports this symbol: returns its backend, or NULL with a message if it cannot serve
 * this host. The struct lives as long as the library. */
typedef const cleave_backend_t *(*cleave_backend_entry_t)(uint32_t abi_major, uint32_t abi_minor,
                                                          cleave_message_t *message);
#define CLEAVE_BACKEND_ENTRY_SYMBOL "cleave_backend_entry"
CLEAVE_EXPORT const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                                           cleave_message_t *message);

/* ---- small readers of views, so that no backend writes them again ---------------------------------- */

static inline bool cleave_view_text_equal(const char *a, const char *b) {
  while (*a != '\0' && *a == *b) {
    a++;
    b++;
  }
  return *a == *b;
}

/* The attribute, or NULL. */
static inline const cleave_attribute_view_t *cleave_view_attribute(const cleave_node_view_t *node,
                                                                   const char *name) {
  for (uint32_t k = 0; k < node->attribute_count; k++) {
    if (cleave_view_text_equal(node->attributes[k].name, name)) {
      return &node->attributes[k];
    }
  }
  return NULL;
}

static inline int64_t cleave_view_int(const cleave_node_view_t *node, const char *name, int64_t fallback) {
  const cleave_attribute_view_t *a = cleave_view_attribute(node, name);
  return a != NULL && a->kind == CLEAVE_ATTRIBUTE_INT ? a->i : fallback;
}

static inline double cleave_view_float(const cleave_node_view_t *node, const char *name, double fallback) {
  const cleave_attribute_view_t *a = cleave_view_attribute(node, name);
  return a != NULL && a->kind == CLEAVE_ATTRIBUTE_FLOAT ? a->f : fallback;
}

static inline const char *cleave_view_string(const cleave_node_view_t *node, const char *name,
                                             const char *fallback) {
  const cleave_attribute_view_t *a = cleave_view_attribute(node, name);
  return a != NULL && a->kind == CLEAVE_ATTRIBUTE_STRING ? a->s : fallback;
}

/* The list and its length, or NULL and 0. */
static inline const int64_t *cleave_view_ints(const cleave_node_view_t *node, const char *name,
                                              uint32_t *out_count) {
  const cleave_attribute_view_t *a = cleave_view_attribute(node, name);
  bool found = a != NULL && a->kind == CLEAVE_ATTRIBUTE_INTS;
  *out_count = found ? a->count : 0;
  return found ? a->ints : NULL;
}

/* Input `index` of the node, or NULL if it is left out. */
static inline const cleave_value_view_t *cleave_view_input(const cleave_region_view_t *region,
                                                           const cleave_node_view_t *node, uint32_t index) {
  if (index >= node->input_count || node->inputs[index] == CLEAVE_INDEX_NONE) {
    return NULL;
  }
  return &region->values[node->inputs[index]];
}

/* Output `index` of the node, or NULL if nothing uses it. */
static inline const cleave_value_view_t *cleave_view_output(const cleave_region_view_t *region,
                                                            const cleave_node_view_t *node, uint32_t index) {
  if (index >= node->output_count || node->outputs[index] == CLEAVE_INDEX_NONE) {
    return NULL;
  }
  return &region->values[node->outputs[index]];
}

/* Attribute of the region, or of one of its fusions, or NULL. */
static inline const cleave_attribute_view_t *cleave_view_region_attribute(const cleave_region_view_t *region,
                                                                          const char *name) {
  uint32_t count = region->size > CLEAVE_REGION_VIEW_SIZE_REQUIRED ? region->attribute_count : 0;
  for (uint32_t k = 0; k < count; k++) {
    if (cleave_view_text_equal(region->attributes[k].name, name)) {
      return &region->attributes[k];
    }
  }
  return NULL;
}

static inline const cleave_attribute_view_t *cleave_view_fusion_attribute(const cleave_region_view_t *region,
                                                                          uint32_t fusion, const char *name) {
  if (region->size <= CLEAVE_REGION_VIEW_SIZE_REQUIRED || region->fusion_attributes == NULL) {
    return NULL;
  }
  const cleave_attribute_list_t *list = &region->fusion_attributes[fusion];
  for (uint32_t k = 0; k < list->count; k++) {
    if (cleave_view_text_equal(list->items[k].name, name)) {
      return &list->items[k];
    }
  }
  return NULL;
}

/* Bytes of one element; 0 for an unknown dtype. */
static inline size_t cleave_dtype_size(cleave_dtype_t dtype) {
  switch (dtype) {
    case CLEAVE_DTYPE_U8:
    case CLEAVE_DTYPE_I8:
    case CLEAVE_DTYPE_BOOL: return 1;
    case CLEAVE_DTYPE_U16:
    case CLEAVE_DTYPE_I16:
    case CLEAVE_DTYPE_F16:
    case CLEAVE_DTYPE_BF16: return 2;
    case CLEAVE_DTYPE_F32:
    case CLEAVE_DTYPE_I32:
    case CLEAVE_DTYPE_U32: return 4;
    case CLEAVE_DTYPE_F64:
    case CLEAVE_DTYPE_I64:
    case CLEAVE_DTYPE_U64: return 8;
    case CLEAVE_DTYPE_STRING: return sizeof(const char *);
    case CLEAVE_DTYPE_UNKNOWN: break;
  }
  return 0;
}

/* Elements of a tensor whose dims are all known; -1 if one is not, INT64_MAX if they are more. A scalar
 * has 1. */
static inline int64_t cleave_view_element_count(const cleave_tensor_view_t *tensor) {
  int64_t count = 1;
  bool is_empty = false;
  bool is_known = tensor->rank >= 0;
  for (int32_t d = 0; d < tensor->rank; d++) {
    int64_t size = tensor->dims[d];
    is_known = is_known && size >= 0;
    is_empty = is_empty || size == 0;
    count = size > 0 && count > INT64_MAX / size ? INT64_MAX : count * (size > 0 ? size : 1);
  }
  return !is_known ? -1 : is_empty ? 0 : count;
}

#ifdef __cplusplus
}
#endif

#endif /* CLEAVE_BACKEND_H */
