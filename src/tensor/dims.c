// SPDX-License-Identifier: Apache-2.0
/*
 * Symbolic dimensions: polynomials in a normal form, each stored once, so that equal ones have equal codes.
 * An atom is a symbol, or a floor division that leaves a rest. Everything is bounded: what gets too large is
 * unknown.
 */
#include <string.h>

#include "base/containers/array.h"
#include "base/hash.h"
#include "base/strings.h"
#include "tensor/shape.h"

enum { MAX_TERMS = 8, MAX_FACTORS = 4, MAX_EXPRESSIONS = 1 << 20, MAX_NESTING = 32 };

typedef struct term {
  int64_t coefficient; /* not 0 */
  uint32_t factor_count;
  uint32_t factors[MAX_FACTORS]; /* atoms, ascending */
} term_t;

/* Terms with more factors first, then by factors; the constant is last. */
typedef struct expression {
  uint32_t term_count;
  uint32_t padding;
  term_t terms[MAX_TERMS];
} expression_t;

typedef struct atom {
  bool is_symbol;
  uint32_t symbol;  /* is_symbol: its number */
  uint32_t nesting; /* of divisions */
  cleave_dim_t dividend;
  cleave_dim_t divisor;
} atom_t;

struct cleave_dims {
  cleave_strings_t names; /* symbol k is string k + 1 */
  CLEAVE_ARRAY(expression_t) expressions;
  CLEAVE_ARRAY(atom_t) atoms;
  CLEAVE_ARRAY(uint32_t) symbol_atoms;
  uint32_t *slots; /* expression + 1, 0 = free */
  uint32_t slot_count;
};

