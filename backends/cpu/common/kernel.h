// SPDX-License-Identifier: Apache-2.0
/*
 * A kernel of the reference backend. Every file `kernels_<family>.c` defines one table
 * `cpu_kernels_<family>`, ended by an entry without op; the list of families is generated from the files.
 *
 * Kernels read shapes when they run (they may be unknown before), attributes only when they are prepared.
 */
#ifndef CLEAVE_CPU_KERNEL_H
#define CLEAVE_CPU_KERNEL_H

#include "cleave/backend.h"
#include "kernels/program.h"

/* Returns the status of `expression` from the calling function unless it is CLEAVE_OK. */
#define CPU_TRY(expression)                 \
  do {                                      \
    cleave_status_t status_ = (expression); \
    if (status_ != CLEAVE_OK) {             \
      return status_;                       \
    }                                       \
  } while (0)

/* A dense row-major tensor during a call. `count` is the number of elements. `data` of a constant may be
 * unaligned only if the backend could not avoid it: it copies such constants when it compiles. */
typedef struct cpu_tensor {
  cleave_dtype_t dtype;
  int32_t rank;
  int64_t dims[CLEAVE_MAX_RANK];
  int64_t count;
  void *data;
} cpu_tensor_t;

typedef struct cpu_call {
  const void *state; /* what `prepare` filled in; state_size bytes */
  const cleave_host_t *host;
  int32_t threads;
  uint32_t input_count;
  uint32_t output_count;
  const cpu_tensor_t *const *inputs; /* an entry is NULL if the input is left out */
  cpu_tensor_t *const *outputs;      /* an entry is NULL if nothing uses the output */
  void *scratch;                     /* as many bytes as `scratch` asked for, 64-byte aligned */
  /* Gives an output whose shape only the kernel can tell (NonZero) its memory: call it before writing to
   * an output whose `data` is NULL. Sets dims, count and data. */
  cleave_status_t (*resize)(const struct cpu_call *call, uint32_t output, int32_t rank, const int64_t *dims);
  void *owner;
} cpu_call_t;

typedef struct cpu_prepare {
  const cleave_region_view_t *region; /* shapes may be unknown, dtypes are known */
  const cleave_node_view_t *node;
  uint32_t variant; /* of the kernel */
  /* Memory that lives as long as the program, zeroed; NULL when there is none left. */
  void *(*allocate)(struct cpu_prepare *prepare, size_t bytes);
  void *owner;
} cpu_prepare_t;

/* Memory that lives as long as the program, zeroed, 64-byte aligned; NULL when there is none left. */
typedef struct cpu_allocator {
  void *(*allocate)(void *owner, size_t bytes);
  void *owner;
} cpu_allocator_t;

typedef struct cpu_kernel {
  const char *op; /* ONNX operator */
  size_t state_size;
  /* Reads attributes into `state` (zeroed before), refuses dtypes or modes it does not know with a reason.
   * Also decides `supports`: it must not depend on shapes or constant data being there. May be NULL. */
  cleave_status_t (*prepare)(cpu_prepare_t *prepare, void *state, cleave_message_t *message);
  /* Called once after `prepare`, when the program is compiled: brings constants into the form that `run`
   * wants, and notes it in `state`. Constant inputs have data, the others NULL. May be
   * NULL. */
  cleave_status_t (*pack)(const cpu_call_t *call, void *state, const cpu_allocator_t *allocator,
                          cleave_message_t *message);
  /* Bytes of scratch memory for inputs and outputs of these shapes. May be NULL. */
  size_t (*scratch)(const cpu_call_t *call);
  cleave_status_t (*run)(const cpu_call_t *call, cleave_message_t *message);
  /* Does a run with inputs and outputs of these shapes multiply matrices (gemm.h)? OpenBLAS is loaded when
   * the program is compiled, then, and no run waits for it; so too while shapes are unknown. NULL: it never
   * does. */
  bool (*multiplies)(const cpu_call_t *call);
  /* In place of `scratch` and `run`: those for float32 and float64, by the dtype of input `float_input`.
   * float16 and bfloat16 run as float32 (cpu_nn_run_float). A scratch function may be NULL. */
  size_t (*scratch_f32)(const cpu_call_t *call);
  size_t (*scratch_f64)(const cpu_call_t *call);
  cleave_status_t (*run_f32)(const cpu_call_t *call, cleave_message_t *message);
  cleave_status_t (*run_f64)(const cpu_call_t *call, cleave_message_t *message);
  uint32_t float_input;
  /* For `prepare`: which one this is of several operators with the same functions. */
  uint32_t variant;
  /* Inputs that output 0 may overwrite, as bits: input 0 is bit 0. Only if the elements correspond. */
  uint32_t inplace;
  /* Inputs that may lie at any address, as bits: constants of others are aligned to their elements. */
  uint32_t unaligned;
  /* The first so many inputs must be there: checked before `prepare`, so that kernels may rely on it. */
  uint32_t required_inputs;
  const char *domain; /* NULL: ai.onnx */
} cpu_kernel_t;

