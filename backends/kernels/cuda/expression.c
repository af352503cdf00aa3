// SPDX-License-Identifier: Apache-2.0
// Expressions of operators.inc as text: names of operands, types and attributes take the place of its
// parameters, and functions lose the prefix that they have on the CPU.
#include "expression.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/convert.h"

typedef struct expressions {
  const char *f32;
  const char *f64;
  const char *on_signed;
  const char *on_unsigned;
  const char *on_bool;
  bool is_wide; /* a reduction: its accumulator */
  const char *initial;
  const char *step;
  const char *join;
  const char *result;
  kernel_op_t best; /* of an argument: the reduction that gives its element */
} expressions_t;

#define WIDE true
#define BLOCKS true
#define SAME false
static const expressions_t all[KERNEL_OP_COUNT] = {
#define KERNEL_UNARY(name, F32, F64, ...) [KERNEL_##name].f32 = #F32, [KERNEL_##name].f64 = #F64,
#define KERNEL_UNARY_INTEGER(name, SIGNED, UNSIGNED) \
  [KERNEL_##name].on_signed = #SIGNED, [KERNEL_##name].on_unsigned = #UNSIGNED,
#define KERNEL_BINARY(name, F32, F64, ...) [KERNEL_##name].f32 = #F32, [KERNEL_##name].f64 = #F64,
#define KERNEL_BINARY_INTEGER(name, EXPRESSION) \
  [KERNEL_##name].on_signed = #EXPRESSION, [KERNEL_##name].on_unsigned = #EXPRESSION,
#define KERNEL_BITWISE(name, EXPRESSION) KERNEL_BINARY_INTEGER(name, EXPRESSION)
#define KERNEL_BITWISE_UNARY(name, EXPRESSION) KERNEL_BINARY_INTEGER(name, EXPRESSION)
#define KERNEL_COMPARE(name, EXPRESSION)                                \
  [KERNEL_##name].f32 = #EXPRESSION, [KERNEL_##name].f64 = #EXPRESSION, \
  [KERNEL_##name].on_signed = #EXPRESSION, [KERNEL_##name].on_unsigned = #EXPRESSION,
#define KERNEL_LOGIC(name, EXPRESSION) [KERNEL_##name].on_bool = #EXPRESSION,
#define KERNEL_LOGIC_UNARY(name, EXPRESSION) [KERNEL_##name].on_bool = #EXPRESSION,
#define KERNEL_REDUCTION(name, ACCUMULATOR, INITIAL, STEP, JOIN, RESULT) \
  [KERNEL_##name] = {                                                    \
      .is_wide = ACCUMULATOR, .initial = #INITIAL, .step = #STEP, .join = #JOIN, .result = #RESULT},
#define KERNEL_REDUCTION_FLOAT(...) KERNEL_REDUCTION(__VA_ARGS__)
#define KERNEL_ARGUMENT(name, REDUCTION, better) [KERNEL_##name].best = KERNEL_##REDUCTION,
#include "kernels/operators.inc"
};

/* A text that stands for a name of an expression. */
typedef struct substitution {
  const char *name;
  const char *text;
} substitution_t;

static bool is_word(char c) {
  return isalnum((unsigned char)c) != 0 || c == '_';
}

/* Words of `expression` by their substitutions; numbers are words that begin with a digit or a point. */
static void substitute(cuda_writer_t *writer, const char *expression, const substitution_t *substitutions,
                       uint32_t count) {
  const char *at = expression;
  while (*at != '\0') {
    const char *end = at + 1;
    bool is_number = isdigit((unsigned char)*at) != 0;
    if (is_word(*at)) {
      while (is_word(*end) || (is_number && *end == '.')) {
        end++;
      }
    }
    size_t length = (size_t)(end - at);
    const char *text = NULL;
    for (uint32_t k = 0; k < count; k++) {
      bool is_it = strlen(substitutions[k].name) == length && memcmp(substitutions[k].name, at, length) == 0;
      text = is_it ? substitutions[k].text : text;
    }
    if (text != NULL) {
      cuda_write(writer, "%s", text);
    } else if (length > 4 && memcmp(at, "cpu_", 4) == 0) {
      cuda_write_bytes(writer, at + 4, length - 4);
    } else {
      cuda_write_bytes(writer, at, length);
    }
    at = end;
  }
}

const char *cuda_type(cleave_dtype_t dtype) {
  switch (dtype) {
    case CLEAVE_DTYPE_F32: return "float";
    case CLEAVE_DTYPE_F64: return "double";
    case CLEAVE_DTYPE_I8: return "i8";
    case CLEAVE_DTYPE_I16: return "i16";
    case CLEAVE_DTYPE_I32: return "i32";
    case CLEAVE_DTYPE_I64: return "i64";
    case CLEAVE_DTYPE_U8: return "u8";
    case CLEAVE_DTYPE_F16:
    case CLEAVE_DTYPE_BF16:
    case CLEAVE_DTYPE_U16: return "u16";
    case CLEAVE_DTYPE_U32: return "u32";
    case CLEAVE_DTYPE_U64: return "u64";
    case CLEAVE_DTYPE_BOOL: return "u8";
    case CLEAVE_DTYPE_STRING:
    case CLEAVE_DTYPE_UNKNOWN: break;
  }
  return "?";
}

/* ---- numbers ---- */

static void write_f32(char *out, size_t size, float number) {
  if (isfinite(number)) {
    snprintf(out, size, "%.9g", (double)number);
    snprintf(out + strlen(out), size - strlen(out), "%s", strpbrk(out, ".e") != NULL ? "f" : ".0f");
  } else {
    snprintf(out, size, "__int_as_float(0x%08x)", (unsigned)cleave_float_to_bits(number));
  }
}

static void write_f64(char *out, size_t size, double number) {
  uint64_t bits = 0;
  memcpy(&bits, &number, sizeof bits);
  if (isfinite(number)) {
    snprintf(out, size, "%.17g", number);
    snprintf(out + strlen(out), size - strlen(out), "%s", strpbrk(out, ".e") != NULL ? "" : ".0");
  } else {
    snprintf(out, size, "__longlong_as_double(0x%016" PRIx64 ")", bits);
  }
}

/* An attribute, in the dtype of the operator; in parentheses, as a sign may stand before it. */
static void write_number(char *out, size_t size, cleave_dtype_t dtype, double number) {
  char text[60];
  if (dtype == CLEAVE_DTYPE_F64) {
    write_f64(text, sizeof text, number);
  } else {
    write_f32(text, sizeof text, (float)number);
  }
  snprintf(out, size, text[0] == '-' ? "(%s)" : "%s", text);
}

static void write_constant(cuda_writer_t *writer, const kernel_value_t *value) {
  char text[64];
  float f32 = 0;
  double f64 = 0;
  int64_t i64 = 0;
  switch (value->dtype) {
    case CLEAVE_DTYPE_F32:
      memcpy(&f32, &value->bits, sizeof f32);
      write_f32(text, sizeof text, f32);
      cuda_write(writer, "%s", text);
      break;
    case CLEAVE_DTYPE_F64:
      memcpy(&f64, &value->bits, sizeof f64);
      write_f64(text, sizeof text, f64);
      cuda_write(writer, "%s", text);
      break;
    case CLEAVE_DTYPE_U64: cuda_write(writer, "%" PRIu64 "ull", value->bits); break;
    case CLEAVE_DTYPE_BOOL: cuda_write(writer, "%d", (value->bits & 1u) != 0); break;
    default:
      cpu_convert(value->dtype, &value->bits, CLEAVE_DTYPE_I64, &i64, 1);
      if (i64 == INT64_MIN) {
        cuda_write(writer, "-%" PRId64 "ll - 1", INT64_MAX);
      } else {
        cuda_write(writer, "%" PRId64 "ll", i64);
      }
      break;
  }
}

/* ---- values ---- */

static const char *wrapping_type(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_I64 || dtype == CLEAVE_DTYPE_U64 ? "u64" : "u32";
}

static bool is_signed(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_I8 || dtype == CLEAVE_DTYPE_I16 || dtype == CLEAVE_DTYPE_I32 ||
         dtype == CLEAVE_DTYPE_I64;
}

static const char *expression_of(kernel_op_t op, cleave_dtype_t dtype) {
  const expressions_t *self = &all[op];
  return dtype == CLEAVE_DTYPE_F32    ? self->f32
         : dtype == CLEAVE_DTYPE_F64  ? self->f64
         : dtype == CLEAVE_DTYPE_BOOL ? self->on_bool
         : is_signed(dtype)           ? self->on_signed
                                      : self->on_unsigned;
}

/* Conversions as convert.h defines them: a function where C++ leaves some of it open. */
static void write_cast(cuda_writer_t *writer, cleave_dtype_t from, const kernel_value_t *value) {
  uint32_t x = value->operands[0];
  bool from_float = from == CLEAVE_DTYPE_F32 || from == CLEAVE_DTYPE_F64;
  if (value->rounds != CLEAVE_DTYPE_UNKNOWN) {
    const char *name = value->rounds == CLEAVE_DTYPE_F16 ? "half" : "bfloat";
    cuda_write(writer,
               from == CLEAVE_DTYPE_F32 ? "%s_to_float(float_to_%s(v%u))" : "%s_to_float(double_to_%s(v%u))",
               name, name, (unsigned)x);
  } else if (value->dtype == CLEAVE_DTYPE_BOOL) {
    cuda_write(writer, "v%u != 0", (unsigned)x);
  } else if (from_float && cpu_dtype_is_integer(value->dtype)) {
    cuda_write(writer, "to_%s(v%u)", cuda_type(value->dtype), (unsigned)x);
  } else {
    cuda_write(writer, "(%s)v%u", cuda_type(value->dtype), (unsigned)x);
  }
}

void cuda_write_value(cuda_writer_t *writer, const kernel_program_t *program, uint32_t index) {
  const kernel_value_t *value = &program->values[index];
  cleave_dtype_t from = program->values[value->operands[0]].dtype;
  char x[16];
  char y[16];
  char alpha[64];
  char beta[64];
  cuda_write(writer, "const %s v%u = ", cuda_type(value->dtype), (unsigned)index);
  if (value->op == KERNEL_CONSTANT) {
    write_constant(writer, value);
  } else if (value->op == KERNEL_CAST) {
    write_cast(writer, from, value);
  } else if (value->op == KERNEL_WHERE) {
    cuda_write(writer, "v%u != 0 ? v%u : v%u", (unsigned)value->operands[0], (unsigned)value->operands[1],
               (unsigned)value->operands[2]);
  } else {
    snprintf(x, sizeof x, "v%u", (unsigned)value->operands[0]);
    snprintf(y, sizeof y, "v%u", (unsigned)value->operands[1]);
    write_number(alpha, sizeof alpha, from, value->alpha);
    write_number(beta, sizeof beta, from, value->beta);
    const substitution_t substitutions[] = {
        {"x", x}, {"y", y}, {"alpha", alpha}, {"beta", beta}, {"W", wrapping_type(from)}};
    substitute(writer, expression_of(value->op, from), substitutions, 5);
  }
  cuda_write(writer, ";\n");
}

void cuda_write_widened(cuda_writer_t *writer, cleave_dtype_t dtype, const char *element) {
  if (dtype == CLEAVE_DTYPE_F16) {
    cuda_write(writer, "half_to_float(%s)", element);
  } else if (dtype == CLEAVE_DTYPE_BF16) {
    cuda_write(writer, "bfloat_to_float(%s)", element);
  } else {
    cuda_write(writer, "%s", element);
  }
}

void cuda_write_narrowed(cuda_writer_t *writer, cleave_dtype_t dtype, const char *value) {
  if (dtype == CLEAVE_DTYPE_F16) {
    cuda_write(writer, "float_to_half(%s)", value);
  } else if (dtype == CLEAVE_DTYPE_BF16) {
    cuda_write(writer, "float_to_bfloat(%s)", value);
  } else {
    cuda_write(writer, "(%s)(%s)", cuda_type(dtype), value);
  }
}

/* ---- reductions ---- */

bool cuda_is_argument(const kernel_value_t *value) {
  const kernel_op_info_t *info = kernel_op_info(value->op);
  return info->kind == KERNEL_KIND_REDUCTION && info->result != CLEAVE_DTYPE_UNKNOWN;
}

cuda_reduction_t cuda_reduction_of(const kernel_program_t *program, uint32_t value) {
  cuda_reduction_t self = {.value = &program->values[value]};
  self.dtype = program->values[self.value->operands[0]].dtype;
  if (cuda_is_argument(self.value)) {
    snprintf(self.type, sizeof self.type, "found<%s>", cuda_type(self.dtype));
  } else {
    snprintf(self.type, sizeof self.type, "%s",
             !all[self.value->op].is_wide     ? cuda_type(self.dtype)
             : cpu_dtype_is_float(self.dtype) ? "double"
                                              : "u64");
  }
  return self;
}

static void write_part(cuda_writer_t *writer, const cuda_reduction_t *reduction, const char *expression,
                       const char *a, const char *x, const char *n) {
  char lowest[64];
  char highest[64];
  cleave_dtype_t dtype = reduction->dtype;
  size_t bits = 8 * cleave_dtype_size(dtype);
  uint64_t ones = UINT64_MAX >> (64 - bits);
  if (dtype == CLEAVE_DTYPE_F32 || dtype == CLEAVE_DTYPE_F64) {
    write_number(lowest, sizeof lowest, dtype, -(double)INFINITY);
    write_number(highest, sizeof highest, dtype, (double)INFINITY);
  } else if (is_signed(dtype)) {
    snprintf(lowest, sizeof lowest, "(-%" PRIu64 "ll - 1)", ones >> 1);
    snprintf(highest, sizeof highest, "%" PRIu64 "ll", ones >> 1);
  } else {
    snprintf(lowest, sizeof lowest, "0");
    snprintf(highest, sizeof highest, "%" PRIu64 "ull", ones);
  }
  const substitution_t substitutions[] = {
      {"a", a}, {"x", x}, {"n", n}, {"LOWEST", lowest}, {"HIGHEST", highest}};
  substitute(writer, expression, substitutions, 5);
}

/* Writes it as a value of the accumulator's type. */
static void write_accumulated(cuda_writer_t *writer, const cuda_reduction_t *reduction,
                              const char *expression, const char *a, const char *x, const char *n) {
  cuda_write(writer, "(%s)(", reduction->type);
  write_part(writer, reduction, expression, a, x, n);
  cuda_write(writer, ")");
}

void cuda_write_initial(cuda_writer_t *writer, const cuda_reduction_t *reduction) {
  const expressions_t *self = &all[reduction->value->op];
  if (cuda_is_argument(reduction->value)) { /* behind all elements: any of them takes its place */
    cuda_write(writer, "{(%s)(", cuda_type(reduction->dtype));
    write_part(writer, reduction, all[self->best].initial, "", "", "");
    cuda_write(writer, "), %" PRId64 "ll}", INT64_MAX);
  } else {
    write_accumulated(writer, reduction, self->initial, "", "", "");
  }
}

void cuda_write_step(cuda_writer_t *writer, const cuda_reduction_t *reduction, const char *a,
                     const char *index) {
  unsigned v = reduction->value->operands[0];
  char x[64];
  if (cuda_is_argument(reduction->value)) {
    snprintf(x, sizeof x, "%s{v%u, (i64)(%s)}", reduction->type, v, index);
    cuda_write_join(writer, reduction, a, x);
  } else {
    snprintf(x, sizeof x, "(%s)v%u", reduction->type, v);
    write_accumulated(writer, reduction, all[reduction->value->op].step, a, x, "");
  }
}

void cuda_write_join(cuda_writer_t *writer, const cuda_reduction_t *reduction, const char *a, const char *x) {
  if (cuda_is_argument(reduction->value)) {
    cuda_write(writer, "%s(%s, %s)", kernel_op_info(reduction->value->op)->name, a, x);
  } else {
    write_accumulated(writer, reduction, all[reduction->value->op].join, a, x, "");
  }
}

void cuda_write_result(cuda_writer_t *writer, const cuda_reduction_t *reduction, const char *a,
                       const char *n) {
  if (cuda_is_argument(reduction->value)) {
    cuda_write(writer, "%s.at", a);
  } else {
    cuda_write(writer, "(%s)", cuda_type(reduction->dtype));
    write_accumulated(writer, reduction, all[reduction->value->op].result, a, "", n);
  }
}
