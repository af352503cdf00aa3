// SPDX-License-Identifier: Apache-2.0
// A run allocates nothing: neither through cleave's allocator nor behind its back. The second is counted by
// taking malloc's place in this program, where there is no sanitizer that has it already.
#include <stdatomic.h>

#include "plan_case.h"
#include "session_case.h"
#include "unit.h"

#define NONE CLEAVE_VALUE_NONE

static atomic_long allocations;

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTS_MALLOC 1
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
  atomic_fetch_add(&allocations, 1);
  return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
  atomic_fetch_add(&allocations, 1);
  return __libc_calloc(count, size);
}
void *realloc(void *memory, size_t size) {
  atomic_fetch_add(&allocations, 1);
  return __libc_realloc(memory, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
  atomic_fetch_add(&allocations, 1);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void **out_memory, size_t alignment, size_t size) {
  atomic_fetch_add(&allocations, 1);
  *out_memory = __libc_memalign(alignment, size);
  return *out_memory == NULL ? 12 : 0;
}
#else
#define COUNTS_MALLOC 0
#endif

/* Runs a few times, then counts what five more runs allocate. */
static long count_allocations(session_case_t *c) {
  for (int k = 0; k < 3; k++) {
    session_case_run(c);
  }
  (void)cleave_memory_fail_after(-1);
  long before = atomic_load(&allocations);
  for (int k = 0; k < 5; k++) {
    if (cleave_session_run(c->session, NULL) != CLEAVE_OK) {
      return -1;
    }
  }
  long after = atomic_load(&allocations);
  ck_assert_int_eq(cleave_memory_fail_after(-1), 0);
  return after - before;
}

/* Convolution, normalisation, pooling, product, softmax: what networks are made of. */
static session_case_t network(void) {
  session_case_t c = session_case_create();
  float weights[16 * 16 * 9];
  for (int k = 0; k < 16 * 16 * 9; k++) {
    weights[k] = (float)(k % 7) * 0.01f;
  }
  const int64_t image[] = {1, 16, 32, 32};
  cleave_value_t x = session_case_input(&c, "x", CLEAVE_DTYPE_F32, 4, image);
  cleave_value_t w = session_case_floats(&c, "w", 4, (const int64_t[]){16, 16, 3, 3}, weights);
  cleave_value_t b = session_case_floats(&c, "b", 1, (const int64_t[]){16}, weights);
  cleave_value_t m = session_case_floats(&c, "m", 2, (const int64_t[]){16, 10}, weights);
  cleave_value_t conv = session_case_node(&c, "Conv", "conv", x, w, b);
  cleave_value_t relu = session_case_node(&c, "Relu", "relu", conv, NONE, NONE);
  cleave_value_t again = session_case_node(&c, "Add", "again", relu, conv, NONE);
  cleave_value_t pool = session_case_node(&c, "GlobalAveragePool", "pool", again, NONE, NONE);
  cleave_value_t flat = session_case_node(&c, "Flatten", "flat", pool, NONE, NONE);
  cleave_value_t product = session_case_node(&c, "MatMul", "product", flat, m, NONE);
  session_case_output(&c, session_case_node(&c, "Softmax", "soft", product, NONE, NONE));
  session_case_infer(&c);
  float *pixels = calloc(16 * 32 * 32, sizeof *pixels);
  ck_assert_ptr_nonnull(pixels);
  session_case_feed(&c, 4, image, pixels);
  free(pixels);
  return c;
}

UNIT_TEST(counting_counts) {
  long before = atomic_load(&allocations);
  void *volatile memory = malloc(100);
  free(memory);
  ck_assert_int_eq(atomic_load(&allocations) - before, COUNTS_MALLOC);
}

UNIT_TEST(a_run_on_cpu_allocates_nothing) {
  session_case_t c = network();
  cleave_session_options_t options = {.size = sizeof options, .threads = 1};
  session_case_compile(&c, &options);
  ck_assert_int_eq(count_allocations(&c), 0);
  session_case_deinit(&c);
}

/* OpenBLAS makes a queue in every product on several threads; count_allocations sees that nothing of ours
 * is there. */
UNIT_TEST(a_run_on_cpu_with_threads_allocates_nothing_of_ours) {
  session_case_t c = network();
  cleave_session_options_t options = {.size = sizeof options, .threads = 2};
  session_case_compile(&c, &options);
  ck_assert_int_le(count_allocations(&c), 5);
  session_case_deinit(&c);
}

#ifdef CLEAVE_TEST_ONEDNN
/* oneDNN 2.6 itself may allocate when a primitive executes (argument maps), so only cleave's own allocations
 * are asserted, in count_allocations. */
UNIT_TEST(a_run_on_onednn_allocates_nothing_of_ours) {
  session_case_t c = network();
  session_case_partition(&c, "Conv,Relu,Add,GlobalAveragePool,MatMul,Softmax,Flatten", "onednn");
  cleave_session_options_t options = {.size = sizeof options, .threads = 1};
  session_case_compile(&c, &options);
  (void)count_allocations(&c);
  session_case_deinit(&c);
}
#endif

UNIT_SUITE("session_steady")
