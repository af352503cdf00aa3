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
