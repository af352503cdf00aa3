// SPDX-License-Identifier: Apache-2.0
// Steps that raise the flag "invalid" because of what lies in their scratch memory, as oneDNN's do with AMX:
// results stay those of the fast program, from the second run on at the cost of clean memory. The functions
// of oneDNN below stand before the library's own: where a test wants it, every implementation says that it is
// one for AMX, and raises the flag if its scratch memory has a NaN in it. Each leaves one there.
#include "onednn_case.h"

#include <dlfcn.h>
#include <fenv.h>
#include <math.h>
#include <oneapi/dnnl/dnnl.h>

enum { ELEMENTS = 20 * 9 * 9 };

static int executed; /* primitives */
static int dirty;    /* of them: found a NaN in their scratch memory */
static bool claims_amx;

static void *real(const char *name) {
  void *function = dlsym(RTLD_NEXT, name);
  ck_assert_ptr_nonnull(function);
  return function;
}

/* The scratch memory among arguments, or NULL. */
static float *scratch_of(int count, const dnnl_exec_arg_t *arguments) {
  void *data = NULL;
  for (int k = 0; k < count; k++) {
    if (arguments[k].arg == DNNL_ARG_SCRATCHPAD) {
      ck_assert_int_eq(dnnl_memory_get_data_handle(arguments[k].memory, &data), dnnl_success);
    }
  }
  return data;
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                                     const dnnl_exec_arg_t *arguments) {
  dnnl_status_t (*execute)(const_dnnl_primitive_t, dnnl_stream_t, int, const dnnl_exec_arg_t *) = NULL;
  *(void **)&execute = real("dnnl_primitive_execute");
  float *scratch = scratch_of(count, arguments);
  bool raises = scratch != NULL && isnan(scratch[0]);
  dnnl_status_t status = execute(primitive, stream, count, arguments);
  executed++;
  if (raises) {
    dirty++;
  }
  if (raises && claims_amx) {
    (void)feraiseexcept(FE_INVALID);
  }
  if (scratch != NULL) {
    scratch[0] = NAN;
  }
  return status;
}

dnnl_status_t dnnl_primitive_desc_query(const_dnnl_primitive_desc_t description, dnnl_query_t what, int index,
                                        void *out) {
  dnnl_status_t (*query)(const_dnnl_primitive_desc_t, dnnl_query_t, int, void *) = NULL;
  *(void **)&query = real("dnnl_primitive_desc_query");
  if (claims_amx && what == dnnl_query_impl_info_str) {
    *(const char **)out = "jit:amx";
    return dnnl_success;
  }
  return query(description, what, index, out);
}

#define BLOCK                                                                                                \
  "x [1,20,9,9] = input\nw [24,20,3,3] = random\nb [24] = random\nv [20,24,3,3] = random\nc [20] = random\n" \
  "{\na [1,24,9,9] = Conv(x, w, b) pads=[1,1,1,1]\nra [1,24,9,9] = Relu(a)\n}\n"                             \
  "{\nd [1,20,9,9] = Conv(ra, v, c) pads=[1,1,1,1]\nrd [1,20,9,9] = Relu(d)\n}\n"

typedef struct two_programs {
  op_backend_t cpu;
  op_backend_t onednn;
  fusion_region_t *plain;
  fusion_region_t *region;
  view_program_t expected;
  view_program_t actual;
  float input[ELEMENTS];
} two_programs_t;

static void create(two_programs_t *two, bool with_amx, int32_t threads) {
  claims_amx = with_amx;
  two->cpu = op_backend_cpu();
  two->onednn = onednn_create();
  two->plain = fusion_region_create(BLOCK, false);
  two->region = fusion_region_create(BLOCK, true);
  fusion_region_compile(two->plain, &two->cpu, 1, &two->expected);
  fusion_region_compile(two->region, &two->onednn, threads, &two->actual);
  memcpy(two->input, fusion_region_input(two->region, 0), sizeof(two->input));
  view_program_input(&two->expected, 0, 4, (const int64_t[]){1, 20, 9, 9}, two->input);
  view_program_input(&two->actual, 0, 4, (const int64_t[]){1, 20, 9, 9}, two->input);
}

static void destroy(two_programs_t *two) {
  view_program_destroy(&two->expected);
  view_program_destroy(&two->actual);
  fusion_region_destroy(two->plain);
  fusion_region_destroy(two->region);
  op_backend_destroy(&two->cpu);
  op_backend_destroy(&two->onednn);
}

/* Runs both; they agree. The number of primitives that oneDNN executed. */
static int run_both(two_programs_t *two) {
  executed = 0;
  dirty = 0;
  ck_assert_int_eq(view_program_run(&two->expected), CLEAVE_OK);
  ck_assert_int_eq(view_program_run(&two->actual), CLEAVE_OK);
  const float *e = two->expected.outputs[0].data;
  const float *a = two->actual.outputs[0].data;
  for (int k = 0; k < ELEMENTS; k++) {
    ck_assert_msg(isnan(e[k]) ? isnan(a[k]) : fabsf(a[k] - e[k]) <= 1e-4F, "%d: expected %g, found %g", k,
                  (double)e[k], (double)a[k]);
  }
  return executed;
}

UNIT_TEST(dirty_scratch_memory_costs_one_run) {
  for (int32_t threads = 1; threads <= 2; threads++) {
    two_programs_t two;
    create(&two, true, threads);
    int first = run_both(&two);
    ck_assert_int_gt(dirty, 0);
    int later = run_both(&two);
    ck_assert_int_eq(dirty, 0);
    ck_assert_int_eq(first, 3 * later); /* as it is, step by step, with clean memory */
    ck_assert_int_eq(run_both(&two), later);
    destroy(&two);
  }
}

UNIT_TEST(a_nan_is_still_found_among_dirty_memory) {
  for (int32_t threads = 1; threads <= 2; threads++) {
    two_programs_t two;
    create(&two, true, threads);
    two.input[100] = NAN;
    (void)run_both(&two);
    ck_assert_int_gt(dirty, 0);
    two.input[100] = 1.0F;
    (void)run_both(&two);
    int later = run_both(&two);
    ck_assert_int_eq(dirty, 0);
    two.input[100] = NAN;
    ck_assert_int_gt(run_both(&two), later);
    two.input[100] = 1.0F;
    ck_assert_int_eq(run_both(&two), later);
    destroy(&two);
  }
}

UNIT_TEST(scratch_memory_of_other_implementations_stays_as_it_is) {
  two_programs_t two;
  create(&two, false, 2);
  int first = run_both(&two);
  ck_assert_int_gt(dirty, 0);
  ck_assert_int_gt(run_both(&two), 0);
  ck_assert_int_gt(dirty, 0);
  ck_assert_int_gt(first, 0);
  destroy(&two);
}

UNIT_SUITE("onednn_scratch")
