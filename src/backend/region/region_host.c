// SPDX-License-Identifier: Apache-2.0
// Regions as text for accelerator libraries, with errors as their messages.
#include <stdio.h>

#include "backend/region/region_file.h"

static cleave_status_t tell(const cleave_error_t *error, cleave_status_t status, cleave_message_t *message) {
  if (status != CLEAVE_OK && message != NULL) {
    (void)snprintf(message->text, sizeof message->text, "%.255s", error->message);
  }
  return status;
}

cleave_status_t cleave_host_region_to_json(const cleave_region_view_t *region, bool with_constants,
                                           char **out_text, size_t *out_length, cleave_message_t *message) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_text_t text = {0};
  cleave_region_json_options_t options = {
      .constants = with_constants ? CLEAVE_REGION_CONSTANTS_INLINE : CLEAVE_REGION_CONSTANTS_TYPES,
      .versions = true};
  cleave_status_t status = cleave_region_json_print(region, &options, &text, &error);
  *out_text = status == CLEAVE_OK ? text.data : NULL;
  *out_length = status == CLEAVE_OK ? text.length : 0;
  if (status != CLEAVE_OK) {
    cleave_text_deinit(&text);
  }
  return tell(&error, status, message);
}

void cleave_host_free_json(char *text) {
  cleave_free(text);
}

cleave_status_t cleave_host_region_from_json(const char *text, size_t length,
                                             const cleave_region_view_t **out_region,
                                             cleave_message_t *message) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_region_file_t *region = NULL;
  cleave_status_t status = cleave_region_json_read("region", text, length, NULL, &region, &error);
  *out_region = region == NULL ? NULL : &region->view;
  return tell(&error, status, message);
}

void cleave_host_free_region(const cleave_region_view_t *region) {
  cleave_region_file_destroy((cleave_region_file_t *)(uintptr_t)region);
}
