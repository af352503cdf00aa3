// SPDX-License-Identifier: Apache-2.0
/*
 * The mirror library through its table, as the registry hands it out: what tests of its groups share. Calls
 * that must succeed fail the test with the library's message.
 */
#ifndef CLEAVE_TESTS_MIRROR_CASE_H
#define CLEAVE_TESTS_MIRROR_CASE_H

#include "backend/registry/registry.h"
#include "view_builder.h"

#define MIRROR_LIBRARY CLEAVE_BINARY_DIR "/accelerators/libmirror.so"

typedef struct mirror_case {
  const cleave_backend_t *backend;
  const cleave_backend_devices_t *devices;
  void *state;
  cleave_message_t message; /* of the last failure */
} mirror_case_t;

/* Loads it, with host memory refused. */
mirror_case_t mirror_case_open(void);

/* One setting; its status. */
cleave_status_t mirror_case_set(mirror_case_t *c, const char *key, const char *value);
/* The answer to a key; -1 where it is not a number. */
int64_t mirror_case_ask(mirror_case_t *c, const char *key);

/* Floats of one dimension; `device` CLEAVE_INDEX_NONE: in host memory, at `data`. */
typedef struct mirror_tensor {
  cleave_tensor_view_t view;
  int64_t dims[1];
} mirror_tensor_t;
void mirror_case_tensor(mirror_tensor_t *tensor, uint32_t device, int64_t count, const void *data);
/* In new memory of the device, with copies of `values`. */
void mirror_case_upload(mirror_case_t *c, mirror_tensor_t *tensor, uint32_t device, int64_t count,
                        const float *values);
void mirror_case_download(mirror_case_t *c, const mirror_tensor_t *tensor, float *values);
/* The tensor on the device holds exactly these. */
void mirror_case_expect(mirror_case_t *c, const mirror_tensor_t *tensor, const float *values);

/* y = Relu(x + w), w a constant {1, 1, ...} of `count` floats, compiled for the device. */
void *mirror_case_program(mirror_case_t *c, uint32_t device, int64_t count);
/* The view of that region; it lives until the next call. */
const cleave_region_view_t *mirror_case_region(int64_t count);

/* Arguments of a run from one tensor to another. */
cleave_run_args_t mirror_case_args(const mirror_tensor_t *from, mirror_tensor_t *to);

/* The status and a part of the message of the last call. */
void mirror_case_refused(const mirror_case_t *c, cleave_status_t status, cleave_status_t expected,
                         const char *part);

/* The call, which passes &c.message, succeeds. */
#define mirror_ok(c, call) ck_assert_msg((call) == CLEAVE_OK, "%s: %s", #call, (c).message.text)

#endif /* CLEAVE_TESTS_MIRROR_CASE_H */
