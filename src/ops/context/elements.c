// SPDX-License-Identifier: Apache-2.0
// Arithmetic on single elements of shape computations: exact integers, floats rounded to their dtype, and
// symbolic sizes, in float tensors as a rational multiple (exporters write sizes times 2.0, floor, cast).
// What could overflow, or is not followed, is UNKNOWN; nothing here can fail.

#include <math.h>
#include <string.h>

#include "ops/context/infer_context.h"

static const cleave_element_t unknown = {.kind = CLEAVE_ELEMENT_UNKNOWN, .divisor = 1};

/* Largest denominator of a float factor of a symbolic size. */
enum { DIVISOR_LIMIT = 4096 };

bool cleave_element_follows(cleave_dtype_t dtype) {
  switch (dtype) {
    case CLEAVE_DTYPE_F32:
    case CLEAVE_DTYPE_F64:
    case CLEAVE_DTYPE_BOOL:
    case CLEAVE_DTYPE_U8:
    case CLEAVE_DTYPE_I8:
    case CLEAVE_DTYPE_U16:
    case CLEAVE_DTYPE_I16:
    case CLEAVE_DTYPE_U32:
    case CLEAVE_DTYPE_I32:
    case CLEAVE_DTYPE_I64: return true;
    default: return false;
  }
}

static bool is_followed_float(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_F32 || dtype == CLEAVE_DTYPE_F64;
}

/* ---- making ---- */

static bool integer_range(cleave_dtype_t dtype, int64_t *low, int64_t *high) {
  switch (dtype) {
    case CLEAVE_DTYPE_BOOL: *low = 0, *high = 1; return true;
    case CLEAVE_DTYPE_U8: *low = 0, *high = UINT8_MAX; return true;
    case CLEAVE_DTYPE_I8: *low = INT8_MIN, *high = INT8_MAX; return true;
    case CLEAVE_DTYPE_U16: *low = 0, *high = UINT16_MAX; return true;
    case CLEAVE_DTYPE_I16: *low = INT16_MIN, *high = INT16_MAX; return true;
    case CLEAVE_DTYPE_U32: *low = 0, *high = UINT32_MAX; return true;
    case CLEAVE_DTYPE_I32: *low = INT32_MIN, *high = INT32_MAX; return true;
    case CLEAVE_DTYPE_I64: *low = INT64_MIN, *high = INT64_MAX; return true;
    default: return false;
  }
}

/* UNKNOWN if the value does not fit: wrapping is left to the kernels. */
static cleave_element_t make_int(cleave_dtype_t dtype, int64_t value) {
  int64_t low = 0;
  int64_t high = 0;
  if (!integer_range(dtype, &low, &high) || value < low || value > high) {
    return unknown;
  }
  return cleave_element_of_int(value);
}

static cleave_element_t make_float(cleave_dtype_t dtype, double value) {
  if (!is_followed_float(dtype) || !isfinite(value)) {
    return unknown;
  }
  if (dtype == CLEAVE_DTYPE_F32) {
    if (fabs(value) > 3.4028234663852886e38) {
      return unknown;
    }
    value = (double)(float)value;
  }
  return (cleave_element_t){.kind = CLEAVE_ELEMENT_FLOAT, .divisor = 1, .f = value};
}

static cleave_element_t make_bool(bool value) {
  return cleave_element_of_int(value ? 1 : 0);
}

/* symbol / divisor, if `symbol` may have come out as a number or unknown. */
static cleave_element_t make_symbol(cleave_dtype_t dtype, cleave_dim_t symbol, int64_t divisor,
                                    bool non_negative) {
  if (symbol == CLEAVE_DIM_UNKNOWN || divisor < 1 || divisor > DIVISOR_LIMIT) {
    return unknown;
  }
  if (cleave_dim_is_known(symbol)) {
    if (is_followed_float(dtype)) {
      return make_float(dtype, (double)symbol / (double)divisor);
    }
    return divisor == 1 ? make_int(dtype, symbol) : unknown;
  }
  return (cleave_element_t){.kind = CLEAVE_ELEMENT_SYMBOL,
                            .divisor = (int32_t)divisor,
                            .non_negative = non_negative,
                            .symbol = symbol};
}

cleave_element_t cleave_element_of_dim(cleave_dim_t dim) {
  return make_symbol(CLEAVE_DTYPE_I64, dim, 1, true);
}

