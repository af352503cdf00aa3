// SPDX-License-Identifier: Apache-2.0
/* A region that was read, from inside: for its readers, and for what makes graphs and plans of it. */
#ifndef CLEAVE_BACKEND_REGION_REGION_FILE_H
#define CLEAVE_BACKEND_REGION_REGION_FILE_H

#include "backend/region/region_json.h"
#include "base/strings.h"
#include "json/json_attribute.h"

struct cleave_region_file {
  /* First, because libraries hold a region by its view. Constants that were left out have no data, and are
   * not inputs. Versions are those of the text, or of this process if it has none. */
  cleave_region_view_t view;
  cleave_arena_t arena; /* what the view points to, but for tensors */
  const char *place;
  const char *backend; /* NULL: not said */
  cleave_value_view_t *values;
  cleave_node_view_t *nodes;
  cleave_fusion_view_t *fusions;
  cleave_attribute_list_t *lists; /* of the fusions */
  double *flops;
  bool *is_constant;         /* per value: with data, or left out */
  cleave_tensor_t **tensors; /* per value: dense data, retained; NULL: none */
  size_t tensor_count;
  CLEAVE_ARRAY(cleave_tensor_t *) others; /* retained: of attributes and sparse constants */
  cleave_strings_t symbols;               /* open dimension -1 - k is called text number k */
};

/* Checks what readers of members take for granted: that values are made once and before they are read, that
 * fusions are disjoint, that inputs and outputs are what they are called, and that the hash is the one of the
 * text. Completes the values by their producers. */
CLEAVE_STATUS cleave_region_file_check(cleave_region_file_t *region, uint64_t hash, cleave_error_t *error);

/* ---- region_reader ---- */

/* Inside the reader of regions: region_read.c, and region_constants.c for the data of values. */
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
CLEAVE_STATUS cleave_region_reader_keep_take(cleave_region_reader_t *self, cleave_tensor_t *tensor);

/* The data of a value, whose type has been read, if it has some: in one of three members, of which there
 * is at most one. */
CLEAVE_STATUS cleave_region_reader_get_constant(cleave_region_reader_t *self, const json_t *json,
                                                cleave_value_view_t *value);

#endif /* CLEAVE_BACKEND_REGION_REGION_FILE_H */
