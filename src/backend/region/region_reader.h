// SPDX-License-Identifier: Apache-2.0
/*
 * Inside the reader of regions: region_read.c, and region_constants.c for the data of values.
 */
#ifndef CLEAVE_BACKEND_REGION_REGION_READER_H
#define CLEAVE_BACKEND_REGION_REGION_READER_H

#include "backend/region/region_file.h"
#include "json/json_attribute.h"

typedef struct cleave_region_reader {
  cleave_json_reader_t base; /* first: items of lists are read through it */
  cleave_region_file_t *region;
  const char *folder; /* of constants in files; NULL: there may be none */
  uint32_t index;     /* of the item at work */
} cleave_region_reader_t;

/* Zeroed, in the region's arena; one more than `count`, so that it is not NULL for none. */
static inline void *cleave_region_reader_allocate(cleave_json_reader_t *reader, size_t count, size_t size) {
  return cleave_arena_allocate(reader->arena, count + 1, size);
}

/* The region owns the tensor from now on, also if this fails. */
CLEAVE_MUST_USE cleave_status_t cleave_region_reader_keep_take(cleave_region_reader_t *self,
                                                               cleave_tensor_t *tensor);

/* The data of a value, whose type has been read, if it has some: in one of three members, of which there
 * is at most one. */
CLEAVE_MUST_USE cleave_status_t cleave_region_reader_get_constant(cleave_region_reader_t *self,
                                                                  const json_t *json,
                                                                  cleave_value_view_t *value);

#endif /* CLEAVE_BACKEND_REGION_REGION_READER_H */
