// SPDX-License-Identifier: Apache-2.0
// Building programs. Every function here checks what it adds, so that a program that exists is sound:
// operands come first, dtypes fit, reductions have rows.
#include "program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert.h"

#define TRY(call)                   \
  do {                              \
    cleave_status_t status_ = call; \
    if (status_ != CLEAVE_OK) {     \
      return status_;               \
    }                               \
  } while (0)

cleave_status_t kernel_fail(cleave_message_t *message, cleave_status_t status, const char *format, ...) {
  if (message != NULL) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message->text, sizeof message->text, format, arguments);
    va_end(arguments);
  }
  return status;
}

const char *kernel_dtype_name(cleave_dtype_t dtype) {
  switch (dtype) {
    case CLEAVE_DTYPE_F32: return "f32";
    case CLEAVE_DTYPE_F64: return "f64";
    case CLEAVE_DTYPE_F16: return "f16";
    case CLEAVE_DTYPE_BF16: return "bf16";
    case CLEAVE_DTYPE_I8: return "i8";
    case CLEAVE_DTYPE_I16: return "i16";
    case CLEAVE_DTYPE_I32: return "i32";
    case CLEAVE_DTYPE_I64: return "i64";
    case CLEAVE_DTYPE_U8: return "u8";
    case CLEAVE_DTYPE_U16: return "u16";
    case CLEAVE_DTYPE_U32: return "u32";
    case CLEAVE_DTYPE_U64: return "u64";
    case CLEAVE_DTYPE_BOOL: return "bool";
    case CLEAVE_DTYPE_STRING:
    case CLEAVE_DTYPE_UNKNOWN: break;
  }
  return "?";
}

static const kernel_op_info_t infos[KERNEL_OP_COUNT] = {
    [KERNEL_LOAD] = {.name = "load", .cost = 1},
    [KERNEL_CONSTANT] = {.name = "constant"},
    [KERNEL_CAST] = {.name = "cast", .operand_count = 1, .cost = 1},
    [KERNEL_WHERE] = {.name = "where", .operand_count = 3, .cost = 1},
#define KERNEL_UNARY(NAME, f32, f64, ulps, COST, ALPHA_NAME, ALPHA, BETA_NAME, BETA) \
  [KERNEL_##NAME] = {.name = #NAME,                                                  \
                     .kind = KERNEL_KIND_UNARY,                                      \
                     .operand_count = 1,                                             \
                     .dtypes = KERNEL_FLOATS,                                        \
                     .immediate_count = (ALPHA_NAME)[0] == '\0'  ? 0                 \
                                        : (BETA_NAME)[0] == '\0' ? 1                 \
                                                                 : 2,                \
                     .alpha_name = ALPHA_NAME,                                       \
                     .alpha = ALPHA,                                                 \
                     .beta_name = BETA_NAME,                                         \
                     .beta = BETA,                                                   \
                     .cost = COST},
#define ONE(NAME, KIND, COUNT, DTYPES, COST) TYPED(NAME, KIND, COUNT, DTYPES, COST, CLEAVE_DTYPE_UNKNOWN)
#define TYPED(NAME, KIND, COUNT, DTYPES, COST, RESULT) \
  [KERNEL_##NAME] = {.name = #NAME,                    \
                     .kind = KIND,                     \
                     .operand_count = COUNT,           \
                     .dtypes = DTYPES,                 \
                     .result = RESULT,                 \
                     .cost = COST},
#define KERNEL_BITWISE_UNARY(NAME, ...) ONE(NAME, KERNEL_KIND_UNARY, 1, KERNEL_INTEGERS, 1)
#define KERNEL_LOGIC_UNARY(NAME, ...) ONE(NAME, KERNEL_KIND_UNARY, 1, KERNEL_BOOLS, 1)
#define KERNEL_BINARY(NAME, f32, f64, ulps, COST) ONE(NAME, KERNEL_KIND_BINARY, 2, KERNEL_FLOATS, COST)
#define KERNEL_COMPARE(NAME, ...) \
  TYPED(NAME, KERNEL_KIND_COMPARE, 2, KERNEL_FLOATS | KERNEL_INTEGERS, 1, CLEAVE_DTYPE_BOOL)
#define KERNEL_LOGIC(NAME, ...) ONE(NAME, KERNEL_KIND_BINARY, 2, KERNEL_BOOLS, 1)
#define KERNEL_BITWISE(NAME, ...) ONE(NAME, KERNEL_KIND_BINARY, 2, KERNEL_INTEGERS, 1)
#define KERNEL_REDUCTION(NAME, ...) ONE(NAME, KERNEL_KIND_REDUCTION, 1, KERNEL_FLOATS | KERNEL_INTEGERS, 2)
#define KERNEL_REDUCTION_FLOAT(NAME, ...) ONE(NAME, KERNEL_KIND_REDUCTION, 1, KERNEL_FLOATS, 2)
#define KERNEL_ARGUMENT(NAME, ...) \
  TYPED(NAME, KERNEL_KIND_REDUCTION, 1, KERNEL_FLOATS | KERNEL_INTEGERS, 3, CLEAVE_DTYPE_I64)
#include "operators.inc"
};

