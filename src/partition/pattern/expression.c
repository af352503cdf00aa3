// SPDX-License-Identifier: Apache-2.0
// Runs compiled expressions on a small stack. A value is a number, a symbolic size or unknown; a condition is
// true, false or unknown. The parser (expression_parse.c) has checked the types and the depth of the stack.

#include "partition/pattern/expression.h"

#include "partition/pattern/expression_steps.h"

typedef enum state { STATE_NUMBER, STATE_SYMBOLIC, STATE_UNKNOWN } state_t;

/* A size; or a truth value, in `number`. */
typedef struct slot {
  state_t state;
  int64_t number; /* SYMBOLIC: code in the table of sizes */
} slot_t;

static const slot_t UNKNOWN = {STATE_UNKNOWN, 0};

static slot_t slot_of_dim(cleave_dim_t dim) {
  if (dim == CLEAVE_DIM_UNKNOWN) {
    return UNKNOWN;
  }
  return (slot_t){cleave_dim_is_known(dim) ? STATE_NUMBER : STATE_SYMBOLIC, dim};
}

/* The value as a size of shape.h; a value that is not a size, like a negative number, becomes UNKNOWN. */
static cleave_dim_t dim_of_slot(slot_t slot) {
  bool is_size = slot.state == STATE_SYMBOLIC || (slot.state == STATE_NUMBER && slot.number >= 0);
  return is_size ? slot.number : CLEAVE_DIM_UNKNOWN;
}

// ---- arithmetic ----

static int64_t floor_divide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

static slot_t compute_numbers(uint8_t code, int64_t a, int64_t b) {
  int64_t result = 0;
  bool is_bad = false;
  switch (code) {
    case CLEAVE_STEP_ADD: is_bad = __builtin_add_overflow(a, b, &result); break;
    case CLEAVE_STEP_SUBTRACT: is_bad = __builtin_sub_overflow(a, b, &result); break;
    case CLEAVE_STEP_MULTIPLY: is_bad = __builtin_mul_overflow(a, b, &result); break;
    default:  // divisions
      is_bad = b == 0 || (a == INT64_MIN && b == -1) || (code == CLEAVE_STEP_DIVIDE && a % b != 0);
      if (!is_bad) {
        result = floor_divide(a, b);
        result = code == CLEAVE_STEP_REST ? a - result * b : result;
      }
      break;
  }
  return is_bad ? UNKNOWN : (slot_t){STATE_NUMBER, result};
}

static slot_t compute(uint8_t code, cleave_dims_t *dims, slot_t a, slot_t b) {
  if (a.state == STATE_NUMBER && b.state == STATE_NUMBER) {
    return compute_numbers(code, a.number, b.number);
  }
  cleave_dim_t x = dim_of_slot(a);
  cleave_dim_t y = dim_of_slot(b);
  if (dims == NULL || x == CLEAVE_DIM_UNKNOWN || y == CLEAVE_DIM_UNKNOWN) {
    return UNKNOWN;
  }
  switch (code) {
    case CLEAVE_STEP_ADD: return slot_of_dim(cleave_dim_add(dims, x, y));
    case CLEAVE_STEP_SUBTRACT: return slot_of_dim(cleave_dim_subtract(dims, x, y));
    case CLEAVE_STEP_MULTIPLY: return slot_of_dim(cleave_dim_multiply(dims, x, y));
    default: break;
  }
  if (y == 0) {
    return UNKNOWN;
  }
  cleave_dim_t quotient = cleave_dim_divide(dims, x, y);
  cleave_dim_t product = cleave_dim_multiply(dims, quotient, y);
  if (code == CLEAVE_STEP_REST) {
    return slot_of_dim(product == x ? 0 : cleave_dim_subtract(dims, x, product));
  }
  return code == CLEAVE_STEP_FLOOR || product == x ? slot_of_dim(quotient) : UNKNOWN;
}

// ---- truth ----

