// SPDX-License-Identifier: Apache-2.0
// Blobs. There is no machine code to keep: a blob says what a program was compiled from, and loading compiles
// the region anew after making sure that it is the one. 64 bytes, little endian: magic, format, device, hash
// of the region, version of the library, and a checksum of all that.
#include <string.h>

#include "program.h"

enum {
  BLOB_BYTES = 64,
  BLOB_FORMAT = 1,
  AT_FORMAT = 8,
  AT_DEVICE = 12,
  AT_HASH = 16,
  AT_VERSION = 24,
  VERSION_BYTES = 32,
  AT_CHECKSUM = 56
};
static const char MAGIC[8] = {'m', 'i', 'r', 'r', 'o', 'r', '\n', '\0'};

static void put(unsigned char *to, uint64_t number, size_t bytes) {
  for (size_t k = 0; k < bytes; k++) {
    to[k] = (unsigned char)(number >> 8 * k);
  }
}

static uint64_t get(const unsigned char *from, size_t bytes) {
  uint64_t number = 0;
  for (size_t k = 0; k < bytes; k++) {
    number |= (uint64_t)from[k] << 8 * k;
  }
  return number;
}

/* FNV-1a. */
static uint64_t checksum(const unsigned char *bytes, size_t count) {
  uint64_t sum = UINT64_C(0xcbf29ce484222325);
  for (size_t k = 0; k < count; k++) {
    sum = (sum ^ bytes[k]) * UINT64_C(0x100000001b3);
  }
  return sum;
}

static cleave_status_t save(const void *memory, cleave_status_t (*write)(void *, const void *, size_t),
                            void *context, cleave_message_t *message) {
  const mirror_program_t *program = memory;
  unsigned char blob[BLOB_BYTES] = {0};
  memcpy(blob, MAGIC, sizeof MAGIC);
  put(blob + AT_FORMAT, BLOB_FORMAT, 4);
  put(blob + AT_DEVICE, program->device, 4);
  put(blob + AT_HASH, program->hash, 8);
  memcpy(blob + AT_VERSION, MIRROR_VERSION, sizeof MIRROR_VERSION);
  put(blob + AT_CHECKSUM, checksum(blob, AT_CHECKSUM), 8);
  cleave_status_t status = write(context, blob, sizeof blob);
  return status == CLEAVE_OK ? CLEAVE_OK
                             : mirror_fail(message, status, CLEAVE_REASON_NONE, "the blob cannot be written");
}

static cleave_status_t refuse(cleave_message_t *message, const char *what) {
  return mirror_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_VERSION, "%s", what);
}

static cleave_status_t check(void *state, uint32_t device, const void *data, size_t bytes,
                             cleave_message_t *message) {
  const unsigned char *blob = data;
  (void)state;
  if (data == NULL || bytes != BLOB_BYTES || memcmp(blob, MAGIC, sizeof MAGIC) != 0) {
    return refuse(message, "no blob of this library");
  }
  if (get(blob + AT_CHECKSUM, 8) != checksum(blob, AT_CHECKSUM)) {
    return refuse(message, "the blob is damaged: its checksum is wrong");
  }
  if (get(blob + AT_FORMAT, 4) != BLOB_FORMAT) {
    return refuse(message, "the blob is of another format");
  }
  char version[VERSION_BYTES] = MIRROR_VERSION;
  if (memcmp(blob + AT_VERSION, version, sizeof version) != 0) {
    return refuse(message, "the blob is of another version of the library, this is " MIRROR_VERSION);
  }
  if (get(blob + AT_DEVICE, 4) != device) {
    return mirror_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_DEVICE,
                       "the blob is for device %u, not for device %u", (unsigned)get(blob + AT_DEVICE, 4),
                       (unsigned)device);
  }
  return CLEAVE_OK;
}

static cleave_status_t load(void *state, const cleave_region_view_t *region,
                            const cleave_compile_options_t *options, const void *data, size_t bytes,
                            void **out_program, cleave_message_t *message) {
  mirror_t *mirror = state;
  mirror_program_t *program = NULL;
  bool has_device = options->size > offsetof(cleave_compile_options_t, device);
  *out_program = NULL;
  cleave_status_t status = check(state, has_device ? options->device : 0, data, bytes, message);
  if (status == CLEAVE_OK && get((const unsigned char *)data + AT_HASH, 8) != region->hash) {
    status = refuse(message, "the blob was compiled from another region");
  }
  if (status == CLEAVE_OK) {
    status = mirror_program_create(mirror, region, options, false, &program, message);
  }
  if (status == CLEAVE_OK) {
    mirror_count(&mirror->counters.compiled, 1);
    mirror_count(&mirror->counters.loaded, 1);
  }
  *out_program = program;
  return status;
}

const cleave_backend_blobs_t mirror_blobs = {
    .size = sizeof mirror_blobs, .save = save, .check = check, .load = load};