/* Operators of floats that integers have as well. */
static bool has_integers(kernel_op_t op) {
  switch (op) {
#define KERNEL_UNARY_INTEGER(NAME, ...) case KERNEL_##NAME:
#define KERNEL_BINARY_INTEGER(NAME, ...) case KERNEL_##NAME:
#include "operators.inc"
    return true;
    default: return (infos[op].dtypes & KERNEL_INTEGERS) != 0;
  }
}

const kernel_op_info_t *kernel_op_info(kernel_op_t op) {
  return &infos[op];
}

kernel_op_t kernel_op_find(const char *name) {
  for (int k = 0; k < KERNEL_OP_COUNT; k++) {
    if (strcmp(infos[k].name, name) == 0) {
      return (kernel_op_t)k;
    }
  }
  return KERNEL_OP_COUNT;
}

kernel_op_t kernel_op_fast(kernel_op_t op) {
  static const kernel_op_t fast[KERNEL_OP_COUNT] = {
#define KERNEL_FAST(NAME, FAST) [KERNEL_##NAME] = KERNEL_##FAST,
#include "operators.inc"
  };
  return fast[op] != KERNEL_LOAD ? fast[op] : op;
}

cleave_status_t kernel_program_create(int32_t rank, int32_t reduced, kernel_program_t **out_program,
                                      cleave_message_t *message) {
  *out_program = NULL;
  if (rank < 0 || rank > CLEAVE_MAX_RANK || reduced < 0 || reduced > rank) {
    return kernel_fail(
        message, CLEAVE_ERROR_INVALID_ARGUMENT,
        "a space of rank %d of which %d axes are reduced; expected at most %d, and no more than those",
        (int)rank, (int)reduced, CLEAVE_MAX_RANK);
  }
  kernel_program_t *program = calloc(1, sizeof *program);
  if (program == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for a program");
  }
  program->rank = rank;
  program->reduced = reduced;
  *out_program = program;
  return CLEAVE_OK;
}

void kernel_program_destroy(kernel_program_t *program) {
  free(program);
}

static cleave_status_t check_tensor_dtype(cleave_dtype_t dtype, cleave_message_t *message) {
  if (!cpu_dtype_is_plain(dtype)) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "dtype %d is neither a number nor bool",
                       (int)dtype);
  }
  return CLEAVE_OK;
}

