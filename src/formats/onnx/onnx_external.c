// SPDX-License-Identifier: Apache-2.0
/*
 * External data of tensors (ONNX "ExternalData"). What is opened always lies inside the folder of the model,
 * also after all symbolic links are resolved.
 */
#include <stdlib.h>
#include <string.h>

#include "formats/onnx/onnx_tensor.h"

void cleave_onnx_source_deinit(cleave_onnx_source_t *source) {
  for (size_t k = 0; k < source->data_files.count; k++) {
    cleave_free(source->data_files.items[k].location);
    cleave_file_release(source->data_files.items[k].file);
  }
  cleave_array_free(&source->data_files);
  free(source->folder); /* of realpath */
  source->folder = NULL;
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

static cleave_status_t find_folder(cleave_onnx_source_t *source, cleave_error_t *error) {
  if (source->folder != NULL) {
    return CLEAVE_OK;
  }
  size_t length = 0;
  const char *folder = cleave_path_folder(cleave_file_path(source->file), &length);
  char *copy = length > 0 ? cleave_copy_text(folder, length) : cleave_copy_text(".", 1);
  CLEAVE_TRY_MEMORY(copy, error);
  source->folder = realpath(copy, NULL);
  cleave_free(copy);
  return source->folder != NULL ? CLEAVE_OK
                                : cleave_error_set(error, CLEAVE_ERROR_IO,
                                                   "external data: cannot resolve the folder of the model");
}

static cleave_status_t open_below(cleave_onnx_source_t *source, const char *location,
                                  cleave_file_t **out_file, cleave_error_t *error) {
  CLEAVE_TRY(find_folder(source, error));
  cleave_text_t path = {0};
  cleave_text_format(&path, "%s/%s", source->folder, location);
  cleave_status_t status = cleave_text_check(&path, error);
  char *resolved = status == CLEAVE_OK ? realpath(path.data, NULL) : NULL;
  cleave_text_deinit(&path);
  CLEAVE_TRY(status);
  size_t folder_length = strlen(source->folder);
  bool at_root = folder_length == 1;
  if (resolved == NULL) {
    status = cleave_error_set(error, CLEAVE_ERROR_IO, "external data: cannot open '%s'", location);
  } else if (strncmp(resolved, source->folder, folder_length) != 0 ||
             (!at_root && resolved[folder_length] != '/')) {
    status = cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                              "external data: '%s' leads out of the model's folder", location);
  } else {
    status = cleave_file_open(resolved, out_file, error);
  }
  free(resolved);
  return status;
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
  cleave_status_t status = CLEAVE_OK;
  if (strlen(copy) != location.size || !cleave_path_stays_below(copy)) {
    status = cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                              "external data: location '%s' is not below the model's folder", copy);
  } else {
    status = open_below(source, copy, out_file, error);
  }
  CLEAVE_TRY_OR(status, cleave_free(copy));
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
                            "external data: the shape asks for %zu bytes, the length is %llu", bytes,
                            (unsigned long long)length);
  }
  CLEAVE_TRY(find_file(source, location->location, out_file, error));
  size_t size = cleave_file_size(*out_file);
  if (offset > size || bytes > size - offset) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                            "external data: '%.*s' has %zu bytes, expected %zu at offset %llu",
                            (int)(location->location.size > 128 ? 128 : location->location.size),
                            (const char *)location->location.data, size, bytes, (unsigned long long)offset);
  }
  *out_data = bytes > 0 ? cleave_file_data(*out_file) + offset : NULL;
  return CLEAVE_OK;
}
