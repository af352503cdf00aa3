// SPDX-License-Identifier: Apache-2.0
// Arithmetic over sizes: priorities, exact and floor division, symbolic and unknown sizes, three truth
// values, and the places of mistakes.

#include "partition/pattern/expression.h"

#include <stdint.h>

#include "unit.h"

static cleave_arena_t arena;
static cleave_dims_t *dims;

static const cleave_expression_t *compile(const char *text, cleave_expression_kind_t kind) {
  const cleave_expression_t *expression = NULL;
  unit_ok(cleave_expression_compile(&arena, text, 7, kind, &expression, e));
  ck_assert_str_eq(expression->text, text);
  ck_assert_int_eq(expression->line, 7);
  return expression;
}

/* Sizes of symbols: C = 24, H = 7, T and N symbolic, everything else unknown. */
static const cleave_dim_t *sizes_of(const cleave_expression_t *expression) {
  static cleave_dim_t sizes[16];
  if (dims == NULL) {
    unit_ok(cleave_dims_create(&dims, e));
  }
  for (uint32_t k = 0; k < expression->symbol_count; k++) {
    char name = expression->symbols[k][0];
    sizes[k] = name == 'C'                  ? 24
               : name == 'H'                ? 7
               : name == 'T' || name == 'N' ? cleave_dims_symbol(dims, &name, 1)
                                            : CLEAVE_DIM_UNKNOWN;
  }
  return sizes;
}

static const char *size(const char *text) {
  static char buffer[128];
  const cleave_expression_t *expression = compile(text, CLEAVE_EXPRESSION_SIZE);
  cleave_text_t out = {0};
  const cleave_dim_t *sizes = sizes_of(expression);
  cleave_dim_print(dims, cleave_expression_size(expression, dims, sizes), &out);
  (void)snprintf(buffer, sizeof buffer, "%s", cleave_text_get(&out));
  cleave_text_deinit(&out);
  return buffer;
}

static cleave_truth_t test(const char *text) {
  const cleave_expression_t *expression = compile(text, CLEAVE_EXPRESSION_CONDITION);
  const cleave_dim_t *sizes = sizes_of(expression);
  return cleave_expression_test(expression, dims, sizes);
}

static const char *mistake(const char *text, cleave_expression_kind_t kind) {
  static cleave_error_t error;
  const cleave_expression_t *expression = NULL;
  error = (cleave_error_t)CLEAVE_ERROR_INIT;
  ck_assert_int_eq(cleave_expression_compile(&arena, text, 1, kind, &expression, &error), CLEAVE_ERROR_RULE);
  return error.message;
}

UNIT_TEST(products_bind_more_than_sums_and_all_from_the_left) {
  ck_assert_str_eq(size("2*C+1"), "49");
  ck_assert_str_eq(size("1 + 2 * (C - 4)"), "41");
  ck_assert_str_eq(size("C - 4 - 5"), "15");
  ck_assert_str_eq(size("C / 4 / 3"), "2");
  ck_assert_str_eq(size("-(-C)"), "24");
  ck_assert_str_eq(size("--C"), "24");
  ck_assert_str_eq(size("C % 7 * 2"), "6");
}

UNIT_TEST(division_is_exact_or_downwards) {
  ck_assert_str_eq(size("C/2"), "12");
  ck_assert_str_eq(size("H/2"), "?");
  ck_assert_str_eq(size("H//2"), "3");
  ck_assert_str_eq(size("(H+1)/2"), "4");
  ck_assert_str_eq(size("10 + (0-H)//2"), "6");  // -4, as in Lua
  ck_assert_str_eq(size("(0-H) % 4"), "1");
  ck_assert_str_eq(size("C/0"), "?");
  ck_assert_str_eq(size("C//0"), "?");
  ck_assert_str_eq(size("C % 0"), "?");
}

UNIT_TEST(what_is_no_size_is_unknown) {
  ck_assert_str_eq(size("H - C"), "?");
  ck_assert_str_eq(size("9223372036854775807 + C"), "?");
  ck_assert_str_eq(size("9223372036854775807 * C"), "?");
  ck_assert_str_eq(size("(-9223372036854775807 - 1) // -1"), "?");
  ck_assert_str_eq(size("unbound + 1"), "?");
}

UNIT_TEST(symbolic_sizes_stay_symbolic) {
  ck_assert_str_eq(size("T + 0"), "T");
  ck_assert_str_eq(size("2*T + T"), "3 * T");
  ck_assert_str_eq(size("4*T / 2"), "2 * T");
  ck_assert_str_eq(size("T / 2"), "?");
  ck_assert_str_eq(size("T - T"), "0");
  ck_assert_str_eq(size("6*T % 3"), "0");
  const cleave_expression_t *expression = compile("2*T", CLEAVE_EXPRESSION_SIZE);
  ck_assert_int_eq(cleave_expression_size(expression, NULL, sizes_of(expression)), CLEAVE_DIM_UNKNOWN);
}

