// SPDX-License-Identifier: Apache-2.0
// Growing text. Lengths are bounded by memory: sizes cannot overflow before it runs out.
#include "writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(cuda_writer_t *writer, size_t more) {
  if (writer->failed) {
    return false;
  }
  size_t needed = writer->length + more + 1;
  if (needed <= writer->capacity) {
    return true;
  }
  size_t capacity = needed * 2 > 4096 ? needed * 2 : 4096;
  char *text = realloc(writer->text, capacity);
  if (text == NULL) {
    writer->failed = true;
    return false;
  }
  writer->text = text;
  writer->capacity = capacity;
  return true;
}

void cuda_write_bytes(cuda_writer_t *writer, const char *bytes, size_t count) {
  if (reserve(writer, count)) {
    memcpy(writer->text + writer->length, bytes, count);
    writer->length += count;
    writer->text[writer->length] = '\0';
  }
}

void cuda_write(cuda_writer_t *writer, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  if (length < 0 || !reserve(writer, (size_t)length)) {
    writer->failed = true;
    return;
  }
  va_start(arguments, format);
  vsnprintf(writer->text + writer->length, (size_t)length + 1, format, arguments);
  va_end(arguments);
  writer->length += (size_t)length;
}

void cuda_write_comment(cuda_writer_t *writer, const char *text) {
  while (*text != '\0') {
    cuda_write(writer, "// ");
    for (; *text != '\0' && *text != '\n'; text++) {
      /* A backslash at the end of a line would take the next one into the comment. */
      char c = *text == '\\' ? '/' : *text < ' ' || *text > '~' ? '?' : *text;
      cuda_write_bytes(writer, &c, 1);
    }
    cuda_write(writer, "\n");
    text += *text == '\n';
  }
}

void cuda_writer_deinit(cuda_writer_t *writer) {
  free(writer->text);
  *writer = (cuda_writer_t){0};
}
