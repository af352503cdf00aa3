// SPDX-License-Identifier: Apache-2.0
// Images come from files: offsets and sizes are checked once, when an image is opened.
#include "onednn/weights/image.h"

#include <string.h>

enum { FORMAT_VERSION = 1, ALIGNMENT = 64 };

static const char magic[8] = {'D', 'N', 'N', 'L', 'P', 'A', 'C', 'K'};

typedef struct header {
  char magic[8];
  uint32_t version;
  uint32_t instructions;
  uint64_t library;
  uint64_t count;
} header_t;
_Static_assert(sizeof(header_t) == 32, "the header has no gaps");

// FNV-1a over the version and the commit that oneDNN was built from.
static uint64_t library_digest(void) {
  const dnnl_version_t *version = dnnl_version();
  const int numbers[] = {version->major, version->minor, version->patch};
  uint64_t digest = UINT64_C(0xcbf29ce484222325);
  for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
    digest = (digest ^ (uint64_t)(uint32_t)numbers[k]) * UINT64_C(0x100000001b3);
  }
  for (const char *c = version->hash == NULL ? "" : version->hash; *c != '\0'; c++) {
    digest = (digest ^ (uint64_t)(unsigned char)*c) * UINT64_C(0x100000001b3);
  }
  return digest;
}

static header_t make_header(uint64_t count) {
  header_t header = {.version = FORMAT_VERSION,
                     .instructions = (uint32_t)dnnl_get_effective_cpu_isa(),
                     .library = library_digest(),
                     .count = count};
  memcpy(header.magic, magic, sizeof(magic));
  return header;
}

static uint64_t round_up(uint64_t offset) {
  return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

cleave_status_t onednn_image_open(const void *data, size_t bytes, onednn_image_t *out,
                                  cleave_message_t *message) {
  header_t header;
  if (bytes < sizeof(header)) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "packed weights: %zu byte%s, too few", bytes,
                       KERNEL_PLURAL(bytes));
  }
  memcpy(&header, data, sizeof(header));
  header_t own = make_header(header.count);
  if (memcmp(&header, &own, sizeof(header)) != 0) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                       "packed weights of another oneDNN or for another processor");
  }
  const onednn_image_entry_t *entries = (const void *)((const unsigned char *)data + sizeof(header));
  if (header.count > (bytes - sizeof(header)) / sizeof(*entries)) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "packed weights: the table is not whole");
  }
  for (uint64_t k = 0; k < header.count; k++) {
    if (entries[k].offset % ALIGNMENT != 0 || entries[k].offset > bytes ||
        entries[k].bytes > bytes - entries[k].offset) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "packed weights: constant %llu is not whole",
                         (unsigned long long)k);
    }
  }
  *out = (onednn_image_t){.data = data, .entries = entries, .count = header.count};
  return CLEAVE_OK;
}

const void *onednn_image_find(const onednn_image_t *image, uint64_t place, uint64_t identity, size_t bytes) {
  if (image == NULL || place >= image->count || bytes == 0) {
    return NULL;
  }
  const onednn_image_entry_t *entry = &image->entries[place];
  return entry->identity == identity && entry->bytes == bytes ? image->data + entry->offset : NULL;
}

cleave_status_t onednn_image_write(const onednn_packed_t *packed, uint64_t count,
                                   cleave_status_t (*write)(void *context, const void *data, size_t bytes),
                                   void *context) {
  static const unsigned char zeros[ALIGNMENT] = {0};
  header_t header = make_header(count);
  uint64_t at = sizeof(header) + count * sizeof(onednn_image_entry_t);
  uint64_t offset = round_up(at);
  ONEDNN_TRY(write(context, &header, sizeof(header)));
  for (uint64_t k = 0; k < count; k++) {
    onednn_image_entry_t entry = {.identity = packed[k].identity,
                                  .offset = offset,
                                  .bytes = packed[k].data != NULL ? packed[k].bytes : 0};
    ONEDNN_TRY(write(context, &entry, sizeof(entry)));
    offset = round_up(offset + entry.bytes);
  }
  for (uint64_t k = 0; k < count; k++) {
    ONEDNN_TRY(write(context, zeros, (size_t)(round_up(at) - at)));
    at = round_up(at);
    if (packed[k].data != NULL) {
      ONEDNN_TRY(write(context, packed[k].data, packed[k].bytes));
      at += packed[k].bytes;
    }
  }
  return write(context, zeros, (size_t)(round_up(at) - at));
}
