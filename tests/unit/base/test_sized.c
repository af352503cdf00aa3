// SPDX-License-Identifier: Apache-2.0
// Structs that grow, between callers and libraries of different age.
#include "base/sized.h"
#include "unit.h"

/* As it is now: `middle` ended its first version, `last` came later. */
typedef struct grown {
  size_t size;
  int64_t first;
  int64_t middle;
  int64_t last;
} grown_t;

#define CLEAVE_FIRST_grown_t middle

/* A caller of before, and of after. */
typedef struct older {
  size_t size;
  int64_t first;
  int64_t middle;
} older_t;

typedef struct newer {
  grown_t known;
  int64_t unknown;
} newer_t;

UNIT_TEST(fields_that_a_caller_does_not_have_keep_their_defaults) {
  const older_t older = {.size = sizeof older, .first = 1, .middle = 2};
  grown_t known = {.size = sizeof known, .first = 7, .last = 9};
  unit_ok(CLEAVE_SIZED_IN(grown_t, (const grown_t *)(const void *)&older, &known, e));
  ck_assert_int_eq(known.first, 1);
  ck_assert_int_eq(known.middle, 2);
  ck_assert_int_eq(known.last, 9);
  ck_assert_uint_eq(known.size, sizeof known);
  unit_ok(CLEAVE_SIZED_IN(grown_t, NULL, &known, e));
  ck_assert_int_eq(known.first, 1);
}

UNIT_TEST(fields_that_a_library_does_not_know_are_not_touched) {
  newer_t newer = {.known = {.size = sizeof newer, .first = 1, .middle = 2, .last = 3}, .unknown = 4};
  struct {
    grown_t known;
    int64_t guard;
  } taken = {.known = {.size = sizeof taken.known}, .guard = 5};
  unit_ok(CLEAVE_SIZED_IN(grown_t, &newer.known, &taken.known, e));
  ck_assert_int_eq(taken.known.last, 3);
  ck_assert_int_eq(taken.guard, 5);
  const grown_t found = {.first = 10, .middle = 20, .last = 30};
  CLEAVE_SIZED_OUT(grown_t, &found, &newer.known);
  ck_assert_int_eq(newer.known.last, 30);
  ck_assert_int_eq(newer.unknown, 4);
  ck_assert_uint_eq(newer.known.size, sizeof newer);
}

UNIT_TEST(nothing_is_written_behind_the_struct_of_a_caller) {
  const grown_t found = {.first = 10, .middle = 20, .last = 30};
  grown_t room = {.size = sizeof(older_t), .last = 4};
  CLEAVE_SIZED_OUT(grown_t, &found, &room);
  ck_assert_int_eq(room.middle, 20);
  ck_assert_int_eq(room.last, 4);
  ck_assert_uint_eq(room.size, sizeof(older_t));
  room = (grown_t){.size = 0, .first = 5};
  CLEAVE_SIZED_OUT(grown_t, &found, &room);
  ck_assert_int_eq(room.first, 5);
  CLEAVE_SIZED_OUT(grown_t, &found, NULL);
}

UNIT_TEST(a_size_below_the_first_version_is_refused) {
  grown_t given = {.size = sizeof(older_t)};
  grown_t known = {.size = sizeof known, .first = 7};
  unit_ok(CLEAVE_SIZED_CHECK(grown_t, &given, e));
  given.size--;
  unit_fails_with(CLEAVE_SIZED_CHECK(grown_t, &given, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "grown_t: expected a size of at least 24, found 23: set it to sizeof(grown_t)");
  given.size = 0;
  unit_fails_with(CLEAVE_SIZED_IN(grown_t, &given, &known, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "grown_t: expected a size of at least 24, found 0");
  ck_assert_int_eq(known.first, 7);
}

UNIT_TEST(a_list_that_is_counted_is_there) {
  int list[1] = {0};
  unit_ok(cleave_list_check("list", list, 1, e));
  unit_ok(cleave_list_check("list", NULL, 0, e));
  unit_fails_with(cleave_list_check("settings", NULL, 3, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "settings: expected a list of 3, found NULL");
}

UNIT_SUITE("structs that grow")
