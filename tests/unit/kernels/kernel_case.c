// SPDX-License-Identifier: Apache-2.0
// A naive interpreter of programs: each value is computed for all elements before the next one, index by
// index; and what runs of programs are compared with it by.
#include "kernel_case.h"

#include <math.h>

#define CPU_FUSED
#include "kernels/convert.h"
#include "kernels/execute/space.h"
#include "kernels/vector_math.h"
#include "system/threads.h"
#include "unit.h"

kernel_program_t *kernel_case_read(const char *text) {
  cleave_message_t message = {.text = ""};
  kernel_program_t *program = NULL;
  cleave_status_t status = kernel_program_read(text, strlen(text), &program, &message);
  ck_assert_msg(status == CLEAVE_OK, "%s", message.text);
  return program;
}

const cleave_host_t kernel_case_host = {.size = sizeof(cleave_host_t), .parallel_for = cleave_parallel_for};

void kernel_case_run(const kernel_program_t *program, int limit, int32_t threads,
                     const kernel_tensor_t *inputs, void *const *outputs) {
  cleave_message_t message = {.text = ""};
  kernel_plan_t *plan = NULL;
  ck_assert_int_eq(kernel_plan_create(program, kernel_loops_choose(limit), &plan, &message), CLEAVE_OK);
  kernel_call_t call = {.host = &kernel_case_host, .threads = threads, .inputs = inputs, .outputs = outputs};
  cleave_status_t status = kernel_space(plan, inputs, call.dims, &message);
  ck_assert_msg(status == CLEAVE_OK, "%s", message.text);
  call.scratch = aligned_alloc(64, (kernel_scratch_bytes(plan, call.dims, threads) + 63) / 64 * 64);
  kernel_run(plan, &call);
  free(call.scratch);
  kernel_plan_destroy(plan);
}

#define UNARY(T, U, EXPRESSION)          \
  {                                      \
    typedef U W;                         \
    const T x = *(const T *)operands[0]; \
    const T alpha = (T)alpha_;           \
    const T beta = (T)beta_;             \
    (void)sizeof(W);                     \
    (void)alpha;                         \
    (void)beta;                          \
    *(T *)out = (T)(EXPRESSION);         \
    return true;                         \
  }
#define BINARY(T, R, U, EXPRESSION)      \
  {                                      \
    typedef U W;                         \
    const T x = *(const T *)operands[0]; \
    const T y = *(const T *)operands[1]; \
    (void)sizeof(W);                     \
    *(R *)out = (R)(EXPRESSION);         \
    return true;                         \
  }

