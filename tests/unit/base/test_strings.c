// SPDX-License-Identifier: Apache-2.0
/* Interned strings, and copies of sets of them. */
#include "base/strings.h"
#include "unit.h"

UNIT_TEST(equal_texts_have_one_id) {
  cleave_strings_t strings = {0};
  cleave_string_t first[3000];
  char name[32];
  for (int k = 0; k < 3000; k++) {
    (void)snprintf(name, sizeof name, "value_%d", k);
    unit_ok(cleave_strings_add(&strings, name, strlen(name), &first[k], e));
  }
  cleave_string_t again;
  unit_ok(cleave_strings_add(&strings, "value_17", 8, &again, e));
  ck_assert_uint_eq(again.index, first[17].index);
  ck_assert_str_eq(cleave_strings_text(&strings, first[2999]), "value_2999");
  ck_assert_uint_eq(cleave_strings_find(&strings, "value_3000", 10).index, UINT32_MAX);
  unit_ok(cleave_strings_add(&strings, "", 0, &again, e));
  ck_assert_uint_eq(again.index, 0);
  unit_ok(cleave_strings_add(&strings, "a\0b", 3, &again, e));
  ck_assert_str_eq(cleave_strings_text(&strings, again), "a");
  cleave_strings_deinit(&strings);
}

static cleave_string_t add_text(cleave_strings_t *strings, const char *text) {
  cleave_string_t id = CLEAVE_STRING_NONE;
  unit_ok(cleave_strings_add(strings, text, strlen(text), &id, e));
  return id;
}

UNIT_TEST(copies_of_a_set_share_its_texts_and_outlive_it) {
  cleave_strings_t first = {0};
  cleave_strings_t second = {0};
  cleave_strings_t third = {0};
  unit_ok(cleave_strings_copy(&first, &second, e));
  ck_assert_uint_eq(second.count, 0);
  cleave_string_t a = add_text(&first, "a");
  unit_ok(cleave_strings_copy(&first, &second, e));
  ck_assert_ptr_eq(cleave_strings_text(&second, a), cleave_strings_text(&first, a));
  // What is added to either is not in the other one.
  cleave_string_t b = add_text(&second, "b");
  cleave_string_t c = add_text(&first, "c");
  ck_assert_uint_eq(b.index, c.index);
  ck_assert_uint_eq(add_text(&second, "a").index, a.index);
  ck_assert_uint_eq(cleave_strings_find(&first, "b", 1).index, UINT32_MAX);
  unit_ok(cleave_strings_copy(&second, &third, e));
  cleave_strings_deinit(&first);
  cleave_strings_deinit(&second);
  ck_assert_str_eq(cleave_strings_text(&third, a), "a");
  ck_assert_str_eq(cleave_strings_text(&third, b), "b");
  ck_assert_uint_eq(add_text(&third, "d").index, b.index + 1);
  cleave_strings_deinit(&third);
}

UNIT_SUITE("strings")