cleave_status_t cleave_dims_create(cleave_dims_t **out_dims, cleave_error_t *error) {
  *out_dims = cleave_allocate_zeroed(1, sizeof **out_dims);
  return *out_dims != NULL ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

void cleave_dims_destroy(cleave_dims_t *dims) {
  if (dims != NULL) {
    cleave_strings_deinit(&dims->names);
    cleave_array_free(&dims->expressions);
    cleave_array_free(&dims->atoms);
    cleave_array_free(&dims->symbol_atoms);
    cleave_free(dims->slots);
    cleave_free(dims);
  }
}

static cleave_status_t copy_table(const cleave_dims_t *dims, cleave_dims_t *copy, cleave_error_t *error) {
  CLEAVE_TRY(cleave_strings_copy(&dims->names, &copy->names, error));
  CLEAVE_ARRAY_COPY(&copy->expressions, &dims->expressions, error);
  CLEAVE_ARRAY_COPY(&copy->atoms, &dims->atoms, error);
  CLEAVE_ARRAY_COPY(&copy->symbol_atoms, &dims->symbol_atoms, error);
  if (dims->slot_count > 0) {
    copy->slots = cleave_allocate(dims->slot_count, sizeof *copy->slots);
    CLEAVE_TRY_MEMORY(copy->slots, error);
    memcpy(copy->slots, dims->slots, dims->slot_count * sizeof *copy->slots);
    copy->slot_count = dims->slot_count;
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_dims_copy(const cleave_dims_t *dims, cleave_dims_t **out_dims, cleave_error_t *error) {
  cleave_dims_t *copy = NULL;
  *out_dims = NULL;
  CLEAVE_TRY(cleave_dims_create(&copy, error));
  CLEAVE_TRY_OR(copy_table(dims, copy, error), cleave_dims_destroy(copy));
  *out_dims = copy;
  return CLEAVE_OK;
}

static uint64_t expression_hash(const expression_t *expression) {
  return cleave_hash_bytes(CLEAVE_HASH_SEED, expression, sizeof *expression);
}

static bool grow_slots(cleave_dims_t *dims) {
  uint32_t wanted = dims->slot_count == 0 ? 64 : dims->slot_count * 2;
  uint32_t *slots = cleave_allocate_zeroed(wanted, sizeof *slots);
  if (slots == NULL) {
    return false;
  }
  for (uint32_t k = 0; k < dims->expressions.count; k++) {
    uint32_t slot = (uint32_t)expression_hash(&dims->expressions.items[k]) & (wanted - 1);
    while (slots[slot] != 0) {
      slot = (slot + 1) & (wanted - 1);
    }
    slots[slot] = k + 1;
  }
  cleave_free(dims->slots);
  dims->slots = slots;
  dims->slot_count = wanted;
  return true;
}

/* The code of an expression in normal form, unused fields zeroed. */
static cleave_dim_t intern(cleave_dims_t *dims, const expression_t *expression) {
  if (expression->term_count == 0) {
    return 0;
  }
  if (expression->term_count == 1 && expression->terms[0].factor_count == 0) {
    int64_t value = expression->terms[0].coefficient;
    return value >= 0 ? value : CLEAVE_DIM_UNKNOWN;
  }
  if (dims->expressions.count * 2 >= dims->slot_count && !grow_slots(dims)) {
    return CLEAVE_DIM_UNKNOWN;
  }
  uint32_t slot = (uint32_t)expression_hash(expression) & (dims->slot_count - 1);
  for (; dims->slots[slot] != 0; slot = (slot + 1) & (dims->slot_count - 1)) {
    if (memcmp(&dims->expressions.items[dims->slots[slot] - 1], expression, sizeof *expression) == 0) {
      return -2 - (cleave_dim_t)(dims->slots[slot] - 1);
    }
  }
  if (dims->expressions.count >= MAX_EXPRESSIONS ||
      cleave_array_reserve(&dims->expressions, 1, NULL) != CLEAVE_OK) {
    return CLEAVE_DIM_UNKNOWN;
  }
  cleave_array_push_reserved(&dims->expressions, *expression);
  dims->slots[slot] = (uint32_t)dims->expressions.count;
  return -1 - (cleave_dim_t)dims->expressions.count;
}

static bool load(const cleave_dims_t *dims, cleave_dim_t dim, expression_t *out) {
  memset(out, 0, sizeof *out);
  if (dim > 0) {
    out->term_count = 1;
    out->terms[0].coefficient = dim;
  } else if (dim < -1) {
    uint64_t index = (uint64_t)(-2 - dim);
    if (index >= dims->expressions.count) {
      return false;
    }
    *out = dims->expressions.items[index];
  }
  return dim != CLEAVE_DIM_UNKNOWN;
}

/* Normal order of two products of factors: <0, 0, >0. */
static int compare_factors(const term_t *a, const term_t *b) {
  if (a->factor_count != b->factor_count) {
    return a->factor_count > b->factor_count ? -1 : 1;
  }
  for (uint32_t k = 0; k < a->factor_count; k++) {
    if (a->factors[k] != b->factors[k]) {
      return a->factors[k] < b->factors[k] ? -1 : 1;
    }
  }
  return 0;
}

/* Adds a term to an expression, keeping the normal form. */
static bool add_term(expression_t *expression, const term_t *term) {
  uint32_t place = 0;
  while (place < expression->term_count && compare_factors(&expression->terms[place], term) < 0) {
    place++;
  }
  if (place < expression->term_count && compare_factors(&expression->terms[place], term) == 0) {
    term_t *same = &expression->terms[place];
    if (__builtin_add_overflow(same->coefficient, term->coefficient, &same->coefficient)) {
      return false;
    }
    if (same->coefficient == 0) {
      memmove(same, same + 1, (expression->term_count - place - 1) * sizeof *same);
      memset(&expression->terms[--expression->term_count], 0, sizeof *same);
    }
    return true;
  }
  if (expression->term_count == MAX_TERMS) {
    return false;
  }
  memmove(&expression->terms[place + 1], &expression->terms[place],
          (expression->term_count - place) * sizeof *term);
  expression->terms[place] = *term;
  expression->term_count++;
  return true;
}

static bool multiply_terms(const term_t *a, const term_t *b, term_t *out) {
  memset(out, 0, sizeof *out);
  if (a->factor_count + b->factor_count > MAX_FACTORS ||
      __builtin_mul_overflow(a->coefficient, b->coefficient, &out->coefficient)) {
    return false;
  }
  uint32_t i = 0;
  uint32_t j = 0;
  while (i < a->factor_count || j < b->factor_count) {
    bool from_a = j == b->factor_count || (i < a->factor_count && a->factors[i] <= b->factors[j]);
    out->factors[out->factor_count++] = from_a ? a->factors[i++] : b->factors[j++];
  }
  return true;
}

static cleave_dim_t new_atom(cleave_dims_t *dims, const atom_t *atom) {
  uint32_t index = (uint32_t)dims->atoms.count;
  for (uint32_t k = 0; !atom->is_symbol && k < dims->atoms.count; k++) {
    const atom_t *other = &dims->atoms.items[k];
    if (!other->is_symbol && other->dividend == atom->dividend && other->divisor == atom->divisor) {
      index = k;
    }
  }
  if (index == dims->atoms.count) {
    if (index >= MAX_EXPRESSIONS || cleave_array_reserve(&dims->atoms, 1, NULL) != CLEAVE_OK) {
      return CLEAVE_DIM_UNKNOWN;
    }
    cleave_array_push_reserved(&dims->atoms, *atom);
  }
  expression_t expression;
  memset(&expression, 0, sizeof expression);
  expression.term_count = 1;
  expression.terms[0].coefficient = 1;
  expression.terms[0].factor_count = 1;
  expression.terms[0].factors[0] = index;
  return intern(dims, &expression);
}

cleave_dim_t cleave_dims_symbol(cleave_dims_t *dims, const char *name, size_t length) {
  cleave_string_t string;
  if (length == 0 || cleave_strings_add(&dims->names, name, length, &string, NULL) != CLEAVE_OK ||
      cleave_array_reserve(&dims->symbol_atoms, 1, NULL) != CLEAVE_OK) {
    return CLEAVE_DIM_UNKNOWN;
  }
  uint32_t symbol = string.index - 1;
  if (string.index == 0) {
    return CLEAVE_DIM_UNKNOWN;
  }
  if (symbol < dims->symbol_atoms.count) {
    expression_t expression;
    memset(&expression, 0, sizeof expression);
    expression.term_count = 1;
    expression.terms[0].coefficient = 1;
    expression.terms[0].factor_count = 1;
    expression.terms[0].factors[0] = dims->symbol_atoms.items[symbol];
    return intern(dims, &expression);
  }
  atom_t atom = {.is_symbol = true, .symbol = symbol};
  uint32_t index = (uint32_t)dims->atoms.count;
  cleave_dim_t dim = new_atom(dims, &atom);
  cleave_array_push_reserved(&dims->symbol_atoms, index);
  return dim;
}

size_t cleave_dims_symbol_count(const cleave_dims_t *dims) {
  return dims->symbol_atoms.count;
}

const char *cleave_dims_symbol_name(const cleave_dims_t *dims, size_t symbol) {
  return cleave_strings_text(&dims->names, (cleave_string_t){(uint32_t)symbol + 1});
}

/* a + sign * b */
static cleave_dim_t combine(cleave_dims_t *dims, cleave_dim_t a, cleave_dim_t b, int64_t sign) {
  expression_t sum;
  expression_t other;
  if (!load(dims, a, &sum) || !load(dims, b, &other)) {
    return CLEAVE_DIM_UNKNOWN;
  }
  for (uint32_t k = 0; k < other.term_count; k++) {
    term_t term = other.terms[k];
    if (__builtin_mul_overflow(term.coefficient, sign, &term.coefficient) || !add_term(&sum, &term)) {
      return CLEAVE_DIM_UNKNOWN;
    }
  }
  return intern(dims, &sum);
}

cleave_dim_t cleave_dim_add(cleave_dims_t *dims, cleave_dim_t a, cleave_dim_t b) {
  return combine(dims, a, b, 1);
}

cleave_dim_t cleave_dim_subtract(cleave_dims_t *dims, cleave_dim_t a, cleave_dim_t b) {
  return combine(dims, a, b, -1);
}

cleave_dim_t cleave_dim_multiply(cleave_dims_t *dims, cleave_dim_t a, cleave_dim_t b) {
  expression_t left;
  expression_t right;
  expression_t product;
  memset(&product, 0, sizeof product);
  if (!load(dims, a, &left) || !load(dims, b, &right)) {
    return CLEAVE_DIM_UNKNOWN;
  }
  for (uint32_t i = 0; i < left.term_count; i++) {
    for (uint32_t j = 0; j < right.term_count; j++) {
      term_t term;
      if (!multiply_terms(&left.terms[i], &right.terms[j], &term) || !add_term(&product, &term)) {
        return CLEAVE_DIM_UNKNOWN;
      }
    }
  }
  return intern(dims, &product);
}

/* term / divisor if it leaves no rest. */
static bool divide_term(const term_t *term, const term_t *divisor, term_t *out) {
  memset(out, 0, sizeof *out);
  if (divisor->coefficient <= 0 || term->coefficient % divisor->coefficient != 0) {
    return false;
  }
  out->coefficient = term->coefficient / divisor->coefficient;
  uint32_t j = 0;
  for (uint32_t i = 0; i < term->factor_count; i++) {
    if (j < divisor->factor_count && divisor->factors[j] == term->factors[i]) {
      j++;
    } else {
      out->factors[out->factor_count++] = term->factors[i];
    }
  }
  return j == divisor->factor_count;
}

static uint32_t nesting_of(const cleave_dims_t *dims, cleave_dim_t dim) {
  expression_t expression;
  uint32_t nesting = 0;
  if (load(dims, dim, &expression)) {
    for (uint32_t t = 0; t < expression.term_count; t++) {
      for (uint32_t f = 0; f < expression.terms[t].factor_count; f++) {
        uint32_t deep = dims->atoms.items[expression.terms[t].factors[f]].nesting;
        nesting = deep > nesting ? deep : nesting;
      }
    }
  }
  return nesting;
}

cleave_dim_t cleave_dim_divide(cleave_dims_t *dims, cleave_dim_t a, cleave_dim_t b) {
  expression_t dividend;
  expression_t divisor;
  if (b == 0 || !load(dims, a, &dividend) || !load(dims, b, &divisor)) {
    return CLEAVE_DIM_UNKNOWN;
  }
  if (a >= 0 && b > 0) {
    return a / b;
  }
  if (a == b) {
    return 1;
  }
  expression_t quotient;
  expression_t rest;
  memset(&quotient, 0, sizeof quotient);
  memset(&rest, 0, sizeof rest);
  for (uint32_t k = 0; k < dividend.term_count; k++) {
    term_t term;
    bool exact = divisor.term_count == 1 && divide_term(&dividend.terms[k], &divisor.terms[0], &term);
    if (!add_term(exact ? &quotient : &rest, exact ? &term : &dividend.terms[k])) {
      return CLEAVE_DIM_UNKNOWN;
    }
  }
  if (rest.term_count == 0) {
    return intern(dims, &quotient);
  }
  /* floor((b q + r) / b) = q + floor(r / b); a constant rest is settled here */
  bool constant_rest = rest.term_count == 1 && rest.terms[0].factor_count == 0;
  if (constant_rest && b > 0) {
    int64_t value = rest.terms[0].coefficient;
    term_t floor_term = {.coefficient = value / b - (value % b < 0 ? 1 : 0)};
    if (floor_term.coefficient != 0 && !add_term(&quotient, &floor_term)) {
      return CLEAVE_DIM_UNKNOWN;
    }
    return intern(dims, &quotient);
  }
  cleave_dim_t rest_dim = intern(dims, &rest);
  if (rest_dim == CLEAVE_DIM_UNKNOWN) {
    rest_dim = a;
    memset(&quotient, 0, sizeof quotient);
  }
  uint32_t nesting = nesting_of(dims, rest_dim) + 1;
  if (nesting > MAX_NESTING) {
    return CLEAVE_DIM_UNKNOWN;
  }
  atom_t atom = {.nesting = nesting, .dividend = rest_dim, .divisor = b};
  expression_t sum;
  if (!load(dims, new_atom(dims, &atom), &sum)) {
    return CLEAVE_DIM_UNKNOWN;
  }
  for (uint32_t k = 0; k < quotient.term_count; k++) { /* may be a negative constant: no dim of its own */
    if (!add_term(&sum, &quotient.terms[k])) {
      return CLEAVE_DIM_UNKNOWN;
    }
  }
  return intern(dims, &sum);
}

cleave_dim_t cleave_dim_divide_up(cleave_dims_t *dims, cleave_dim_t a, cleave_dim_t b) {
  cleave_dim_t almost = cleave_dim_subtract(dims, b, 1);
  return cleave_dim_divide(dims, cleave_dim_add(dims, a, almost), b);
}

cleave_dim_t cleave_dim_evaluate(const cleave_dims_t *dims, cleave_dim_t dim, const int64_t *sizes,
                                 size_t size_count) {
  expression_t expression;
  if (dim >= 0) {
    return dim;
  }
  if (dims == NULL || !load(dims, dim, &expression)) {
    return CLEAVE_DIM_UNKNOWN;
  }
  int64_t sum = 0;
  for (uint32_t t = 0; t < expression.term_count; t++) {
    int64_t product = expression.terms[t].coefficient;
    for (uint32_t f = 0; f < expression.terms[t].factor_count; f++) {
      const atom_t *atom = &dims->atoms.items[expression.terms[t].factors[f]];
      int64_t value = CLEAVE_DIM_UNKNOWN;
      if (atom->is_symbol) {
        value = atom->symbol < size_count ? sizes[atom->symbol] : CLEAVE_DIM_UNKNOWN;
      } else {
        int64_t dividend = cleave_dim_evaluate(dims, atom->dividend, sizes, size_count);
        int64_t divisor = cleave_dim_evaluate(dims, atom->divisor, sizes, size_count);
        value = dividend >= 0 && divisor > 0 ? dividend / divisor : CLEAVE_DIM_UNKNOWN;
      }
      if (value < 0 || __builtin_mul_overflow(product, value, &product)) {
        return CLEAVE_DIM_UNKNOWN;
      }
    }
    if (__builtin_add_overflow(sum, product, &sum)) {
      return CLEAVE_DIM_UNKNOWN;
    }
  }
  return sum >= 0 ? sum : CLEAVE_DIM_UNKNOWN;
}

static void print_atom(const cleave_dims_t *dims, const atom_t *atom, cleave_text_t *text) {
  if (atom->is_symbol) {
    cleave_text_add(text, cleave_dims_symbol_name(dims, atom->symbol));
    return;
  }
  cleave_text_add(text, "floor((");
  cleave_dim_print(dims, atom->dividend, text);
  cleave_text_add(text, ") / (");
  cleave_dim_print(dims, atom->divisor, text);
  cleave_text_add(text, "))");
}

void cleave_dim_print(const cleave_dims_t *dims, cleave_dim_t dim, cleave_text_t *text) {
  expression_t expression;
  if (dim >= 0) {
    cleave_text_format(text, "%lld", (long long)dim);
    return;
  }
  if (dims == NULL || !load(dims, dim, &expression)) {
    cleave_text_add(text, "?");
    return;
  }
  for (uint32_t t = 0; t < expression.term_count; t++) {
    const term_t *term = &expression.terms[t];
    unsigned long long size = term->coefficient < 0 ? 0ULL - (unsigned long long)term->coefficient
                                                    : (unsigned long long)term->coefficient;
    cleave_text_add(text,
                    t == 0 ? (term->coefficient < 0 ? "-" : "") : (term->coefficient < 0 ? " - " : " + "));
    if (size != 1 || term->factor_count == 0) {
      cleave_text_format(text, "%llu%s", size, term->factor_count > 0 ? " * " : "");
    }
    for (uint32_t f = 0; f < term->factor_count; f++) {
      cleave_text_add(text, f > 0 ? " * " : "");
      print_atom(dims, &dims->atoms.items[term->factors[f]], text);
    }
  }
}
