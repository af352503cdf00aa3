// SPDX-License-Identifier: Apache-2.0
/*
 * The oneDNN backend for tests.
 */
#ifndef CLEAVE_TESTS_ONEDNN_CASE_H
#define CLEAVE_TESTS_ONEDNN_CASE_H

#include "fusion_case.h"
#include "unit.h"

const cleave_backend_t *cleave_backend_onednn(uint32_t abi_major, uint32_t abi_minor,
                                              cleave_message_t *message);

__attribute__((unused)) static op_backend_t onednn_create(void) {
  op_backend_t backend = {.backend = NULL, .state = NULL};
  cleave_message_t message = {.text = ""};
  backend.backend = cleave_backend_onednn(CLEAVE_BACKEND_ABI_MAJOR, CLEAVE_BACKEND_ABI_MINOR, &message);
  ck_assert_msg(backend.backend != NULL, "%s", message.text);
  ck_assert_int_eq(backend.backend->initialise(view_builder_host(), &backend.state, &message), CLEAVE_OK);
  return backend;
}

/* The version of oneDNN, its first number. */
__attribute__((unused)) static int onednn_major(void) {
  cleave_message_t message = {.text = ""};
  return atoi(cleave_backend_onednn(CLEAVE_BACKEND_ABI_MAJOR, CLEAVE_BACKEND_ABI_MINOR, &message)->version);
}

/* A fusion computes what its nodes compute one by one on the reference backend. */
__attribute__((unused)) static void onednn_case(const char *text, double tolerance) {
  op_backend_t onednn = onednn_create();
  fusion_case(&onednn, text, tolerance);
  op_backend_destroy(&onednn);
}

__attribute__((unused)) static void onednn_refuses(const char *text, const char *reason) {
  op_backend_t onednn = onednn_create();
  fusion_case_refused(&onednn, text, reason);
  op_backend_destroy(&onednn);
}

/* Labels of the steps that a region becomes for so many threads, each on a line of its own. */
__attribute__((unused)) static void onednn_labels_for(const char *text, int32_t threads, char *labels,
                                                      size_t size) {
  op_backend_t onednn = onednn_create();
  fusion_region_t *region = fusion_region_create(text, true);
  cleave_compile_options_t options = {.size = sizeof(options), .threads = threads, .profile = true};
  cleave_message_t message = {.text = ""};
  void *program = NULL;
  const cleave_step_time_t *steps = NULL;
  cleave_status_t status =
      onednn.backend->compile(onednn.state, fusion_region_view(region), &options, &program, &message);
  ck_assert_msg(status == CLEAVE_OK, "%s", message.text);
  uint32_t count = onednn.backend->profile(program, &steps);
  size_t used = 0;
  labels[0] = '\0';
  for (uint32_t k = 0; k < count && used < size; k++) {
    used += (size_t)snprintf(labels + used, size - used, "%s\n", steps[k].label);
  }
  onednn.backend->unload(program);
  fusion_region_destroy(region);
  op_backend_destroy(&onednn);
}

/* For one. */
__attribute__((unused)) static void onednn_labels(const char *text, char *labels, size_t size) {
  onednn_labels_for(text, 1, labels, size);
}

/* How often a text, such as the labels of a program, has a part. */
__attribute__((unused)) static uint32_t onednn_occurrences(const char *text, const char *part) {
  uint32_t count = 0;
  for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
    count++;
  }
  return count;
}

/* What a program is saved to. */
typedef struct onednn_bytes {
  unsigned char *data; /* aligned */
  size_t count;
} onednn_bytes_t;

__attribute__((unused)) static cleave_status_t onednn_bytes_append(void *context, const void *data,
                                                                   size_t count) {
  onednn_bytes_t *bytes = context;
  unsigned char *larger = aligned_alloc(64, (bytes->count + count) / 64 * 64 + 64);
  ck_assert_ptr_nonnull(larger);
  if (bytes->count > 0) {
    memcpy(larger, bytes->data, bytes->count);
  }
  if (count > 0) {
    memcpy(larger + bytes->count, data, count);
  }
  free(bytes->data);
  bytes->data = larger;
  bytes->count += count;
  return CLEAVE_OK;
}

#endif /* CLEAVE_TESTS_ONEDNN_CASE_H */