cleave_dim_t cleave_element_dim(const cleave_element_t *element) {
  if (element->kind == CLEAVE_ELEMENT_INT && element->i >= 0) {
    return element->i;
  }
  if (element->kind == CLEAVE_ELEMENT_SYMBOL && element->divisor == 1) {
    return element->symbol;
  }
  return CLEAVE_DIM_UNKNOWN;
}

cleave_element_t cleave_element_of_tensor(const cleave_tensor_t *tensor, int64_t index) {
  if (is_followed_float(tensor->dtype)) {
    return make_float(tensor->dtype, cleave_tensor_get_float(tensor, index));
  }
  return make_int(tensor->dtype, cleave_tensor_get_int(tensor, index));
}

static bool is_equal(const cleave_element_t *a, const cleave_element_t *b) {
  if (a->kind != b->kind) {
    return false;
  }
  switch (a->kind) {
    case CLEAVE_ELEMENT_INT: return a->i == b->i;
    case CLEAVE_ELEMENT_FLOAT: return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case CLEAVE_ELEMENT_SYMBOL: return a->symbol == b->symbol && a->divisor == b->divisor;
    default: return true;
  }
}

cleave_element_t cleave_element_cast(const cleave_infer_t *infer, const cleave_element_t *element,
                                     cleave_dtype_t from, cleave_dtype_t to) {
  if (!cleave_element_follows(to)) {
    return unknown;
  }
  switch (element->kind) {
    case CLEAVE_ELEMENT_INT:
      if (to == CLEAVE_DTYPE_BOOL) {
        return make_bool(element->i != 0);
      }
      return is_followed_float(to) ? make_float(to, (double)element->i) : make_int(to, element->i);
    case CLEAVE_ELEMENT_FLOAT:
      if (to == CLEAVE_DTYPE_BOOL) {
        return make_bool(element->f != 0.0);
      }
      if (is_followed_float(to)) {
        return make_float(to, element->f);
      }
      return fabs(element->f) < 9.0e18 ? make_int(to, (int64_t)element->f) : unknown;
    case CLEAVE_ELEMENT_SYMBOL:
      if (to == CLEAVE_DTYPE_BOOL) {
        return unknown;
      }
      if (is_followed_float(to) || !is_followed_float(from)) {
        return *element;
      }
      if (element->divisor == 1) {
        return *element;
      }
      return element->non_negative
                 ? make_symbol(to, cleave_infer_divide(infer, element->symbol, element->divisor), 1, true)
                 : unknown;
    default: return unknown;
  }
}

/* ---- symbols: rational numbers whose numerator is an expression ---- */

typedef struct ratio {
  cleave_dim_t symbol; /* used if is_symbol */
  int64_t number;
  int64_t divisor;
  bool is_symbol;
  bool non_negative;
} ratio_t;

/* An element as a ratio; false if it is none with a small divisor. */
static bool to_ratio(const cleave_element_t *element, ratio_t *out) {
  *out = (ratio_t){.divisor = 1};
  if (element->kind == CLEAVE_ELEMENT_SYMBOL) {
    out->symbol = element->symbol;
    out->divisor = element->divisor;
    out->is_symbol = true;
    out->non_negative = element->non_negative;
    return true;
  }
  if (element->kind == CLEAVE_ELEMENT_INT) {
    out->number = element->i;
    out->non_negative = element->i >= 0;
    return element->i > INT64_MIN;
  }
  for (int64_t q = 1; element->kind == CLEAVE_ELEMENT_FLOAT && q <= 64; q++) {
    double scaled = element->f * (double)q;
    if (fabs(scaled) < 1.0e15 && scaled == floor(scaled)) {
      out->number = (int64_t)scaled;
      out->divisor = q;
      out->non_negative = scaled >= 0.0;
      return true;
    }
  }
  return false;
}

/* symbol * factor for a factor of either sign. */
static cleave_dim_t scale_symbol(const cleave_infer_t *infer, cleave_dim_t symbol, int64_t factor) {
  if (factor >= 0) {
    return cleave_infer_multiply(infer, symbol, factor);
  }
  return cleave_infer_subtract(infer, 0, cleave_infer_multiply(infer, symbol, -factor));
}

/* Numerator of a ratio times `factor`, as an expression; UNKNOWN for negative numbers. */
static cleave_dim_t numerator(const cleave_infer_t *infer, const ratio_t *ratio, int64_t factor) {
  int64_t scaled = 0;
  if (ratio->is_symbol) {
    return scale_symbol(infer, ratio->symbol, factor);
  }
  return __builtin_mul_overflow(ratio->number, factor, &scaled) || scaled < 0 ? CLEAVE_DIM_UNKNOWN : scaled;
}