cleave_status_t kernel_program_input(kernel_program_t *program, cleave_dtype_t dtype, const int8_t *axes,
                                     uint32_t *out_input, cleave_message_t *message) {
  TRY(check_tensor_dtype(dtype, message));
  if (program->input_count == KERNEL_MAX_TENSORS) {
    return kernel_fail(message, CLEAVE_ERROR_LIMIT, "more than %d inputs", KERNEL_MAX_TENSORS);
  }
  kernel_input_t input = {.dtype = dtype, .along = -1};
  uint32_t seen = 0;
  for (int32_t d = 0; d < program->rank; d++) {
    input.axes[d] = axes[d];
    if (axes[d] == -1) {
      continue;
    }
    if (axes[d] < 0 || axes[d] >= CLEAVE_MAX_RANK || (seen >> axes[d] & 1u) != 0) {
      return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT,
                         "axis %d of an input occurs twice, or does not exist", (int)axes[d]);
    }
    seen |= 1u << axes[d];
    input.rank++;
  }
  if (seen != (1u << input.rank) - 1u) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT,
                       "the axes of an input: expected all of 0 to %d", (int)input.rank - 1);
  }
  *out_input = program->input_count;
  program->inputs[program->input_count++] = input;
  return CLEAVE_OK;
}

static bool same_value(const kernel_value_t *a, const kernel_value_t *b) {
  return a->op == b->op && a->dtype == b->dtype &&
         memcmp(a->operands, b->operands, sizeof a->operands) == 0 &&
         memcmp(&a->alpha, &b->alpha, sizeof a->alpha) == 0 &&
         memcmp(&a->beta, &b->beta, sizeof a->beta) == 0 && a->bits == b->bits && a->input == b->input &&
         a->parts == b->parts && a->along == b->along && a->rounds == b->rounds;
}

/* Finds the value, or adds it. */
static cleave_status_t add_value(kernel_program_t *program, const kernel_value_t *value, uint32_t *out_value,
                                 cleave_message_t *message) {
  for (uint32_t k = 0; k < program->value_count; k++) {
    if (same_value(&program->values[k], value)) {
      *out_value = k;
      return CLEAVE_OK;
    }
  }
  if (program->value_count == KERNEL_MAX_VALUES) {
    return kernel_fail(message, CLEAVE_ERROR_LIMIT, "more than %d values", KERNEL_MAX_VALUES);
  }
  *out_value = program->value_count;
  program->values[program->value_count++] = *value;
  return CLEAVE_OK;
}

static cleave_status_t check_value(const kernel_program_t *program, uint32_t value,
                                   cleave_message_t *message) {
  return value < program->value_count ? CLEAVE_OK
                                      : kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT,
                                                    "value %u does not exist", (unsigned)value);
}

cleave_status_t kernel_program_load(kernel_program_t *program, uint32_t input, uint32_t *out_value,
                                    cleave_message_t *message) {
  if (input >= program->input_count) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "input %u does not exist", (unsigned)input);
  }
  if (program->inputs[input].along >= 0) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "input %u is a part of another load",
                       (unsigned)input);
  }
  const kernel_value_t value = {
      .op = KERNEL_LOAD, .dtype = kernel_compute_dtype(program->inputs[input].dtype), .input = input};
  return add_value(program, &value, out_value, message);
}

const kernel_value_t *kernel_program_join_of(const kernel_program_t *program, uint32_t input) {
  for (uint32_t v = 0; v < program->value_count; v++) {
    const kernel_value_t *value = &program->values[v];
    if (value->op == KERNEL_LOAD && input >= value->input && input - value->input < value->parts) {
      return value;
    }
  }
  return NULL;
}

static bool is_loaded(const kernel_program_t *program, uint32_t input) {
  for (uint32_t v = 0; v < program->value_count; v++) {
    if (program->values[v].op == KERNEL_LOAD && program->values[v].input == input) {
      return true;
    }
  }
  return program->inputs[input].along >= 0;
}

