// SPDX-License-Identifier: Apache-2.0
// .npz files. Only the directory at the end of the archive is believed: writers that do not know sizes
// beforehand leave them out of the headers before the data. Every offset is checked before it is used.
#include "tensor/npz.h"

#include <stdio.h>
#include <string.h>

enum {
  LOCAL_MAGIC = 0x04034b50,
  ENTRY_MAGIC = 0x02014b50,
  END_MAGIC = 0x06054b50,
  END64_MAGIC = 0x06064b50,
  LOCATOR64_MAGIC = 0x07064b50,
  LOCAL_SIZE = 30,
  ENTRY_SIZE = 46,
  END_SIZE = 22,
  LOCATOR64_SIZE = 20,
  END64_SIZE = 56,
  EXTRA64 = 1,
  MAX_COMMENT = 65535,
  MAX_NAME = 1000,
  MAX_ENTRIES = 16384, /* that are read */
  ZIP_VERSION = 20,
  UTF8_NAME = 0x800,
  FIRST_DAY = 0x21 /* 1980-01-01 */
};
#define CRC_POLYNOMIAL UINT32_C(0xedb88320)

// ---- little-endian numbers ----

static uint64_t get(const unsigned char *data, int bytes) {
  uint64_t value = 0;
  for (int k = bytes; k-- > 0;) {
    value = value << 8 | data[k];
  }
  return value;
}

static void put(cleave_text_t *out, uint64_t value, int bytes) {
  for (int k = 0; k < bytes; k++) {
    char byte = (char)(value >> (8 * k) & 0xff);
    cleave_text_append(out, &byte, 1);
  }
}

/* CRC-32 of IEEE 802.3; starts from 0. */
static uint32_t checksum(uint32_t crc, const unsigned char *data, size_t size) {
  uint32_t table[256];
  for (uint32_t k = 0; k < 256; k++) {
    table[k] = k;
    for (int bit = 0; bit < 8; bit++) {
      table[k] = (table[k] & 1) != 0 ? table[k] >> 1 ^ CRC_POLYNOMIAL : table[k] >> 1;
    }
  }
  crc = ~crc;
  for (size_t k = 0; k < size; k++) {
    crc = crc >> 8 ^ table[(crc ^ data[k]) & 0xff];
  }
  return ~crc;
}

// ---- reading ----

typedef struct directory {
  cleave_file_t *file;
  const unsigned char *data;
  size_t size;
  size_t at;      /* next entry */
  uint64_t count; /* entries */
} directory_t;

typedef struct entry {
  const char *name;
  size_t name_length;
  uint64_t method;
  uint32_t crc;
  uint64_t size;
  uint64_t stored_size;
  uint64_t local; /* offset of its header */
} entry_t;

static cleave_status_t fail(const directory_t *directory, const char *what, cleave_error_t *error) {
  return cleave_error_set_at(error, CLEAVE_ERROR_FORMAT, cleave_file_path(directory->file), 0, "archive: %s",
                             what);
}

/* The end of the archive, which a comment may follow. */
static bool find_end(const directory_t *directory, size_t *out_at) {
  size_t least = directory->size > END_SIZE + MAX_COMMENT ? directory->size - END_SIZE - MAX_COMMENT : 0;
  for (size_t at = directory->size - END_SIZE + 1; at-- > least;) {
    if (get(directory->data + at, 4) == END_MAGIC &&
        at + END_SIZE + get(directory->data + at + 20, 2) <= directory->size) {
      *out_at = at;
      return true;
    }
  }
  return false;
}

