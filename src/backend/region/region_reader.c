// SPDX-License-Identifier: Apache-2.0
// What the readers of regions share: names, and tensors that the region owns.
#include "backend/region/region_reader.h"

#include <string.h>

enum { MAX_NAME = 1 << 16 };

cleave_status_t cleave_region_reader_get_name(cleave_json_reader_t *reader, const json_t *object,
                                              const char *key, bool is_needed, const char **out_name) {
  const json_t *json = json_object_get(object, key);
  size_t length = 0;
  *out_name = "";
  if (json == NULL) {
    return is_needed ? cleave_reader_fail(reader, "member '%s' is missing", key) : CLEAVE_OK;
  }
  size_t before = cleave_reader_enter(reader, key, CLEAVE_INDEX_NONE);
  CLEAVE_TRY(cleave_reader_read_bytes(reader, json, out_name, &length));
  if (length > MAX_NAME || memchr(*out_name, '\0', length) != NULL) {
    return cleave_reader_fail(reader, "expected a name of at most %d bytes, none of them zero", MAX_NAME);
  }
  cleave_reader_leave(reader, before);
  return CLEAVE_OK;
}

cleave_status_t cleave_region_reader_keep_take(cleave_region_reader_t *self, cleave_tensor_t *tensor) {
  cleave_status_t status = cleave_array_reserve(&self->region->others, 1, self->base.error);
  if (status != CLEAVE_OK) {
    cleave_tensor_release(tensor);
    return status;
  }
  cleave_array_push_reserved(&self->region->others, tensor);
  return CLEAVE_OK;
}
