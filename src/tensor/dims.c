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
  uint32_t padding;              /* 0, here and below: expressions are compared byte by byte */
} term_t;

/* Terms with more factors first, then by factors; the constant is last. */
typedef struct expression {
  uint32_t term_count;
  uint32_t padding;
  term_t terms[MAX_TERMS];
} expression_t;

/* Without padding, since atoms are compared byte by byte too. */
typedef struct atom {
  cleave_dim_t dividend;
  cleave_dim_t divisor;
  uint32_t symbol;  /* its number; CLEAVE_INDEX_NONE: a division */
  uint32_t nesting; /* of divisions */
} atom_t;

/* Where an item is in an array in which no two are equal. */
typedef struct table {
  uint32_t *slots; /* item + 1, 0 = free; a power of two of them, at most half of them taken */
  uint32_t slot_count;
} table_t;

struct cleave_dims {
  cleave_strings_t names; /* symbol k is string k + 1 */
  CLEAVE_ARRAY(expression_t) expressions;
  CLEAVE_ARRAY(atom_t) atoms;
  table_t expression_table;
  table_t atom_table;
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
    cleave_free(dims->expression_table.slots);
    cleave_free(dims->atom_table.slots);
    cleave_free(dims);
  }
}

static cleave_status_t copy_table(const table_t *table, table_t *copy, cleave_error_t *error) {
  if (table->slot_count > 0) {
    copy->slots = cleave_allocate(table->slot_count, sizeof *copy->slots);
    CLEAVE_TRY_MEMORY(copy->slots, error);
    memcpy(copy->slots, table->slots, table->slot_count * sizeof *copy->slots);
    copy->slot_count = table->slot_count;
  }
  return CLEAVE_OK;
}

static cleave_status_t copy_dims(const cleave_dims_t *dims, cleave_dims_t *copy, cleave_error_t *error) {
  CLEAVE_TRY(cleave_strings_copy(&dims->names, &copy->names, error));
  CLEAVE_ARRAY_COPY(&copy->expressions, &dims->expressions, error);
  CLEAVE_ARRAY_COPY(&copy->atoms, &dims->atoms, error);
  CLEAVE_TRY(copy_table(&dims->expression_table, &copy->expression_table, error));
  return copy_table(&dims->atom_table, &copy->atom_table, error);
}

cleave_status_t cleave_dims_copy(const cleave_dims_t *dims, cleave_dims_t **out_dims, cleave_error_t *error) {
  cleave_dims_t *copy = NULL;
  *out_dims = NULL;
  CLEAVE_TRY(cleave_dims_create(&copy, error));
  CLEAVE_TRY_OR(copy_dims(dims, copy, error), cleave_dims_destroy(copy));
  *out_dims = copy;
  return CLEAVE_OK;
}

/* The slot of an item, or the free one where it goes. */
static uint32_t *find_slot(const table_t *table, const void *items, const void *item, size_t bytes) {
  uint32_t slot = (uint32_t)cleave_hash_bytes(CLEAVE_HASH_SEED, item, bytes) & (table->slot_count - 1);
  while (table->slots[slot] != 0 &&
         memcmp((const char *)items + (table->slots[slot] - 1) * bytes, item, bytes) != 0) {
    slot = (slot + 1) & (table->slot_count - 1);
  }
  return &table->slots[slot];
}