static cleave_status_t open_directory(directory_t *directory, cleave_error_t *error) {
  size_t end = 0;
  if (directory->size < END_SIZE || !find_end(directory, &end)) {
    return fail(directory, "expected a zip archive as numpy.savez writes it, found no end of one", error);
  }
  const unsigned char *data = directory->data;
  uint64_t start = get(data + end + 16, 4);
  directory->count = get(data + end + 10, 2);
  bool is_large = end >= LOCATOR64_SIZE && get(data + end - LOCATOR64_SIZE, 4) == LOCATOR64_MAGIC;
  if (is_large) {
    uint64_t large = get(data + end - LOCATOR64_SIZE + 8, 8);
    if (large > directory->size || directory->size - large < END64_SIZE ||
        get(data + large, 4) != END64_MAGIC) {
      return fail(directory, "its 64-bit end is not where it should be", error);
    }
    directory->count = get(data + large + 32, 8);
    start = get(data + large + 48, 8);
  }
  if (start > end || directory->count > (end - start) / ENTRY_SIZE) {
    return fail(directory, "its directory does not lie before its end", error);
  }
  directory->at = (size_t)start;
  if (directory->count > MAX_ENTRIES) {
    return cleave_error_set_at(error, CLEAVE_ERROR_LIMIT, cleave_file_path(directory->file), 0,
                               "archive: more than %d arrays", MAX_ENTRIES);
  }
  return CLEAVE_OK;
}

/* Reads the 64-bit numbers of the extra field. Each is there only if its 32-bit field is 0xffffffff. */
static void read_extra(const unsigned char *extra, size_t size, entry_t *entry) {
  while (size >= 4) {
    size_t length = (size_t)get(extra + 2, 2);
    if (length > size - 4) {
      return;
    }
    if (get(extra, 2) == EXTRA64) {
      uint64_t *const wide[] = {&entry->size, &entry->stored_size, &entry->local};
      size_t at = 4;
      for (size_t k = 0; k < 3; k++) {
        if (*wide[k] == UINT32_MAX && at + 8 <= length + 4) {
          *wide[k] = get(extra + at, 8);
          at += 8;
        }
      }
    }
    extra += 4 + length;
    size -= 4 + length;
  }
}

static cleave_status_t next_entry(directory_t *directory, entry_t *entry, cleave_error_t *error) {
  const unsigned char *data = directory->data + directory->at;
  size_t left = directory->size - directory->at;
  if (left < ENTRY_SIZE || get(data, 4) != ENTRY_MAGIC) {
    return fail(directory, "its directory is cut off", error);
  }
  entry->method = get(data + 10, 2);
  entry->crc = (uint32_t)get(data + 16, 4);
  entry->stored_size = get(data + 20, 4);
  entry->size = get(data + 24, 4);
  entry->local = get(data + 42, 4);
  entry->name = (const char *)data + ENTRY_SIZE;
  entry->name_length = (size_t)get(data + 28, 2);
  size_t extra = (size_t)get(data + 30, 2);
  size_t whole = ENTRY_SIZE + entry->name_length + extra + (size_t)get(data + 32, 2);
  if (whole > left) {
    return fail(directory, "its directory is cut off", error);
  }
  read_extra(data + ENTRY_SIZE + entry->name_length, extra, entry);
  directory->at += whole;
  return CLEAVE_OK;
}

/* Finds where the bytes of an entry begin. */
static cleave_status_t find_data(const directory_t *directory, const entry_t *entry, const char *name,
                                 size_t *out_offset, cleave_error_t *error) {
  const char *path = cleave_file_path(directory->file);
  if (entry->method != 0) {
    return cleave_error_set_at(error, CLEAVE_ERROR_UNSUPPORTED, path, 0,
                               "array '%.100s' is compressed: save with numpy.savez, not "
                               "numpy.savez_compressed",
                               name);
  }
  if (entry->local > directory->size || directory->size - entry->local < LOCAL_SIZE ||
      get(directory->data + entry->local, 4) != LOCAL_MAGIC) {
    return fail(directory, "an entry is not where the directory says", error);
  }
  const unsigned char *header = directory->data + entry->local;
  uint64_t offset = entry->local + LOCAL_SIZE + get(header + 26, 2) + get(header + 28, 2);
  if (offset > directory->size || directory->size - offset < entry->size ||
      entry->size != entry->stored_size) {
    return cleave_error_set_at(error, CLEAVE_ERROR_FORMAT, path, 0,
                               "array '%.100s': the archive ends before its data", name);
  }
  *out_offset = (size_t)offset;
  return CLEAVE_OK;
}