cleave_status_t kernel_program_join(kernel_program_t *program, uint32_t first, uint32_t count, int32_t along,
                                    uint32_t *out_value, cleave_message_t *message) {
  if (count < 2 || count > program->input_count || first > program->input_count - count || along < 0 ||
      along >= program->rank) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT,
                       "%u input%s from %u on, along axis %d: no load of several", (unsigned)count,
                       KERNEL_PLURAL(count), (unsigned)first, (int)along);
  }
  for (uint32_t k = first; k < first + count; k++) {
    const kernel_input_t *input = &program->inputs[k];
    if (input->dtype != program->inputs[first].dtype) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "input %u is %s, expected %s as input %u", (unsigned)k,
                         kernel_dtype_name(input->dtype), kernel_dtype_name(program->inputs[first].dtype),
                         (unsigned)first);
    }
    if (input->axes[along] < 0) {
      return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "input %u is repeated along axis %d",
                         (unsigned)k, (int)along);
    }
    if (is_loaded(program, k)) {
      return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "input %u is a part of another load",
                         (unsigned)k);
    }
  }
  const kernel_value_t value = {.op = KERNEL_LOAD,
                                .dtype = kernel_compute_dtype(program->inputs[first].dtype),
                                .input = first,
                                .parts = count,
                                .along = along};
  TRY(add_value(program, &value, out_value, message));
  for (uint32_t k = first; k < first + count; k++) {
    program->inputs[k].along = (int8_t)along;
  }
  return CLEAVE_OK;
}

cleave_status_t kernel_program_constant(kernel_program_t *program, cleave_dtype_t dtype, const void *element,
                                        uint32_t *out_value, cleave_message_t *message) {
  TRY(check_tensor_dtype(dtype, message));
  kernel_value_t value = {.op = KERNEL_CONSTANT, .dtype = kernel_compute_dtype(dtype)};
  if (dtype == CLEAVE_DTYPE_BOOL) {
    *(uint8_t *)&value.bits = *(const uint8_t *)element != 0;
  } else {
    cpu_convert(dtype, element, value.dtype, &value.bits, 1);
  }
  return add_value(program, &value, out_value, message);
}

cleave_status_t kernel_program_cast(kernel_program_t *program, cleave_dtype_t dtype, uint32_t value,
                                    uint32_t *out_value, cleave_message_t *message) {
  TRY(check_tensor_dtype(dtype, message));
  TRY(check_value(program, value, message));
  const kernel_value_t *from = &program->values[value];
  if (from->dtype == dtype) {
    *out_value = value;
    return CLEAVE_OK;
  }
  const kernel_value_t cast = {.op = KERNEL_CAST,
                               .dtype = kernel_compute_dtype(dtype),
                               .per_row = from->per_row,
                               .operands = {value},
                               .rounds = cpu_dtype_is_short_float(dtype) ? dtype : CLEAVE_DTYPE_UNKNOWN};
  return add_value(program, &cast, out_value, message);
}

/* Whether the operator takes this dtype. */
static bool takes(kernel_op_t op, cleave_dtype_t dtype) {
  uint32_t dtypes = infos[op].dtypes;
  return cpu_dtype_is_float(dtype)     ? (dtypes & KERNEL_FLOATS) != 0
         : cpu_dtype_is_integer(dtype) ? has_integers(op)
                                       : (dtypes & KERNEL_BOOLS) != 0;
}