static cleave_element_t symbol_sum(const cleave_infer_t *infer, cleave_dtype_t dtype, const ratio_t *a,
                                   const ratio_t *b, bool subtract) {
  int64_t divisor = a->divisor * b->divisor;
  int64_t number = 0;
  ratio_t right = *b;
  if (!right.is_symbol && right.number < 0) {
    right.number = -right.number;
    subtract = !subtract;
  }
  if (!a->is_symbol && a->number < 0) { /* -n + s = s - n */
    ratio_t negated = {.number = -a->number, .divisor = a->divisor, .non_negative = true};
    return subtract ? unknown : symbol_sum(infer, dtype, b, &negated, true);
  }
  if (divisor > DIVISOR_LIMIT || __builtin_mul_overflow(right.divisor, divisor, &number)) {
    return unknown;
  }
  cleave_dim_t left_term = numerator(infer, a, right.divisor);
  cleave_dim_t right_term = numerator(infer, &right, a->divisor);
  cleave_dim_t sum = subtract ? cleave_infer_subtract(infer, left_term, right_term)
                              : cleave_infer_add(infer, left_term, right_term);
  return make_symbol(dtype, sum, divisor, !subtract && a->non_negative && right.non_negative);
}

static cleave_element_t symbol_product(const cleave_infer_t *infer, cleave_dtype_t dtype, const ratio_t *a,
                                       const ratio_t *b) {
  int64_t divisor = a->divisor * b->divisor;
  cleave_dim_t product = CLEAVE_DIM_UNKNOWN;
  if (a->is_symbol && b->is_symbol) {
    product = cleave_infer_multiply(infer, a->symbol, b->symbol);
  } else {
    const ratio_t *symbol = a->is_symbol ? a : b;
    int64_t factor = a->is_symbol ? b->number : a->number;
    if (factor == 0) {
      return is_followed_float(dtype) ? make_float(dtype, 0.0) : make_int(dtype, 0);
    }
    if (divisor > 1 && factor % divisor == 0) {
      factor /= divisor;
      divisor = 1;
    }
    product = scale_symbol(infer, symbol->symbol, factor);
  }
  return make_symbol(dtype, product, divisor, a->non_negative && b->non_negative);
}

static cleave_element_t symbol_quotient(const cleave_infer_t *infer, cleave_dtype_t dtype, const ratio_t *a,
                                        const ratio_t *b) {
  if (!b->is_symbol && b->number <= 0) {
    return unknown;
  }
  if (is_followed_float(dtype)) {
    if (!b->is_symbol) {
      ratio_t inverse = {.number = b->divisor, .divisor = b->number, .non_negative = true};
      return symbol_product(infer, dtype, a, &inverse);
    }
    bool same = a->is_symbol && a->symbol == b->symbol && a->divisor == b->divisor;
    return same ? make_float(dtype, 1.0) : unknown;
  }
  /* integers: division truncates, which is floor if nothing is negative */
  if (!a->non_negative || !b->non_negative) {
    return unknown;
  }
  cleave_dim_t divisor = b->is_symbol ? b->symbol : b->number;
  cleave_dim_t dividend = a->is_symbol ? a->symbol : a->number;
  return make_symbol(dtype, cleave_infer_divide(infer, dividend, divisor), 1, true);
}

cleave_dim_t cleave_element_scale(const cleave_infer_t *infer, cleave_dim_t dim,
                                  const cleave_element_t *factor) {
  ratio_t ratio;
  if (factor->kind == CLEAVE_ELEMENT_FLOAT && cleave_dim_is_known(dim)) {
    double scaled = floor((double)((float)dim * (float)factor->f));
    return scaled >= 0.0 && scaled < 9.0e15 ? (cleave_dim_t)scaled : CLEAVE_DIM_UNKNOWN;
  }
  bool scales = factor->kind == CLEAVE_ELEMENT_FLOAT && to_ratio(factor, &ratio) && ratio.number > 0;
  return scales ? cleave_infer_divide(infer, cleave_infer_multiply(infer, dim, ratio.number), ratio.divisor)
                : CLEAVE_DIM_UNKNOWN;
}

/* a - b floor(a / b): Mod of integers. */
static cleave_element_t symbol_modulo(const cleave_infer_t *infer, cleave_dtype_t dtype, const ratio_t *a,
                                      const ratio_t *b) {
  bool followed =
      !is_followed_float(dtype) && a->is_symbol && a->non_negative && !b->is_symbol && b->number > 0;
  if (!followed) {
    return unknown;
  }
  cleave_dim_t whole =
      cleave_infer_multiply(infer, cleave_infer_divide(infer, a->symbol, b->number), b->number);
  return make_symbol(dtype, cleave_infer_subtract(infer, a->symbol, whole), 1, true);
}

