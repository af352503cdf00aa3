// SPDX-License-Identifier: Apache-2.0
// Places that lie outside of the data, which only a run knows: a GPU reads and writes nothing there. What it
// makes of them is in backends/cuda/README.md; cpu refuses them.
#include "gpu_case.h"

static const int64_t x_dims[2] = {3, 2};
static const float x_data[6] = {1, 2, 3, 4, 5, 6};

/* A node `op` of x and two more inputs, a tensor of places and perhaps updates, compared with `expected`. */
static void expect(const char *op, int32_t rank, const int64_t *dims, const int64_t *places,
                   int32_t update_rank, const int64_t *update_dims, const float *updates,
                   const float *expected) {
  const cleave_session_options_t options = {.size = sizeof options, .threads = 1};
  gpu_case_stand_ins(NULL);
  session_case_t c = session_case_create();
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 2, x_dims);
  cleave_value_t at = session_case_input(&c, "at", CLEAVE_DTYPE_I64, rank, dims);
  cleave_value_t u = CLEAVE_VALUE_NONE;
  if (updates != NULL) {
    u = session_case_input(&c, "u", CLEAVE_DTYPE_F32, update_rank, update_dims);
  }
  session_case_output(&c, session_case_node(&c, op, "y", x, at, u));
  session_case_infer(&c);
  session_case_partition(&c, op, "cuda");
  session_case_feed(&c, 2, x_dims, x_data);
  session_case_feed_ints(&c, rank, dims, places);
  if (updates != NULL) {
    session_case_feed(&c, update_rank, update_dims, updates);
  }
  session_case_compile(&c, &options);
  ck_assert_uint_eq(cleave_session_note_count(c.session), 0);
  session_case_run(&c);
  cleave_tensor_view_t view = session_case_view(&c, 0);
  for (int64_t k = 0; k < cleave_view_element_count(&view); k++) {
    ck_assert_float_eq(session_case_value(&c, 0, k), expected[k]);
  }
  session_case_deinit(&c);
}

UNIT_TEST(tuples_that_lie_outside_give_zeros) {
  static const int64_t dims[2] = {5, 2};
  static const int64_t places[10] = {2, 1, 3, 0, -3, -2, 0, -3, 0, INT64_MIN};
  static const float expected[5] = {6, 0, 1, 0, 0};
  expect("GatherND", 2, dims, places, 0, NULL, NULL, expected);
}

UNIT_TEST(rows_that_lie_outside_give_zeros) {
  static const int64_t dims[2] = {4, 1};
  static const int64_t places[4] = {INT64_MAX, 1, -1, -4};
  static const float expected[8] = {0, 0, 3, 4, 5, 6, 0, 0};
  expect("GatherND", 2, dims, places, 0, NULL, NULL, expected);
}

UNIT_TEST(rows_are_scattered_to_places_inside_alone) {
  static const int64_t dims[2] = {5, 1};
  static const int64_t update_dims[2] = {5, 2};
  static const int64_t places[5] = {3, 1, -4, -2, INT64_C(1) << 32};
  static const float updates[10] = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  static const float expected[6] = {1, 2, 16, 17, 5, 6};
  expect("ScatterND", 2, dims, places, 2, update_dims, updates, expected);
}

UNIT_TEST(elements_are_scattered_to_places_inside_alone) {
  static const int64_t dims[2] = {4, 2};
  static const int64_t places[8] = {0, 3, 0, -1, -4, 1, INT64_MAX, INT64_MIN};
  static const float updates[8] = {10, 11, 12, 13, 14, 15, 16, 17};
  static const float expected[6] = {12, 2, 3, 15, 5, 13};
  expect("ScatterElements", 2, dims, places, 2, dims, updates, expected);
}

/* Of batch 0 nothing is reversed, of batch 1 all three elements are. */
UNIT_TEST(lengths_outside_of_a_sequence_are_none_and_all) {
  static const int64_t dims[1] = {2};
  static const int64_t lengths[2] = {-(INT64_C(1) << 32) + 2, 7};
  static const float expected[6] = {1, 6, 3, 4, 5, 2};
  expect("ReverseSequence", 1, dims, lengths, 0, NULL, NULL, expected);
}

/* The last of many updates for one place holds, whichever block of the grid has it. */
UNIT_TEST(the_last_update_of_a_place_holds) {
  enum { COUNT = 600 };
  static const int64_t dims[2] = {COUNT, 1};
  static const int64_t update_dims[2] = {COUNT, 2};
  static int64_t places[COUNT];
  static float updates[2 * COUNT];
  for (int k = 0; k < COUNT; k++) {
    places[k] = k % 3 - 3;
    updates[2 * k] = (float)k;
    updates[2 * k + 1] = (float)-k;
  }
  static const float expected[6] = {597, -597, 598, -598, 599, -599};
  expect("ScatterND", 2, dims, places, 2, update_dims, updates, expected);
}

UNIT_SUITE("places outside of the data on a GPU")
