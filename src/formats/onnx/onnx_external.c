// SPDX-License-Identifier: Apache-2.0
/*
 * External data of tensors (ONNX "ExternalData"). What is opened always lies inside the folder of the model,
 * or the one that a link to the model leads to, also after all symbolic links are resolved.
 */
#include <string.h>

#include "formats/onnx/onnx_tensor.h"

void cleave_onnx_source_deinit(cleave_onnx_source_t *source) {
  for (size_t k = 0; k < source->data_files.count; k++) {
    cleave_free(source->data_files.items[k].location);
    cleave_file_release(source->data_files.items[k].file);
  }
  cleave_array_free(&source->data_files);
}

static cleave_status_t parse_number(cleave_bytes_t text, const char *what, uint64_t *out_value,
                                    cleave_error_t *error) {
  uint64_t value = 0;
  bool good = text.size > 0;
  for (size_t k = 0; k < text.size && good; k++) {
    good = text.data[k] >= '0' && text.data[k] <= '9' && !__builtin_mul_overflow(value, 10, &value) &&
           !__builtin_add_overflow(value, (uint64_t)(text.data[k] - '0'), &value);
  }
  if (!good) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "external data: %s is '%.*s', expected a number",
                            what, (int)(text.size > 64 ? 64 : text.size), (const char *)text.data);
  }
  *out_value = value;
  return CLEAVE_OK;
}

static cleave_status_t find_file(cleave_onnx_source_t *source, cleave_bytes_t location,
                                 cleave_file_t **out_file, cleave_error_t *error) {
  for (size_t k = source->data_files.count; k-- > 0;) {
    const cleave_onnx_data_file_t *known = &source->data_files.items[k];
    if (strlen(known->location) == location.size &&
        memcmp(known->location, location.data, location.size) == 0) {
      *out_file = known->file;
      return CLEAVE_OK;
    }
  }
  CLEAVE_TRY(cleave_array_reserve(&source->data_files, 1, error));
  char *copy = cleave_copy_text((const char *)location.data, location.size);
  CLEAVE_TRY_MEMORY(copy, error);
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  cleave_status_t status =
      strlen(copy) == location.size
          ? cleave_file_open_beside(cleave_file_path(source->file), copy, out_file, &reason)
          : cleave_error_set(&reason, CLEAVE_ERROR_FORMAT, "location '%s' has a zero byte in it", copy);
  if (status != CLEAVE_OK) {
    cleave_free(copy);
    return cleave_error_set(error, status, "external data: %s", reason.message);
  }
  cleave_onnx_data_file_t entry = {.location = copy, .file = *out_file};
  cleave_array_push_reserved(&source->data_files, entry);
  return CLEAVE_OK;
}

cleave_status_t cleave_onnx_external_find(cleave_onnx_source_t *source,
                                          const cleave_onnx_location_t *location, size_t bytes,
                                          const unsigned char **out_data, cleave_file_t **out_file,
                                          cleave_error_t *error) {
  if (source->file == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                            "external data: the model was not read from a file");
  }
  if (location->location.size == 0) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "external data: no location is given");
  }
  uint64_t offset = 0;
  uint64_t length = bytes;
  if (location->offset.size > 0) {
    CLEAVE_TRY(parse_number(location->offset, "offset", &offset, error));
  }
  if (location->length.size > 0) {
    CLEAVE_TRY(parse_number(location->length, "length", &length, error));
  }
  if (length != bytes) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                            "external data: the shape asks for %zu byte%s, the length is %llu", bytes,
                            CLEAVE_PLURAL(bytes), (unsigned long long)length);
  }
  CLEAVE_TRY(find_file(source, location->location, out_file, error));
  size_t size = cleave_file_size(*out_file);
  if (offset > size || bytes > size - offset) {
    return cleave_error_set(
        error, CLEAVE_ERROR_FORMAT, "external data: '%.*s' has %zu byte%s, expected %zu at offset %llu",
        (int)(location->location.size > 128 ? 128 : location->location.size),
        (const char *)location->location.data, size, CLEAVE_PLURAL(size), bytes, (unsigned long long)offset);
  }
  *out_data = bytes > 0 ? cleave_file_data(*out_file) + offset : NULL;
  return CLEAVE_OK;
}