cleave_status_t kernel_program_apply(kernel_program_t *program, kernel_op_t op, const uint32_t *operands,
                                     double alpha, double beta, uint32_t *out_value,
                                     cleave_message_t *message) {
  if (op == KERNEL_LOAD || op == KERNEL_CONSTANT || op == KERNEL_CAST || (unsigned)op >= KERNEL_OP_COUNT) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "operator %d is not applied to values",
                       (int)op);
  }
  const kernel_op_info_t *info = &infos[op];
  kernel_value_t value = {.op = op,
                          .alpha = info->immediate_count > 0 ? alpha : 0.0,
                          .beta = info->immediate_count > 1 ? beta : 0.0};
  bool is_per_row = false;
  bool is_per_element = false;
  uint32_t first = op == KERNEL_WHERE ? 1 : 0; /* of the operands whose dtypes are equal */
  for (uint32_t k = 0; k < info->operand_count; k++) {
    TRY(check_value(program, operands[k], message));
    const kernel_value_t *operand = &program->values[operands[k]];
    cleave_dtype_t wanted = k < first ? CLEAVE_DTYPE_BOOL : program->values[operands[first]].dtype;
    if (k > first || k < first) {
      if (operand->dtype != wanted) {
        return kernel_fail(message, CLEAVE_ERROR_SHAPE, "%s: operand %u is %s, expected %s", info->name,
                           (unsigned)k, kernel_dtype_name(operand->dtype), kernel_dtype_name(wanted));
      }
    } else if (op != KERNEL_WHERE && !takes(op, operand->dtype)) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "%s: dtype %s is not supported", info->name,
                         kernel_dtype_name(operand->dtype));
    }
    value.operands[k] = operands[k];
    is_per_row = is_per_row || operand->per_row;
    is_per_element = is_per_element || (!operand->per_row && operand->op != KERNEL_CONSTANT);
  }
  value.dtype = info->result != CLEAVE_DTYPE_UNKNOWN ? info->result : program->values[operands[first]].dtype;
  value.per_row = is_per_row && !is_per_element;
  if (info->kind == KERNEL_KIND_REDUCTION) {
    if (program->reduced == 0) {
      return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "%s: the space has no reduced axes",
                         info->name);
    }
    if (value.per_row) {
      return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "%s: the operand is one per row already",
                         info->name);
    }
    value.per_row = true;
  }
  return add_value(program, &value, out_value, message);
}

cleave_status_t kernel_program_output(kernel_program_t *program, cleave_dtype_t dtype, uint32_t value,
                                      bool adds, cleave_message_t *message) {
  TRY(check_tensor_dtype(dtype, message));
  TRY(check_value(program, value, message));
  cleave_dtype_t found = program->values[value].dtype;
  if (found != kernel_compute_dtype(dtype)) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "an output of %s cannot hold a value of %s",
                       kernel_dtype_name(dtype), kernel_dtype_name(found));
  }
  if (adds && dtype == CLEAVE_DTYPE_BOOL) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "an output of bools cannot be added to");
  }
  if (program->output_count == KERNEL_MAX_TENSORS) {
    return kernel_fail(message, CLEAVE_ERROR_LIMIT, "more than %d outputs", KERNEL_MAX_TENSORS);
  }
  program->outputs[program->output_count++] = (kernel_output_t){.dtype = dtype, .value = value, .adds = adds};
  return CLEAVE_OK;
}

cleave_status_t kernel_program_relay(kernel_program_t *program, int32_t rank, const int32_t *axes,
                                     cleave_message_t *message) {
  uint32_t seen = 0;
  for (int32_t k = 0; k < rank && rank <= CLEAVE_MAX_RANK; k++) {
    seen |= axes[k] >= 0 && axes[k] < program->rank ? 1u << axes[k] : 1u << CLEAVE_MAX_RANK;
  }
  if (program->reduced > 0 || rank > CLEAVE_MAX_RANK || seen != (1u << program->rank) - 1u) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT,
                       "a space of rank %d with %d reduced axes does not become one of rank %d",
                       (int)program->rank, (int)program->reduced, (int)rank);
  }
  for (uint32_t i = 0; i < program->input_count; i++) {
    if (program->inputs[i].along >= 0) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                         "input %u is a part of a load, which stays in its space", (unsigned)i);
    }
  }
  for (uint32_t i = 0; i < program->input_count; i++) {
    kernel_input_t *input = &program->inputs[i];
    const kernel_input_t old = *input;
    input->rank = 0;
    for (int32_t k = 0; k < rank; k++) {
      input->axes[k] = (int8_t)(old.axes[axes[k]] < 0 ? -1 : input->rank++);
    }
  }
  program->rank = rank;
  return CLEAVE_OK;
}
