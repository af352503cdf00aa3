// SPDX-License-Identifier: Apache-2.0
// A message is a run of fields, each padded to its alignment from the beginning of the message. Both sides
// are processes of one machine and one build, so numbers are as they lie in memory.
#include "backend/wire/wire.h"

#include <string.h>

enum { TEXT_NONE = -1 };

static size_t padding(size_t at, size_t alignment) {
  return (alignment - at % alignment) % alignment;
}

/* ---- writing ---- */

void cleave_wire_reset(cleave_wire_out_t *out) {
  out->length = 0;
  out->failed = false;
}

void cleave_wire_deinit(cleave_wire_out_t *out) {
  cleave_free(out->data);
  *out = (cleave_wire_out_t){0};
}

static bool reserve(cleave_wire_out_t *out, size_t extra) {
  size_t wanted = 0;
  if (out->failed || !cleave_size_add(out->length, extra, &wanted)) {
    out->failed = true;
    return false;
  }
  if (wanted <= out->capacity) {
    return true;
  }
  size_t capacity = out->capacity < 256 ? 512 : out->capacity;
  while (capacity < wanted && capacity <= SIZE_MAX / 2) {
    capacity *= 2;
  }
  capacity = capacity < wanted ? wanted : capacity;
  unsigned char *grown = cleave_reallocate(out->data, capacity, 1);
  if (grown == NULL) {
    out->failed = true;
    return false;
  }
  out->data = grown;
  out->capacity = capacity;
  return true;
}

bool cleave_wire_reserve(cleave_wire_out_t *out, size_t bytes) {
  cleave_wire_reset(out);
  return reserve(out, bytes);
}

void cleave_wire_put(cleave_wire_out_t *out, const void *data, size_t bytes, size_t alignment) {
  size_t gap = padding(out->length, alignment);
  size_t extra = 0;
  if (!cleave_size_add(bytes, gap, &extra) || !reserve(out, extra)) {
    out->failed = true;
    return;
  }
  memset(out->data + out->length, 0, gap);
  if (bytes > 0) {
    memcpy(out->data + out->length + gap, data, bytes);
  }
  out->length += extra;
}

void cleave_wire_put_u32(cleave_wire_out_t *out, uint32_t value) {
  cleave_wire_put(out, &value, sizeof value, sizeof value);
}

void cleave_wire_put_u64(cleave_wire_out_t *out, uint64_t value) {
  cleave_wire_put(out, &value, sizeof value, sizeof value);
}

void cleave_wire_put_f64(cleave_wire_out_t *out, double value) {
  cleave_wire_put(out, &value, sizeof value, sizeof value);
}

void cleave_wire_put_string(cleave_wire_out_t *out, const char *text, uint32_t length) {
  cleave_wire_put_u32(out, length);
  cleave_wire_put(out, text, length, 1);
  cleave_wire_put(out, "", 1, 1);
}

void cleave_wire_put_text(cleave_wire_out_t *out, const char *text) {
  size_t length = text == NULL ? 0 : strlen(text);
  if (text == NULL) {
    cleave_wire_put_u32(out, (uint32_t)TEXT_NONE);
  } else if (length >= INT32_MAX) {
    out->failed = true;
  } else {
    cleave_wire_put_string(out, text, (uint32_t)length);
  }
}

void cleave_wire_put_pairs(cleave_wire_out_t *out, const cleave_key_value_t *pairs, uint32_t count) {
  cleave_wire_put_u32(out, count);
  for (uint32_t k = 0; k < count; k++) {
    cleave_wire_put_text(out, pairs[k].key);
    cleave_wire_put_text(out, pairs[k].value);
  }
}

/* ---- reading ---- */

cleave_wire_in_t cleave_wire_read(const void *data, size_t length) {
  return (cleave_wire_in_t){.data = data, .length = length};
}

const void *cleave_wire_take(cleave_wire_in_t *in, size_t count, size_t size, size_t alignment) {
  size_t bytes = 0;
  size_t gap = padding(in->at, alignment);
  if (in->failed || gap > in->length - in->at || !cleave_size_multiply(count, size, &bytes) ||
      bytes > in->length - in->at - gap) {
    in->failed = true;
    return NULL;
  }
  const unsigned char *found = in->data + in->at + gap;
  in->at += gap + bytes;
  return found;
}

uint32_t cleave_wire_u32(cleave_wire_in_t *in) {
  const uint32_t *found = cleave_wire_take(in, 1, sizeof *found, sizeof *found);
  return found == NULL ? 0 : *found;
}

uint64_t cleave_wire_u64(cleave_wire_in_t *in) {
  const uint64_t *found = cleave_wire_take(in, 1, sizeof *found, sizeof *found);
  return found == NULL ? 0 : *found;
}

double cleave_wire_f64(cleave_wire_in_t *in) {
  const double *found = cleave_wire_take(in, 1, sizeof *found, sizeof *found);
  return found == NULL ? 0.0 : *found;
}

const char *cleave_wire_string(cleave_wire_in_t *in, uint32_t *out_length) {
  *out_length = cleave_wire_u32(in);
  const char *text = cleave_wire_take(in, (size_t)*out_length + 1, 1, 1);
  if (text == NULL || text[*out_length] != '\0') {
    in->failed = true;
    *out_length = 0;
    return NULL;
  }
  return text;
}

const char *cleave_wire_text(cleave_wire_in_t *in) {
  const uint32_t *length = cleave_wire_take(in, 1, sizeof *length, sizeof *length);
  if (length == NULL || *length == (uint32_t)TEXT_NONE) {
    return NULL;
  }
  const char *text = cleave_wire_take(in, (size_t)*length + 1, 1, 1);
  if (text == NULL || memchr(text, '\0', (size_t)*length + 1) != text + *length) {
    in->failed = true;
    return NULL;
  }
  return text;
}

const char *cleave_wire_named(cleave_wire_in_t *in) {
  const char *text = cleave_wire_text(in);
  return text == NULL ? "" : text;
}

uint32_t cleave_wire_count(cleave_wire_in_t *in, size_t least) {
  uint32_t count = cleave_wire_u32(in);
  if (in->failed || count > (in->length - in->at) / least) {
    in->failed = true;
    return 0;
  }
  return count;
}

uint32_t cleave_wire_index(cleave_wire_in_t *in, uint32_t limit) {
  uint32_t value = cleave_wire_u32(in);
  if (value >= limit) {
    in->failed = true;
    return 0;
  }
  return value;
}

bool cleave_wire_is_done(const cleave_wire_in_t *in) {
  return !in->failed && in->at == in->length;
}