bool kernel_case_apply(kernel_op_t op, cleave_dtype_t dtype, const void *const *operands, double alpha_,
                       double beta_, void *out) {
#define ON(name, D, STATEMENT)                          \
  if (op == KERNEL_##name && dtype == CLEAVE_DTYPE_##D) \
  STATEMENT
#define UNARY_OF(D, T, U, name, E) ON(name, D, UNARY(T, U, E))
#define BINARY_OF(D, T, U, name, E) ON(name, D, BINARY(T, T, U, E))
#define COMPARE_OF(D, T, U, name, E) ON(name, D, BINARY(T, uint8_t, U, E))
#define ALL_SIGNED(M, name, E)     \
  M(I8, int8_t, uint32_t, name, E) \
  M(I16, int16_t, uint32_t, name, E) M(I32, int32_t, uint32_t, name, E) M(I64, int64_t, uint64_t, name, E)
#define ALL_UNSIGNED(M, name, E)    \
  M(U8, uint8_t, uint32_t, name, E) \
  M(U16, uint16_t, uint32_t, name, E) M(U32, uint32_t, uint32_t, name, E) M(U64, uint64_t, uint64_t, name, E)
#define KERNEL_UNARY(name, f32, f64, ...) \
  UNARY_OF(F32, float, float, name, f32) UNARY_OF(F64, double, double, name, f64)
#define KERNEL_UNARY_INTEGER(name, on_signed, on_unsigned) \
  ALL_SIGNED(UNARY_OF, name, on_signed) ALL_UNSIGNED(UNARY_OF, name, on_unsigned)
#define KERNEL_BITWISE_UNARY(name, e) ALL_SIGNED(UNARY_OF, name, e) ALL_UNSIGNED(UNARY_OF, name, e)
#define KERNEL_LOGIC_UNARY(name, e) UNARY_OF(BOOL, uint8_t, uint32_t, name, e)
#define KERNEL_BINARY(name, f32, f64, ...) \
  BINARY_OF(F32, float, float, name, f32) BINARY_OF(F64, double, double, name, f64)
#define KERNEL_BINARY_INTEGER(name, e) ALL_SIGNED(BINARY_OF, name, e) ALL_UNSIGNED(BINARY_OF, name, e)
#define KERNEL_BITWISE(name, e) ALL_SIGNED(BINARY_OF, name, e) ALL_UNSIGNED(BINARY_OF, name, e)
#define KERNEL_LOGIC(name, e) BINARY_OF(BOOL, uint8_t, uint32_t, name, e)
#define KERNEL_COMPARE(name, e)          \
  COMPARE_OF(F32, float, float, name, e) \
  COMPARE_OF(F64, double, double, name, e) ALL_SIGNED(COMPARE_OF, name, e) ALL_UNSIGNED(COMPARE_OF, name, e)
#include "kernels/operators.inc"
  return false;
}

typedef struct machine {
  const kernel_program_t *program;
  const kernel_tensor_t *inputs;
  int64_t dims[CLEAVE_MAX_RANK];
  int64_t count;
  int64_t length;                           /* of a row */
  unsigned char *values[KERNEL_MAX_VALUES]; /* 8 bytes for each element of the space, rows repeated */
} machine_t;

static const unsigned char *element_of(const machine_t *machine, const kernel_value_t *load, int64_t index,
                                       size_t size) {
  int64_t coordinates[CLEAVE_MAX_RANK] = {0};
  for (int32_t d = machine->program->rank - 1; d >= 0; d--) {
    coordinates[d] = index % machine->dims[d];
    index /= machine->dims[d];
  }
  uint32_t input = load->input;
  for (int64_t own = 0; load->parts > 0; input++) {
    own = machine->inputs[input].dims[machine->program->inputs[input].axes[load->along]];
    if (coordinates[load->along] < own) {
      break;
    }
    coordinates[load->along] -= own;
  }
  const kernel_input_t *self = &machine->program->inputs[input];
  const kernel_tensor_t *tensor = &machine->inputs[input];
  int64_t offset = 0;
  for (int32_t d = 0; d < machine->program->rank; d++) {
    int64_t at = coordinates[d];
    int32_t axis = self->axes[d];
    if (axis < 0 || tensor->dims[axis] == 1) {
      continue;
    }
    int64_t stride = 1;
    for (int32_t k = axis + 1; k < tensor->rank; k++) {
      stride *= tensor->dims[k];
    }
    offset += at * (tensor->strides != NULL ? tensor->strides[axis] : stride);
  }
  return (const unsigned char *)tensor->data + offset * (int64_t)size;
}

/* In double, or in 64 bits; the element in place of `out` is 8 bytes wide. */
static void reduce_row(kernel_op_t op, cleave_dtype_t dtype, const unsigned char *row, int64_t length,
                       void *out) {
  bool is_float = dtype == CLEAVE_DTYPE_F32 || dtype == CLEAVE_DTYPE_F64;
  bool is_argument = op == KERNEL_ArgMax || op == KERNEL_ArgMin;
  bool is_order = op == KERNEL_ReduceMax || op == KERNEL_ReduceMin || is_argument;
  double f = op == KERNEL_ReduceProd ? 1 : 0;
  uint64_t i = op == KERNEL_ReduceProd ? 1 : 0;
  int64_t best = 0;
  for (int64_t k = 0; k < length; k++) {
    double x = 0;
    int64_t n = 0;
    cpu_convert(dtype, row + 8 * k, CLEAVE_DTYPE_F64, &x, 1);
    cpu_convert(dtype, row + 8 * k, CLEAVE_DTYPE_I64, &n, 1);
    if (is_order) {
      double y = 0;
      cpu_convert(dtype, row + 8 * best, CLEAVE_DTYPE_F64, &y, 1);
      bool is_better = op == KERNEL_ReduceMax || op == KERNEL_ArgMax ? x > y : x < y;
      best = k == 0 || (is_better && y == y) || (x != x && y == y) ? k : best;
    } else if (op == KERNEL_ReduceProd) {
      f *= x;
      i *= (uint64_t)n;
    } else if (op == KERNEL_ReduceSum || op == KERNEL_ReduceMean) {
      f += x;
      i += (uint64_t)n;
    } else {
      f += x * x;
      i += (uint64_t)n * (uint64_t)n;
    }
  }
  f = op == KERNEL_ReduceMean || op == KERNEL_MeanSquare ? f / (double)length : f;
  int64_t sum = (int64_t)i;
  memset(out, 0, 8);
  if (is_argument) {
    memcpy(out, &best, sizeof best);
  } else if (is_order) {
    memcpy(out, row + 8 * best, 8);
  } else if (is_float) {
    cpu_convert(CLEAVE_DTYPE_F64, &f, dtype, out, 1);
  } else {
    cpu_convert(CLEAVE_DTYPE_I64, &sum, dtype, out, 1);
  }
}

static void compute_element(const machine_t *machine, uint32_t index, int64_t k, unsigned char *out) {
  const kernel_value_t *value = &machine->program->values[index];
  const void *operands[3] = {NULL, NULL, NULL};
  for (uint32_t o = 0; o < kernel_op_info(value->op)->operand_count; o++) {
    operands[o] = machine->values[value->operands[o]] + 8 * k;
  }
  cleave_dtype_t from = machine->program->values[value->operands[0]].dtype;
  uint64_t element = 0;
  if (value->op == KERNEL_LOAD) {
    cleave_dtype_t dtype = machine->program->inputs[value->input].dtype;
    cpu_convert(dtype, element_of(machine, value, k, cleave_dtype_size(dtype)), value->dtype, out, 1);
  } else if (value->op == KERNEL_CONSTANT) {
    memcpy(out, &value->bits, 8);
  } else if (value->op == KERNEL_WHERE) {
    memcpy(out, operands[*(const uint8_t *)operands[0] != 0 ? 1 : 2], 8);
  } else if (value->op == KERNEL_CAST) {
    cleave_dtype_t to = value->rounds != CLEAVE_DTYPE_UNKNOWN ? value->rounds : value->dtype;
    cpu_convert(from, operands[0], to, &element, 1);
    cpu_convert(to, &element, value->dtype, out, 1);
  } else {
    ck_assert(kernel_case_apply(value->op, from, operands, value->alpha, value->beta, out));
  }
}

static void compute_value(machine_t *machine, uint32_t index) {
  const kernel_value_t *value = &machine->program->values[index];
  unsigned char *out = calloc((size_t)machine->count + 1, 8);
  machine->values[index] = out;
  for (int64_t k = 0; k < machine->count; k++) {
    if (kernel_op_info(value->op)->kind != KERNEL_KIND_REDUCTION) {
      compute_element(machine, index, k, out + 8 * k);
    } else if (k % machine->length == 0) {
      const kernel_value_t *operand = &machine->program->values[value->operands[0]];
      reduce_row(value->op, operand->dtype, machine->values[value->operands[0]] + 8 * k, machine->length,
                 out + 8 * k);
    } else {
      memcpy(out + 8 * k, out + 8 * (k - k % machine->length), 8);
    }
  }
}

void kernel_case_interpret(const kernel_program_t *program, const kernel_tensor_t *inputs,
                           void *const *outputs) {
  machine_t *machine = calloc(1, sizeof *machine);
  machine->program = program;
  machine->inputs = inputs;
  machine->count = 1;
  machine->length = 1;
  cleave_message_t message;
  ck_assert_int_eq(kernel_program_space(program, inputs, machine->dims, &message), CLEAVE_OK);
  for (int32_t d = 0; d < program->rank; d++) {
    machine->count *= machine->dims[d];
    machine->length *= d >= program->rank - program->reduced ? machine->dims[d] : 1;
  }
  for (uint32_t v = 0; v < program->value_count; v++) {
    compute_value(machine, v);
  }
  for (uint32_t o = 0; o < program->output_count; o++) {
    const kernel_output_t *output = &program->outputs[o];
    const kernel_value_t *value = &program->values[output->value];
    size_t size = cleave_dtype_size(output->dtype);
    int64_t step = value->per_row ? machine->length : 1;
    for (int64_t k = 0; k < machine->count; k += step) {
      unsigned char *to = (unsigned char *)outputs[o] + (size_t)(k / step) * size;
      uint64_t result = 0;
      memcpy(&result, machine->values[output->value] + 8 * k, 8);
      if (output->adds) {
        uint64_t before = 0;
        cpu_convert(output->dtype, to, value->dtype, &before, 1);
        const void *operands[2] = {&before, &result};
        ck_assert(kernel_case_apply(KERNEL_Add, value->dtype, operands, 0, 0, &result));
      }
      cpu_convert(value->dtype, &result, output->dtype, to, 1);
    }
  }
  for (uint32_t v = 0; v < program->value_count; v++) {
    free(machine->values[v]);
  }
  free(machine);
}

/* ---- against the interpreter ---- */

typedef struct tensors {
  kernel_tensor_t inputs[KERNEL_CASE_INPUTS];
  int64_t dims[KERNEL_CASE_INPUTS][CLEAVE_MAX_RANK];
  int64_t strides[KERNEL_CASE_INPUTS][CLEAVE_MAX_RANK];
  size_t output_bytes;
} tensors_t;

/* Inputs for a program over a space of these sizes: numbers around zero; some axes are repeated by a size of
 * 1, some tensors are views with gaps. */
static void make_inputs(const kernel_program_t *program, const int64_t *dims, unsigned seed,
                        tensors_t *tensors) {
  int64_t count = 1;
  srand(seed);
  for (int32_t d = 0; d < program->rank; d++) {
    count *= dims[d];
  }
  tensors->output_bytes = (size_t)count * 8 + 8;
  for (uint32_t k = 0; k < program->input_count; k++) {
    const kernel_input_t *input = &program->inputs[k];
    kernel_tensor_t *tensor = &tensors->inputs[k];
    for (int32_t d = 0; d < program->rank; d++) {
      if (input->axes[d] >= 0) {
        tensors->dims[k][input->axes[d]] = k > 0 && rand() % 6 == 0 ? 1 : dims[d];
      }
    }
    int64_t gap = rand() % 3 == 0 ? 2 : 1;
    int64_t elements = gap;
    for (int32_t d = input->rank - 1; d >= 0; d--) {
      tensors->strides[k][d] = elements;
      elements *= tensors->dims[k][d];
    }
    size_t size = cleave_dtype_size(input->dtype);
    unsigned char *data = calloc((size_t)elements + 1, size);
    for (int64_t e = 0; e < elements; e++) {
      double value = (rand() % 4001 - 2000) / 500.0;
      if (input->dtype == CLEAVE_DTYPE_BOOL) {
        data[e] = (unsigned char)(rand() % 2);
      } else {
        cpu_convert(CLEAVE_DTYPE_F64, &value, input->dtype, data + (size_t)e * size, 1);
      }
    }
    *tensor = (kernel_tensor_t){.data = data,
                                .rank = input->rank,
                                .dims = tensors->dims[k],
                                .strides = gap > 1 ? tensors->strides[k] : NULL};
  }
}

static void free_inputs(const kernel_program_t *program, tensors_t *tensors) {
  for (uint32_t k = 0; k < program->input_count; k++) {
    free((void *)(uintptr_t)tensors->inputs[k].data);
  }
}

static void fresh_outputs(const kernel_program_t *program, const tensors_t *tensors, void **outputs) {
  for (uint32_t k = 0; k < program->output_count; k++) {
    outputs[k] = calloc(1, tensors->output_bytes);
    for (size_t e = 0; e * 8 < tensors->output_bytes && program->outputs[k].adds; e++) {
      float half = 0.5f;
      cpu_convert(CLEAVE_DTYPE_F32, &half, program->outputs[k].dtype,
                  (unsigned char *)outputs[k] + e * cleave_dtype_size(program->outputs[k].dtype), 1);
    }
  }
}

void kernel_case_check_close(const kernel_program_t *program, uint32_t output, const void *found,
                             const void *expected, size_t count, double tolerance) {
  cleave_dtype_t dtype = program->outputs[output].dtype;
  size_t size = cleave_dtype_size(dtype);
  for (size_t k = 0; k < count; k++) {
    double a = 0;
    double b = 0;
    cpu_convert(dtype, (const unsigned char *)found + k * size, CLEAVE_DTYPE_F64, &a, 1);
    cpu_convert(dtype, (const unsigned char *)expected + k * size, CLEAVE_DTYPE_F64, &b, 1);
    bool same = a == b || (a != a && b != b) || fabs(a - b) <= tolerance * (fabs(b) + 1);
    if (!same) {
      char text[4096];
      kernel_program_print(program, text, sizeof text);
      ck_abort_msg("output %u, element %zu: %.17g, expected %.17g\n%s", (unsigned)output, k, a, b, text);
    }
  }
}

/* Output 0 over each input that it may lie over: the bits stay those of `expected`. Returns how many there
 * are. */
static int check_inplace(const kernel_program_t *program, const tensors_t *tensors, void *const *expected) {
  cleave_message_t message = {.text = ""};
  kernel_plan_t *plan = NULL;
  int64_t dims[CLEAVE_MAX_RANK];
  int64_t count = 1;
  int found = 0;
  ck_assert_int_eq(kernel_plan_create(program, kernel_loops_choose(2), &plan, &message), CLEAVE_OK);
  ck_assert_int_eq(kernel_space(plan, tensors->inputs, dims, &message), CLEAVE_OK);
  uint32_t allowed = kernel_inplace(plan, dims, tensors->inputs);
  kernel_plan_destroy(plan);
  for (int32_t d = 0; d < program->rank; d++) {
    count *= dims[d];
  }
  for (uint32_t k = 0; k < program->input_count; k++) {
    kernel_tensor_t inputs[KERNEL_CASE_INPUTS];
    void *outputs[KERNEL_CASE_OUTPUTS];
    if ((allowed >> k & 1u) == 0) {
      continue;
    }
    found++;
    memcpy(inputs, tensors->inputs, sizeof inputs);
    fresh_outputs(program, tensors, outputs);
    memcpy(outputs[0], inputs[k].data, (size_t)count * cleave_dtype_size(program->inputs[k].dtype));
    inputs[k].data = outputs[0];
    kernel_case_run(program, 2, 2, inputs, outputs);
    for (uint32_t o = 0; o < program->output_count; o++) {
      size_t bytes =
          o == 0 ? (size_t)count * cleave_dtype_size(program->outputs[0].dtype) : tensors->output_bytes;
      ck_assert_mem_eq(outputs[o], expected[o], bytes);
      free(outputs[o]);
    }
  }
  return found;
}

int kernel_case_inplace_count;

void kernel_case_check(const kernel_program_t *program, const int64_t *dims, unsigned seed,
                       double tolerance) {
  tensors_t tensors = {0};
  void *expected[KERNEL_CASE_OUTPUTS];
  void *first[KERNEL_CASE_OUTPUTS];
  make_inputs(program, dims, seed, &tensors);
  fresh_outputs(program, &tensors, expected);
  kernel_case_interpret(program, tensors.inputs, expected);
  for (int limit = 0; limit <= 2; limit++) {
    for (int32_t threads = 1; threads <= 2; threads++) {
      void *outputs[KERNEL_CASE_OUTPUTS];
      fresh_outputs(program, &tensors, outputs);
      kernel_case_run(program, limit, threads, tensors.inputs, outputs);
      for (uint32_t k = 0; k < program->output_count; k++) {
        if (limit == 0 && threads == 1) {
          kernel_case_check_close(program, k, outputs[k], expected[k], tensors.output_bytes / 8, tolerance);
          first[k] = outputs[k];
        } else {
          ck_assert_mem_eq(outputs[k], first[k], tensors.output_bytes);
          free(outputs[k]);
        }
      }
    }
  }
  kernel_case_inplace_count += check_inplace(program, &tensors, first);
  for (uint32_t k = 0; k < program->output_count; k++) {
    free(expected[k]);
    free(first[k]);
  }
  free_inputs(program, &tensors);
}

void kernel_case_check_text(const char *text, const int64_t *dims, double tolerance) {
  kernel_program_t *program = kernel_case_read(text);
  kernel_case_check(program, dims, 1, tolerance);
  kernel_program_destroy(program);
}