/* Sizes are equal, or differ for certain if one is negative; else nobody knows. */
static cleave_element_t symbol_equal(const ratio_t *a, const ratio_t *b) {
  if (a->is_symbol && b->is_symbol && a->symbol == b->symbol && a->divisor == b->divisor) {
    return make_bool(true);
  }
  bool a_above = a->is_symbol && a->non_negative && !b->is_symbol && b->number < 0;
  bool b_above = b->is_symbol && b->non_negative && !a->is_symbol && a->number < 0;
  return a_above || b_above ? make_bool(false) : unknown;
}

static cleave_element_t apply_symbols(const cleave_infer_t *infer, cleave_dtype_t dtype,
                                      const cleave_element_t *operands, uint32_t count) {
  ratio_t a = {.divisor = 1};
  ratio_t b = {.divisor = 1};
  if (!to_ratio(&operands[0], &a) || (count > 1 && !to_ratio(&operands[1], &b))) {
    return unknown;
  }
  switch (infer->op->id) {
    case CLEAVE_OP_Add:
    case CLEAVE_OP_Sum: return count == 2 ? symbol_sum(infer, dtype, &a, &b, false) : unknown;
    case CLEAVE_OP_Sub: return symbol_sum(infer, dtype, &a, &b, true);
    case CLEAVE_OP_Mul: return symbol_product(infer, dtype, &a, &b);
    case CLEAVE_OP_Div: return symbol_quotient(infer, dtype, &a, &b);
    case CLEAVE_OP_Mod: return symbol_modulo(infer, dtype, &a, &b);
    case CLEAVE_OP_Equal: return symbol_equal(&a, &b);
    case CLEAVE_OP_Neg: {
      ratio_t minus_one = {.number = -1, .divisor = 1};
      return symbol_product(infer, dtype, &a, &minus_one);
    }
    case CLEAVE_OP_Floor:
      return make_symbol(dtype, cleave_infer_divide(infer, a.symbol, a.divisor), 1, a.non_negative);
    case CLEAVE_OP_Ceil:
      return make_symbol(dtype, cleave_infer_divide_up(infer, a.symbol, a.divisor), 1, a.non_negative);
    case CLEAVE_OP_Round: return a.divisor == 1 ? operands[0] : unknown;
    case CLEAVE_OP_Abs:
    case CLEAVE_OP_Relu: return a.non_negative ? operands[0] : unknown;
    case CLEAVE_OP_Min:
    case CLEAVE_OP_Max: return count == 2 && is_equal(&operands[0], &operands[1]) ? operands[0] : unknown;
    default: return unknown;
  }
}

/* ---- numbers ---- */

/* Truncated quotient; floor modulo with the divisor's sign, or the dividend's (fmod). */
static cleave_element_t divide_ints(cleave_dtype_t dtype, int64_t a, int64_t b) {
  return b == 0 || (b == -1 && a == INT64_MIN) ? unknown : make_int(dtype, a / b);
}