/* A row of a table of kernels: its operator, how many inputs it needs, and other members. */
#define CPU_KERNEL(name, inputs, ...) \
  { .op = (name), .required_inputs = (inputs), __VA_ARGS__ }

/* Members of a kernel from functions that end in _f32 and _f64. */
#define CPU_FLOAT_SCRATCH(name) .scratch_f32 = name##_f32, .scratch_f64 = name##_f64
#define CPU_FLOAT_RUN(name) .run_f32 = name##_f32, .run_f64 = name##_f64

/* The scratch memory of a kernel, and its run, by the members that it has. */
size_t cpu_kernel_scratch(const cpu_kernel_t *kernel, const cpu_call_t *call);
CLEAVE_MUST_USE cleave_status_t cpu_kernel_run(const cpu_kernel_t *kernel, const cpu_call_t *call,
                                               cleave_message_t *message);

/* Refuses the dtypes of input 0 and output 0. */
CLEAVE_MUST_USE cleave_status_t cpu_fail_types(const cpu_prepare_t *prepare, cleave_message_t *message);

/* Input `index` of the call, or NULL if it is left out. */
static inline const cpu_tensor_t *cpu_input(const cpu_call_t *call, uint32_t index) {
  return index < call->input_count ? call->inputs[index] : NULL;
}

/* Output `index` of the call, or NULL if nothing uses it. */
static inline cpu_tensor_t *cpu_output(const cpu_call_t *call, uint32_t index) {
  return index < call->output_count ? call->outputs[index] : NULL;
}

/* States the shape that a kernel computed for an output: asks for memory if the output has none yet,
 * and refuses if the caller gave it another shape. Kernels call it before they write. */
CLEAVE_MUST_USE cleave_status_t cpu_output_shape(const cpu_call_t *call, uint32_t output, int32_t rank,
                                                 const int64_t *dims, cleave_message_t *message);

/* Do they have the same rank and dims? */
bool cpu_same_shape(const cpu_tensor_t *a, const cpu_tensor_t *b);

/* "float32", as messages name a dtype. */
const char *cpu_dtype_name(cleave_dtype_t dtype);

/* Makes a negative axis positive; false if it is outside [-rank, rank). */
static inline bool cpu_axis(int64_t axis, int32_t rank, int32_t *out_axis) {
  if (axis < -(int64_t)rank || axis >= (int64_t)rank) {
    return false;
  }
  *out_axis = (int32_t)(axis < 0 ? axis + rank : axis);
  return true;
}

/* Resolves an axis in the same way; fails if it is out of range. */
CLEAVE_MUST_USE cleave_status_t cpu_find_axis(int64_t axis, int32_t rank, int32_t *out_axis,
                                              cleave_message_t *message);

/* Copies the values of an INTS attribute into program memory; *out_count 0 if it is absent. */
CLEAVE_MUST_USE cleave_status_t cpu_prepare_ints(cpu_prepare_t *prepare, const char *name,
                                                 const int64_t **out_values, uint32_t *out_count);

/* Dtype of an input or output of the node being prepared; UNKNOWN if it is left out. */
cleave_dtype_t cpu_input_dtype(const cpu_prepare_t *prepare, uint32_t index);
cleave_dtype_t cpu_output_dtype(const cpu_prepare_t *prepare, uint32_t index);

/* Element `index` of an integer or float tensor of any dtype, as int64 or double. */
int64_t cpu_read_int(const cpu_tensor_t *tensor, int64_t index);
double cpu_read_float(const cpu_tensor_t *tensor, int64_t index);
void cpu_write_float(cpu_tensor_t *tensor, int64_t index, double value);

/* Reads an element of a tensor of 8-bit integers. */
static inline int32_t cpu_read_byte(const cpu_tensor_t *tensor, int64_t index) {
  return tensor->dtype == CLEAVE_DTYPE_I8 ? ((const int8_t *)tensor->data)[index]
                                          : ((const uint8_t *)tensor->data)[index];
}

/* Parallel loop over [0, count) through the host. */
void cpu_parallel(const cpu_call_t *call, int64_t count, int64_t grain, cleave_parallel_fn_t body,
                  void *context);

#endif /* CLEAVE_CPU_KERNEL_H */