static cleave_status_t read_entry(const directory_t *directory, const entry_t *entry, bool check,
                                  cleave_npz_t *npz, cleave_error_t *error) {
  char name[MAX_NAME + 1];
  char place[MAX_NAME + 200];
  size_t offset = 0;
  size_t length = entry->name_length;
  bool is_npy = length > 4 && length <= MAX_NAME && memcmp(entry->name + length - 4, ".npy", 4) == 0 &&
                memchr(entry->name, '\0', length) == NULL;
  if (!is_npy) {
    return fail(directory, "expected entries called NAME.npy, found another one", error);
  }
  memcpy(name, entry->name, length - 4);
  name[length - 4] = '\0';
  if (cleave_npz_find(npz, name) != NULL) {
    return fail(directory, "two entries have one name", error);
  }
  CLEAVE_TRY(find_data(directory, entry, name, &offset, error));
  (void)snprintf(place, sizeof place, "%.150s: array '%s'", cleave_file_path(directory->file), name);
  if (check && checksum(0, directory->data + offset, (size_t)entry->size) != entry->crc) {
    return cleave_error_set_at(error, CLEAVE_ERROR_FORMAT, place, 0, "its bytes are not those written");
  }
  CLEAVE_TRY(cleave_array_reserve(&npz->entries, 1, error));
  cleave_npz_entry_t made = {.name = cleave_copy_text(name, strlen(name))};
  CLEAVE_TRY_MEMORY(made.name, error);
  cleave_status_t status =
      cleave_npy_read_part(directory->file, offset, (size_t)entry->size, place, &made.tensor, error);
  CLEAVE_TRY_OR(status, cleave_free(made.name));
  cleave_array_push_reserved(&npz->entries, made);
  return CLEAVE_OK;
}

cleave_status_t cleave_npz_read(const char *path, bool check, cleave_npz_t *out_npz, cleave_error_t *error) {
  directory_t directory = {0};
  *out_npz = (cleave_npz_t){0};
  CLEAVE_TRY(cleave_file_open(path, &directory.file, error));
  directory.data = cleave_file_data(directory.file);
  directory.size = cleave_file_size(directory.file);
  cleave_status_t status = open_directory(&directory, error);
  for (uint64_t k = 0; k < directory.count && status == CLEAVE_OK; k++) {
    entry_t entry;
    status = next_entry(&directory, &entry, error);
    CLEAVE_THEN(status, read_entry(&directory, &entry, check, out_npz, error));
  }
  cleave_file_release(directory.file);
  return status;
}

void cleave_npz_deinit(cleave_npz_t *npz) {
  for (size_t k = 0; k < npz->entries.count; k++) {
    cleave_free(npz->entries.items[k].name);
    cleave_tensor_release(npz->entries.items[k].tensor);
  }
  cleave_array_free(&npz->entries);
}

const cleave_tensor_t *cleave_npz_find(const cleave_npz_t *npz, const char *name) {
  for (size_t k = 0; k < npz->entries.count; k++) {
    if (strcmp(npz->entries.items[k].name, name) == 0) {
      return npz->entries.items[k].tensor;
    }
  }
  return NULL;
}

// ---- writing ----

typedef struct written {
  cleave_text_t head; /* of the file, before the data of the tensor */
  uint32_t crc;
  uint64_t size;
  uint64_t offset; /* of its header */
} written_t;

/* Writes what the header of an entry and the directory have in common, from the version on. */
static void put_common(cleave_text_t *out, const written_t *entry, const char *name) {
  put(out, ZIP_VERSION, 2);
  put(out, UTF8_NAME, 2);
  put(out, 0, 2);
  put(out, 0, 2);
  put(out, FIRST_DAY, 2);
  put(out, entry->crc, 4);
  put(out, entry->size, 4);
  put(out, entry->size, 4);
  put(out, strlen(name) + 4, 2);
  put(out, 0, 2);
}