static cleave_element_t modulo_ints(const cleave_infer_t *infer, cleave_dtype_t dtype, int64_t a, int64_t b) {
  if (b == 0 || b == -1) {
    return b == 0 ? unknown : make_int(dtype, 0);
  }
  int64_t rest = a % b;
  bool by_divisor = cleave_op_int(infer->graph, infer->node, "fmod", 0) == 0;
  return make_int(dtype, by_divisor && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
}

static cleave_element_t apply_ints(const cleave_infer_t *infer, cleave_dtype_t dtype, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (infer->op->id) {
    case CLEAVE_OP_Add:
    case CLEAVE_OP_Sum: return __builtin_add_overflow(a, b, &result) ? unknown : make_int(dtype, result);
    case CLEAVE_OP_Sub: return __builtin_sub_overflow(a, b, &result) ? unknown : make_int(dtype, result);
    case CLEAVE_OP_Mul: return __builtin_mul_overflow(a, b, &result) ? unknown : make_int(dtype, result);
    case CLEAVE_OP_Div: return divide_ints(dtype, a, b);
    case CLEAVE_OP_Mod: return modulo_ints(infer, dtype, a, b);
    case CLEAVE_OP_Min: return make_int(dtype, a < b ? a : b);
    case CLEAVE_OP_Max: return make_int(dtype, a > b ? a : b);
    case CLEAVE_OP_Neg: return a == INT64_MIN ? unknown : make_int(dtype, -a);
    case CLEAVE_OP_Abs: return a == INT64_MIN ? unknown : make_int(dtype, a < 0 ? -a : a);
    case CLEAVE_OP_Relu: return make_int(dtype, a < 0 ? 0 : a);
    case CLEAVE_OP_Sign: return make_int(dtype, (a > 0) - (a < 0));
    case CLEAVE_OP_Equal: return make_bool(a == b);
    case CLEAVE_OP_Less: return make_bool(a < b);
    case CLEAVE_OP_LessOrEqual: return make_bool(a <= b);
    case CLEAVE_OP_Greater: return make_bool(a > b);
    case CLEAVE_OP_GreaterOrEqual: return make_bool(a >= b);
    case CLEAVE_OP_And: return make_bool(a != 0 && b != 0);
    case CLEAVE_OP_Or: return make_bool(a != 0 || b != 0);
    case CLEAVE_OP_Xor: return make_bool((a != 0) != (b != 0));
    case CLEAVE_OP_Not: return make_bool(a == 0);
    default: return unknown;
  }
}

static cleave_element_t apply_floats(const cleave_infer_t *infer, cleave_dtype_t dtype, double a, double b) {
  switch (infer->op->id) {
    case CLEAVE_OP_Add: return make_float(dtype, a + b);
    case CLEAVE_OP_Sub: return make_float(dtype, a - b);
    case CLEAVE_OP_Mul: return make_float(dtype, a * b);
    case CLEAVE_OP_Div: return b == 0.0 ? unknown : make_float(dtype, a / b);
    case CLEAVE_OP_Min: return make_float(dtype, a < b ? a : b);
    case CLEAVE_OP_Max: return make_float(dtype, a > b ? a : b);
    case CLEAVE_OP_Neg: return make_float(dtype, -a);
    case CLEAVE_OP_Abs: return make_float(dtype, fabs(a));
    case CLEAVE_OP_Floor: return make_float(dtype, floor(a));
    case CLEAVE_OP_Ceil: return make_float(dtype, ceil(a));
    case CLEAVE_OP_Sqrt: return a < 0.0 ? unknown : make_float(dtype, sqrt(a));
    case CLEAVE_OP_Reciprocal: return a == 0.0 ? unknown : make_float(dtype, 1.0 / a);
    case CLEAVE_OP_Equal: return make_bool(a == b);
    case CLEAVE_OP_Less: return make_bool(a < b);
    case CLEAVE_OP_LessOrEqual: return make_bool(a <= b);
    case CLEAVE_OP_Greater: return make_bool(a > b);
    case CLEAVE_OP_GreaterOrEqual: return make_bool(a >= b);
    default: return unknown;
  }
}

/* Where: a known condition chooses; without one, equal branches are the result. */
static cleave_element_t choose(const cleave_element_t *operands) {
  if (operands[0].kind == CLEAVE_ELEMENT_INT) {
    return operands[0].i != 0 ? operands[1] : operands[2];
  }
  return is_equal(&operands[1], &operands[2]) ? operands[1] : unknown;
}

cleave_element_t cleave_element_apply(const cleave_infer_t *infer, cleave_dtype_t dtype,
                                      const cleave_element_t *operands, uint32_t count) {
  if (infer->op->id == CLEAVE_OP_Where) {
    return choose(operands);
  }
  if (infer->op->id == CLEAVE_OP_Expand) {
    return operands[0];
  }
  bool has_symbol = false;
  for (uint32_t k = 0; k < count; k++) {
    if (operands[k].kind == CLEAVE_ELEMENT_UNKNOWN) {
      return unknown;
    }
    has_symbol = has_symbol || operands[k].kind == CLEAVE_ELEMENT_SYMBOL;
  }
  if (has_symbol) {
    return apply_symbols(infer, dtype, operands, count);
  }
  cleave_element_t result = operands[0];
  uint32_t step = 1;
  do { /* unary: once, with the operand twice; variadic: from left to right */
    const cleave_element_t *right = &operands[count > 1 ? step : 0];
    if (result.kind != right->kind) {
      return unknown;
    }
    result = result.kind == CLEAVE_ELEMENT_INT ? apply_ints(infer, dtype, result.i, right->i)
                                               : apply_floats(infer, dtype, result.f, right->f);
  } while (++step < count);
  return result;
}