UNIT_TEST(conditions_compare_what_is_certain) {
  ck_assert_int_eq(test("C % 16 == 0"), CLEAVE_FALSE);
  ck_assert_int_eq(test("C % 8 == 0"), CLEAVE_TRUE);
  ck_assert_int_eq(test("C != H and C ~= 23"), CLEAVE_TRUE);
  ck_assert_int_eq(test("C < 24"), CLEAVE_FALSE);
  ck_assert_int_eq(test("C <= 24 and C >= 24 and C > H"), CLEAVE_TRUE);
  ck_assert_int_eq(test("H - C < 0"), CLEAVE_TRUE);
  ck_assert_int_eq(test("T == T"), CLEAVE_TRUE);
  ck_assert_int_eq(test("T == N"), CLEAVE_UNKNOWN);
  ck_assert_int_eq(test("T < T + 1"), CLEAVE_TRUE);
  ck_assert_int_eq(test("T + 1 <= T"), CLEAVE_FALSE);
  ck_assert_int_eq(test("T == 16"), CLEAVE_UNKNOWN);
  ck_assert_int_eq(test("2*T % 2 == 0"), CLEAVE_TRUE);
  ck_assert_int_eq(test("H/2 == 3"), CLEAVE_UNKNOWN);
}

UNIT_TEST(what_is_unknown_counts_only_where_it_decides) {
  ck_assert_int_eq(test("unbound == 1 or C == 24"), CLEAVE_TRUE);
  ck_assert_int_eq(test("C == 24 or unbound == 1"), CLEAVE_TRUE);
  ck_assert_int_eq(test("unbound == 1 and C == 23"), CLEAVE_FALSE);
  ck_assert_int_eq(test("unbound == 1 and C == 24"), CLEAVE_UNKNOWN);
  ck_assert_int_eq(test("unbound == 1 or C == 23"), CLEAVE_UNKNOWN);
  ck_assert_int_eq(test("not (unbound == 1)"), CLEAVE_UNKNOWN);
  ck_assert_int_eq(test("unbound == unbound"), CLEAVE_UNKNOWN);
}

UNIT_TEST(and_binds_more_than_or_and_not_more_than_both) {
  ck_assert_int_eq(test("C == 24 or C == 1 and H == 1"), CLEAVE_TRUE);
  ck_assert_int_eq(test("(C == 24 or C == 1) and H == 1"), CLEAVE_FALSE);
  ck_assert_int_eq(test("not C == 1 and H == 7"), CLEAVE_TRUE);
  ck_assert_int_eq(test("H == 7 and not not (C == 24)"), CLEAVE_TRUE);
  ck_assert_int_eq(test("not (C == 24 or H == 7)"), CLEAVE_FALSE);
}

UNIT_TEST(mistakes_are_named_with_their_column) {
  ck_assert_str_eq(mistake("C %", CLEAVE_EXPRESSION_SIZE), "'C %': column 4: expected a size, found the end");
  ck_assert_str_eq(mistake("", CLEAVE_EXPRESSION_SIZE), "'': column 1: expected a size, found the end");
  ck_assert_str_eq(mistake("2C", CLEAVE_EXPRESSION_SIZE),
                   "'2C': column 2: expected an operator or the end, found 'C'");
  ck_assert_str_eq(mistake("(C+1", CLEAVE_EXPRESSION_SIZE), "'(C+1': column 5: expected ')', found the end");
  ck_assert_str_eq(mistake("C = 1", CLEAVE_EXPRESSION_CONDITION),
                   "'C = 1': column 3: expected an operator or the end, found '='");
  ck_assert_str_eq(mistake("C", CLEAVE_EXPRESSION_CONDITION),
                   "'C': column 1: expected a condition, found a size");
  ck_assert_str_eq(mistake("C == 1", CLEAVE_EXPRESSION_SIZE),
                   "'C == 1': column 1: expected a size, found a condition");
  ck_assert_str_eq(mistake("C == 1 and H", CLEAVE_EXPRESSION_CONDITION),
                   "'C == 1 and H': column 12: expected a condition, found a size");
  ck_assert_str_eq(mistake("(C == 1) + 1", CLEAVE_EXPRESSION_SIZE),
                   "'(C == 1) + 1': column 1: expected a size, found a condition");
  ck_assert_str_eq(mistake("-(C == 1)", CLEAVE_EXPRESSION_SIZE),
                   "'-(C == 1)': column 1: expected a size, found a condition");
  ck_assert_str_eq(mistake("not C", CLEAVE_EXPRESSION_CONDITION),
                   "'not C': column 1: expected a condition, found a size");
  ck_assert_str_eq(mistake("1 < C < 9", CLEAVE_EXPRESSION_CONDITION),
                   "'1 < C < 9': column 7: comparisons do not chain (write a < b and b < c)");
  ck_assert_str_eq(mistake("99999999999999999999", CLEAVE_EXPRESSION_SIZE),
                   "'99999999999999999999': column 1: the number is too large");
}

UNIT_TEST(depth_and_length_are_bounded) {
  char text[4096];
  memset(text, '(', 40);
  (void)snprintf(text + 40, 60, "C");
  ck_assert_ptr_nonnull(strstr(mistake(text, CLEAVE_EXPRESSION_SIZE), "the expression is too deep"));
  size_t length = 0;
  for (int k = 0; k < 200; k++) {
    length += (size_t)snprintf(text + length, sizeof text - length, "C+");
  }
  (void)snprintf(text + length, sizeof text - length, "C");
  ck_assert_ptr_nonnull(strstr(mistake(text, CLEAVE_EXPRESSION_SIZE), "the expression is too long"));
  length = 0;
  for (int k = 0; k < 17; k++) {
    length += (size_t)snprintf(text + length, sizeof text - length, "%ss%d", k == 0 ? "" : "+", k);
  }
  ck_assert_ptr_nonnull(strstr(mistake(text, CLEAVE_EXPRESSION_SIZE), "too many symbols"));
}

UNIT_SUITE("expression")
