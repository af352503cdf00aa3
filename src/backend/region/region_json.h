// SPDX-License-Identifier: Apache-2.0
/*
 * Regions as JSON, format "cleave-region" version 1 (described in backends/README.md): all that a backend
 * sees of a region, to look at, to send to whoever writes the backend, and to read back into the same view or
 * a model. Numbers come back bit by bit, names whatever bytes they have, and the same region gives the same
 * bytes.
 */
#ifndef CLEAVE_BACKEND_REGION_REGION_JSON_H
#define CLEAVE_BACKEND_REGION_REGION_JSON_H

#include "graph/graph.h"
#include "partition/plan/plan.h"

/* Constants of at most so many bytes are in the text always: shapes, axes, scalars are structure. */
#define CLEAVE_REGION_SMALL_CONSTANT 1024

typedef struct cleave_region_json_options {
  const char *backend; /* that the plan gives the region to; NULL: not said */
  /* Whose codes the open dimensions are, to write them as "N" or "T + 1"; NULL: "s0", "s1", ... */
  const cleave_dims_t *dims;
  cleave_region_constants_t constants;
  const char *path; /* of the file to be, for CONSTANTS_FILES: those for constants are called after it */
  bool versions;    /* write the versions of constants, which are other ones in every process */
} cleave_region_json_options_t;

/* Appends the region. `options` may be NULL. CLEAVE_ERROR_UNSUPPORTED: a constant is in memory of a device.
 */
CLEAVE_STATUS cleave_region_json_print(const cleave_region_view_t *region,
                                       const cleave_region_json_options_t *options, cleave_text_t *text,
                                       cleave_error_t *error);

/* A region that was read: a view with all it points to. */
typedef struct cleave_region_file cleave_region_file_t;

/* Reads a region out of text from anywhere. `place` stands for the file in messages: CLEAVE_ERROR_FORMAT with
 * the line, or the member, what was expected and what was found. Constants in files are read from `folder`
 * alone (with its slash; "" is the current one); NULL: such a region is refused. The view has the hash of the
 * text, which was compared with what the region is. */
CLEAVE_STATUS cleave_region_json_read(const char *place, const char *text, size_t length, const char *folder,
                                      cleave_region_file_t **out_region, cleave_error_t *error);
CLEAVE_STATUS cleave_region_json_open(const char *path, cleave_region_file_t **out_region,
                                      cleave_error_t *error);
void cleave_region_file_destroy(cleave_region_file_t *region);

/* region_host.c: what libraries are offered, for cleave_host_t. */
cleave_status_t cleave_host_region_to_json(const cleave_region_view_t *region, bool with_constants,
                                           char **out_text, size_t *out_length, cleave_message_t *message);
void cleave_host_free_json(char *text);
cleave_status_t cleave_host_region_from_json(const char *text, size_t length,
                                             const cleave_region_view_t **out_region,
                                             cleave_message_t *message);
void cleave_host_free_region(const cleave_region_view_t *region);

#endif /* CLEAVE_BACKEND_REGION_REGION_JSON_H */