static cleave_status_t prepare(const char *path, const cleave_npz_item_t *item, uint64_t offset,
                               written_t *entry, cleave_error_t *error) {
  cleave_text_t header = {0};
  if (strlen(item->name) + 4 > MAX_NAME) {
    return cleave_error_set_at(error, CLEAVE_ERROR_LIMIT, path, 0, "the name '%.40s...' is too long",
                               item->name);
  }
  cleave_status_t status = cleave_npy_print_header(item->tensor, path, &header, error);
  if (status == CLEAVE_OK) {
    entry->offset = offset;
    entry->size = header.length + item->tensor->bytes;
    entry->crc = checksum(0, (const unsigned char *)header.data, header.length);
    entry->crc = checksum(entry->crc, item->tensor->data, item->tensor->bytes);
    put(&entry->head, LOCAL_MAGIC, 4);
    put_common(&entry->head, entry, item->name);
    cleave_text_format(&entry->head, "%s.npy", item->name);
    cleave_text_append(&entry->head, header.data, header.length);
    status = cleave_text_check(&entry->head, error);
  }
  cleave_text_deinit(&header);
  return status;
}

static void put_directory(cleave_text_t *out, const cleave_npz_item_t *items, const written_t *entries,
                          size_t count, uint64_t start) {
  for (size_t k = 0; k < count; k++) {
    put(out, ENTRY_MAGIC, 4);
    put(out, ZIP_VERSION, 2);
    put_common(out, &entries[k], items[k].name);
    put(out, 0, 2);
    put(out, 0, 2);
    put(out, 0, 2);
    put(out, 0, 4);
    put(out, entries[k].offset, 4);
    cleave_text_format(out, "%s.npy", items[k].name);
  }
  uint64_t size = out->length;
  put(out, END_MAGIC, 4);
  put(out, 0, 2);
  put(out, 0, 2);
  put(out, count, 2);
  put(out, count, 2);
  put(out, size, 4);
  put(out, start, 4);
  put(out, 0, 2);
}

static cleave_status_t fail_size(const char *path, cleave_error_t *error) {
  return cleave_error_set_at(error, CLEAVE_ERROR_LIMIT, path, 0,
                             "an archive of more than 4 GiB or %d arrays is not written", MAX_ENTRIES);
}

/* Before checksums take their time. */
static cleave_status_t check_size(const char *path, const cleave_npz_item_t *items, size_t count,
                                  cleave_error_t *error) {
  uint64_t bytes = 0;
  for (size_t k = 0; k < count && bytes <= UINT32_MAX; k++) {
    bytes += items[k].tensor->bytes;
  }
  return bytes > UINT32_MAX || count > MAX_ENTRIES ? fail_size(path, error) : CLEAVE_OK;
}

static cleave_status_t write_entries(const char *path, const cleave_npz_item_t *items, size_t count,
                                     written_t *entries, cleave_file_part_t *parts, cleave_error_t *error) {
  uint64_t offset = 0;
  CLEAVE_TRY(check_size(path, items, count, error));
  for (size_t k = 0; k < count; k++) {
    CLEAVE_TRY(prepare(path, &items[k], offset, &entries[k], error));
    parts[2 * k] = (cleave_file_part_t){entries[k].head.data, entries[k].head.length};
    parts[2 * k + 1] = (cleave_file_part_t){items[k].tensor->data, items[k].tensor->bytes};
    offset += entries[k].head.length + items[k].tensor->bytes;
  }
  cleave_text_t directory = {0};
  put_directory(&directory, items, entries, count, offset);
  cleave_status_t status = cleave_text_check(&directory, error);
  if (status == CLEAVE_OK && offset + directory.length > UINT32_MAX) {
    status = fail_size(path, error);
  }
  if (status == CLEAVE_OK) {
    parts[2 * count] = (cleave_file_part_t){directory.data, directory.length};
    status = cleave_file_write_parts(path, parts, 2 * count + 1, true, error);
  }
  cleave_text_deinit(&directory);
  return status;
}

cleave_status_t cleave_npz_write(const char *path, const cleave_npz_item_t *items, size_t count,
                                 cleave_error_t *error) {
  written_t *entries = cleave_allocate_zeroed(count + 1, sizeof *entries);
  cleave_file_part_t *parts = cleave_allocate_zeroed(2 * count + 1, sizeof *parts);
  cleave_status_t status = entries == NULL || parts == NULL
                               ? cleave_error_out_of_memory(error)
                               : write_entries(path, items, count, entries, parts, error);
  for (size_t k = 0; k < count && entries != NULL; k++) {
    cleave_text_deinit(&entries[k].head);
  }
  cleave_free(entries);
  cleave_free(parts);
  return status;
}