/* Makes room for one item more than the `count` that there are. */
static bool grow_table(table_t *table, const void *items, size_t count, size_t bytes) {
  table_t larger = {.slot_count = table->slot_count == 0 ? 64 : table->slot_count * 2};
  if (count * 2 < table->slot_count) {
    return true;
  }
  larger.slots = cleave_allocate_zeroed(larger.slot_count, sizeof *larger.slots);
  for (uint32_t k = 0; larger.slots != NULL && k < count; k++) {
    *find_slot(&larger, items, (const char *)items + k * bytes, bytes) = k + 1;
  }
  if (larger.slots != NULL) {
    cleave_free(table->slots);
    *table = larger;
  }
  return larger.slots != NULL;
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
  size_t count = dims->expressions.count;
  if (!grow_table(&dims->expression_table, dims->expressions.items, count, sizeof *expression)) {
    return CLEAVE_DIM_UNKNOWN;
  }
  uint32_t *slot =
      find_slot(&dims->expression_table, dims->expressions.items, expression, sizeof *expression);
  if (*slot == 0) {
    if (count >= MAX_EXPRESSIONS || cleave_array_reserve(&dims->expressions, 1, NULL) != CLEAVE_OK) {
      return CLEAVE_DIM_UNKNOWN;
    }
    cleave_array_push_reserved(&dims->expressions, *expression);
    *slot = (uint32_t)count + 1;
  }
  return -1 - (cleave_dim_t)*slot;
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

/* The dimension that is one atom. */
static cleave_dim_t intern_atom(cleave_dims_t *dims, const atom_t *atom) {
  size_t count = dims->atoms.count;
  if (!grow_table(&dims->atom_table, dims->atoms.items, count, sizeof *atom)) {
    return CLEAVE_DIM_UNKNOWN;
  }
  uint32_t *slot = find_slot(&dims->atom_table, dims->atoms.items, atom, sizeof *atom);
  if (*slot == 0) {
    if (count >= MAX_EXPRESSIONS || cleave_array_reserve(&dims->atoms, 1, NULL) != CLEAVE_OK) {
      return CLEAVE_DIM_UNKNOWN;
    }
    cleave_array_push_reserved(&dims->atoms, *atom);
    *slot = (uint32_t)count + 1;
  }
  expression_t expression;
  memset(&expression, 0, sizeof expression);
  expression.term_count = 1;
  expression.terms[0] = (term_t){.coefficient = 1, .factor_count = 1, .factors = {*slot - 1}};
  return intern(dims, &expression);
}

cleave_dim_t cleave_dims_symbol(cleave_dims_t *dims, const char *name, size_t length) {
  cleave_string_t string;
  if (length == 0 || cleave_strings_add(&dims->names, name, length, &string, NULL) != CLEAVE_OK ||
      string.index == 0) {
    return CLEAVE_DIM_UNKNOWN;
  }
  atom_t atom = {.symbol = string.index - 1};
  return intern_atom(dims, &atom);
}

size_t cleave_dims_symbol_count(const cleave_dims_t *dims) {
  return dims->names.count > 0 ? dims->names.count - 1 : 0;
}

const char *cleave_dims_symbol_name(const cleave_dims_t *dims, size_t symbol) {
  return cleave_strings_text(&dims->names, (cleave_string_t){(uint32_t)symbol + 1});
}

size_t cleave_dims_find_symbol(const cleave_dims_t *dims, const char *name, size_t length) {
  uint32_t string = cleave_strings_find(&dims->names, name, length).index;
  return string >= 1 && string < dims->names.count ? string - 1 : cleave_dims_symbol_count(dims);
}

size_t cleave_dims_symbol_of(const cleave_dims_t *dims, cleave_dim_t dim) {
  expression_t expression;
  bool is_factor = cleave_dim_is_symbolic(dim) && load(dims, dim, &expression) &&
                   expression.term_count == 1 && expression.terms[0].factor_count == 1 &&
                   expression.terms[0].coefficient == 1;
  uint32_t symbol = is_factor ? dims->atoms.items[expression.terms[0].factors[0]].symbol : CLEAVE_INDEX_NONE;
  return symbol != CLEAVE_INDEX_NONE ? symbol : cleave_dims_symbol_count(dims);
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
  atom_t atom = {.dividend = rest_dim, .divisor = b, .symbol = CLEAVE_INDEX_NONE, .nesting = nesting};
  expression_t sum;
  if (!load(dims, intern_atom(dims, &atom), &sum)) {
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
      if (atom->symbol != CLEAVE_INDEX_NONE) {
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
  if (atom->symbol != CLEAVE_INDEX_NONE) {
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
