/* SPDX-License-Identifier: Apache-2.0 */
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
 *    added at the end. A reader checks `size` before it reads a field younger than ABI version 1.0: these
 *    are marked with their version. Structs that views hold in arrays (values, nodes, fusions, attributes)
 *    never grow; what is new about them comes as an array beside them.
 *  - Pointers in views are borrowed: they live as long as the call, unless a field says otherwise.
 *  - No function throws, exits, prints or keeps a lock. A failure is a status, and one lower-case line in
 *    the message buffer.
 *  - Strings are UTF-8 and end in NUL. Operators, their inputs, outputs and attributes are those of the
 *    ONNX operator set (https://onnx.ai/onnx/operators), in the version given by `opset_version`.
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
#define CLEAVE_BACKEND_ABI_MAJOR 1
#define CLEAVE_BACKEND_ABI_MINOR 1

/* Tensors have at most this many dimensions; models with more are refused when they are read. */
#define CLEAVE_MAX_RANK 8

/* "No such thing" for every 32-bit index below. */
#define CLEAVE_INDEX_NONE UINT32_MAX

#if defined(__GNUC__)
#define CLEAVE_MUST_USE __attribute__((warn_unused_result))
#else
#define CLEAVE_MUST_USE
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

/* Where a backend writes the one line that says why. Never NULL when passed. */
typedef struct cleave_message {
  char text[256];
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

/* A dense tensor in row-major order without gaps. `data` is NULL where only the type is known.
 * Constant data from model files may be unaligned: read it with memcpy or unaligned loads, or copy it. */
typedef struct cleave_tensor_view {
  size_t size;
  cleave_dtype_t dtype;
  int32_t rank;        /* -1: unknown */
  const int64_t *dims; /* rank entries; a negative one is unknown until run time */
  const void *data;
  uint64_t version; /* changes whenever the content of a constant changes */
} cleave_tensor_view_t;

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
  const uint32_t *outputs; /* values of the region; CLEAVE_INDEX_NONE: an output nobody uses */
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

  /* 1.1: what the rule's `review` attached to the region, in order of names; part of `hash`. */
  uint32_t attribute_count;
  const cleave_attribute_view_t *attributes;
  const cleave_attribute_list_t *fusion_attributes; /* per fusion: what its rule says */
  const double *flops; /* per node: floating-point operations, a multiply-add is two; 0: not known */
} cleave_region_view_t;

#define CLEAVE_REGION_VIEW_SIZE_1_0 offsetof(cleave_region_view_t, attribute_count)

/* ---- what cleave offers a backend ----------------------------------------------------------------- */

/* Body of a parallel loop over [begin, end). */
typedef void (*cleave_parallel_fn_t)(void *context, int64_t begin, int64_t end);

typedef struct cleave_host {
  size_t size;
  uint32_t abi_major;
  uint32_t abi_minor;
  const char *version; /* of cleave: "0.1.0" */
  /* Runs `body` over [0, count) in chunks of at least `grain`, on at most `threads` threads, the caller's
   * among them; returns when all is done. May be called from a program's `run` only. */
  void (*parallel_for)(int32_t threads, int64_t count, int64_t grain, cleave_parallel_fn_t body,
                       void *context);
} cleave_host_t;

/* ---- compiling and running ------------------------------------------------------------------------ */

typedef struct cleave_compile_options {
  size_t size;
  int32_t threads; /* that `run` may use; at least 1 */
  bool profile;    /* keep per-step times for `profile` */
} cleave_compile_options_t;

/* Output `output` of the region may share the memory of input `input`: the program reads every element of
 * the input before it writes the one at the same place. Same byte size needed. */
typedef struct cleave_inplace_pair {
  uint32_t input;
  uint32_t output;
} cleave_inplace_pair_t;

/* What the planner must know of a program. Owned by the program. */
typedef struct cleave_program_info {
  size_t size;
  size_t workspace_bytes;  /* scratch memory for `run`, 64-byte aligned, shared with other programs */
  size_t persistent_bytes; /* memory that the program holds itself: packed weights, tables */
  uint32_t inplace_count;
  const cleave_inplace_pair_t *inplace;
} cleave_program_info_t;

typedef struct cleave_run_args {
  size_t size;
  const cleave_tensor_view_t
      *inputs; /* as region->inputs; all shapes known; 64-byte aligned unless borrowed from the user */
  cleave_tensor_view_t *outputs; /* as region->outputs; `data` is writable memory of the known shape */
  void *workspace;               /* workspace_bytes */
  /* For outputs whose shape was unknown at compile time (their `data` is NULL): asks for memory of this
   * shape, and sets outputs[output].data and dims. NULL where no output needs it. */
  cleave_status_t (*resize_output)(void *session, uint32_t output, int32_t rank, const int64_t *dims);
  void *session; /* for resize_output */
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

typedef struct cleave_backend {
  size_t size;
  uint32_t abi_major;
  uint32_t abi_minor;
  const char *name;        /* "onednn": what a ruleset's `backend` names */
  const char *version;     /* of the library behind it, for people */
  const char *description; /* one line */

  /* Called once before anything else. May refuse, saying why. `host` lives until `destroy`. */
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

  /* Runs a program; one call at a time per program. Allocates nothing unless it calls resize_output. */
  cleave_status_t (*run)(void *program, const cleave_run_args_t *args, cleave_message_t *message);

  /* Times of the last run, where compiled with `profile`; may be NULL. Owned by the program. */
  uint32_t (*profile)(const void *program, const cleave_step_time_t **out_steps);

  /* 1.1. Nanoseconds that one run of the region takes, with everything that its borders cost (conversions,
   * copies), estimated without compiling; may be NULL. The same view always gets the same answer, on every
   * machine and whatever else it is doing: plans depend on it. CLEAVE_ERROR_UNSUPPORTED: it cannot tell (a
   * shape is not known, an operator is not), and `message` says why. Thread-safe. */
  cleave_status_t (*cost)(void *state, const cleave_region_view_t *view, double *out_nanoseconds,
                          cleave_message_t *message);
} cleave_backend_t;

#define CLEAVE_BACKEND_SIZE_1_0 offsetof(cleave_backend_t, cost)

/* A loadable library exports this symbol: returns its backend, or NULL with a message if it cannot serve
 * this host. The struct lives as long as the library. */
typedef const cleave_backend_t *(*cleave_backend_entry_t)(uint32_t abi_major, uint32_t abi_minor,
                                                          cleave_message_t *message);
#define CLEAVE_BACKEND_ENTRY_SYMBOL "cleave_backend_entry"

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

static inline int64_t cleave_view_int(const cleave_node_view_t *node, const char *name, int64_t otherwise) {
  const cleave_attribute_view_t *a = cleave_view_attribute(node, name);
  return a != NULL && a->kind == CLEAVE_ATTRIBUTE_INT ? a->i : otherwise;
}

static inline double cleave_view_float(const cleave_node_view_t *node, const char *name, double otherwise) {
  const cleave_attribute_view_t *a = cleave_view_attribute(node, name);
  return a != NULL && a->kind == CLEAVE_ATTRIBUTE_FLOAT ? a->f : otherwise;
}

static inline const char *cleave_view_string(const cleave_node_view_t *node, const char *name,
                                             const char *otherwise) {
  const cleave_attribute_view_t *a = cleave_view_attribute(node, name);
  return a != NULL && a->kind == CLEAVE_ATTRIBUTE_STRING ? a->s : otherwise;
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

/* Output `index` of the node, or NULL if nobody uses it. */
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
  uint32_t count = region->size > CLEAVE_REGION_VIEW_SIZE_1_0 ? region->attribute_count : 0;
  for (uint32_t k = 0; k < count; k++) {
    if (cleave_view_text_equal(region->attributes[k].name, name)) {
      return &region->attributes[k];
    }
  }
  return NULL;
}

static inline const cleave_attribute_view_t *cleave_view_fusion_attribute(const cleave_region_view_t *region,
                                                                          uint32_t fusion, const char *name) {
  if (region->size <= CLEAVE_REGION_VIEW_SIZE_1_0 || region->fusion_attributes == NULL) {
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

/* Elements of a tensor whose dims are all known; -1 where one is not. A scalar has 1. */
static inline int64_t cleave_view_element_count(const cleave_tensor_view_t *tensor) {
  int64_t count = 1;
  if (tensor->rank < 0) {
    return -1;
  }
  for (int32_t d = 0; d < tensor->rank; d++) {
    if (tensor->dims[d] < 0) {
      return -1;
    }
    count *= tensor->dims[d];
  }
  return count;
}

#ifdef __cplusplus
}
#endif

#endif /* CLEAVE_BACKEND_H */