/* The sign of a - b, if it is certain. */
static bool compare(cleave_dims_t *dims, slot_t a, slot_t b, int *out_sign) {
  *out_sign = 0;
  if (a.state == STATE_NUMBER && b.state == STATE_NUMBER) {
    *out_sign = (a.number > b.number) - (a.number < b.number);
    return true;
  }
  if (a.state == STATE_SYMBOLIC && b.state == STATE_SYMBOLIC && a.number == b.number) {
    return true;
  }
  for (int sign = 1; sign >= -1; sign -= 2) {
    slot_t difference = compute(CLEAVE_STEP_SUBTRACT, dims, sign > 0 ? a : b, sign > 0 ? b : a);
    if (difference.state == STATE_NUMBER) {
      *out_sign = difference.number > 0 ? sign : difference.number < 0 ? -sign : 0;
      return true;
    }
  }
  return false;
}

static slot_t compare_slots(uint8_t code, cleave_dims_t *dims, slot_t a, slot_t b) {
  int sign = 0;
  if (!compare(dims, a, b, &sign)) {
    return UNKNOWN;
  }
  bool holds = false;
  switch (code) {
    case CLEAVE_STEP_EQUAL: holds = sign == 0; break;
    case CLEAVE_STEP_DIFFERENT: holds = sign != 0; break;
    case CLEAVE_STEP_LESS: holds = sign < 0; break;
    case CLEAVE_STEP_AT_MOST: holds = sign <= 0; break;
    case CLEAVE_STEP_MORE: holds = sign > 0; break;
    default: holds = sign >= 0; break;
  }
  return (slot_t){STATE_NUMBER, holds};
}

/* If one operand is unknown, the other one may still decide the result. */
static slot_t join(bool is_and, slot_t a, slot_t b) {
  bool deciding = !is_and;
  if ((a.state == STATE_NUMBER && (a.number != 0) == deciding) ||
      (b.state == STATE_NUMBER && (b.number != 0) == deciding)) {
    return (slot_t){STATE_NUMBER, deciding};
  }
  return a.state == STATE_NUMBER && b.state == STATE_NUMBER ? (slot_t){STATE_NUMBER, !deciding} : UNKNOWN;
}

// ---- programs ----

static slot_t run(const cleave_expression_t *expression, cleave_dims_t *dims, const cleave_dim_t *sizes) {
  slot_t stack[CLEAVE_EXPRESSION_STACK];
  uint32_t depth = 0;
  for (uint32_t k = 0; k < expression->step_count; k++) {
    const cleave_expression_step_t *step = &expression->steps[k];
    if (step->code == CLEAVE_STEP_NUMBER) {
      stack[depth++] = (slot_t){STATE_NUMBER, step->number};
    } else if (step->code == CLEAVE_STEP_SYMBOL) {
      stack[depth++] = slot_of_dim(sizes[step->symbol]);
    } else if (step->code == CLEAVE_STEP_NEGATE) {
      slot_t *top = &stack[depth - 1];
      *top = compute(CLEAVE_STEP_SUBTRACT, dims, (slot_t){STATE_NUMBER, 0}, *top);
    } else if (step->code == CLEAVE_STEP_NOT) {
      slot_t *top = &stack[depth - 1];
      top->number = top->state == STATE_NUMBER && top->number == 0;
    } else {
      slot_t b = stack[--depth];
      slot_t *a = &stack[depth - 1];
      if (step->code == CLEAVE_STEP_AND || step->code == CLEAVE_STEP_OR) {
        *a = join(step->code == CLEAVE_STEP_AND, *a, b);
      } else {
        *a = step->code >= CLEAVE_STEP_EQUAL ? compare_slots(step->code, dims, *a, b)
                                             : compute(step->code, dims, *a, b);
      }
    }
  }
  return stack[0];
}

cleave_dim_t cleave_expression_size(const cleave_expression_t *expression, cleave_dims_t *dims,
                                    const cleave_dim_t *sizes) {
  return dim_of_slot(run(expression, dims, sizes));
}

cleave_truth_t cleave_expression_test(const cleave_expression_t *expression, cleave_dims_t *dims,
                                      const cleave_dim_t *sizes) {
  slot_t result = run(expression, dims, sizes);
  if (result.state != STATE_NUMBER) {
    return CLEAVE_UNKNOWN;
  }
  return result.number != 0 ? CLEAVE_TRUE : CLEAVE_FALSE;
}
