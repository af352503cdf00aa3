// SPDX-License-Identifier: Apache-2.0
// Archives of arrays: what was written comes back, and no byte of a broken one does harm.
#include <unistd.h>

#include "tensor/npz.h"
#include "unit.h"

static const char *path_of(const char *name) {
  static char path[512];
  (void)snprintf(path, sizeof path, CLEAVE_BINARY_DIR "/npz_%ld_%s", (long)getpid(), name);
  return path;
}

static cleave_tensor_t *make(cleave_dtype_t dtype, int32_t rank, const int64_t *dims) {
  cleave_tensor_t *tensor = NULL;
  unit_ok(cleave_tensor_create(dtype, rank, dims, &tensor, e));
  cleave_tensor_fill_uniform(tensor, 1, 0, 100);
  return tensor;
}

static size_t write_archive(const char *path, unsigned char *content, size_t room) {
  const int64_t dims[] = {2, 3};
  cleave_tensor_t *tensors[2] = {make(CLEAVE_DTYPE_F32, 2, dims), make(CLEAVE_DTYPE_I64, 0, NULL)};
  const cleave_npz_item_t items[] = {{"weight/a", tensors[0]}, {"b", tensors[1]}};
  cleave_npz_t npz = {0};
  unit_ok(cleave_npz_write(path, items, 2, e));
  unit_ok(cleave_npz_read(path, true, &npz, e));
  ck_assert_uint_eq(npz.entries.count, 2);
  for (int k = 0; k < 2; k++) {
    ck_assert_str_eq(npz.entries.items[k].name, items[k].name);
    ck_assert(cleave_tensor_is_same(npz.entries.items[k].tensor, tensors[k]));
    cleave_tensor_release(tensors[k]);
  }
  ck_assert_ptr_null(cleave_npz_find(&npz, "c"));
  cleave_npz_deinit(&npz);
  FILE *file = fopen(path, "rb");
  size_t size = fread(content, 1, room, file);
  ck_assert_int_eq(fclose(file), 0);
  return size;
}

static void put(const char *path, const unsigned char *content, size_t size) {
  FILE *file = fopen(path, "wb");
  ck_assert_uint_eq(fwrite(content, 1, size, file), size);
  ck_assert_int_eq(fclose(file), 0);
}

UNIT_TEST(broken_archives_are_errors) {
  unsigned char content[4096];
  const char *path = path_of("broken.npz");
  size_t size = write_archive(path, content, sizeof content);
  ck_assert(size > 400 && size < sizeof content);
  for (size_t cut = 0; cut < size; cut++) {
    cleave_npz_t npz = {0};
    put(path, content, cut);
    ck_assert_int_ne((int)cleave_npz_read(path, false, &npz, NULL), CLEAVE_OK);
    cleave_npz_deinit(&npz);
  }
  for (size_t at = 0; at < size; at++) {
    for (int value = 0; value < 3; value++) {
      static const unsigned char values[] = {0x00, 0x7f, 0xff};
      unsigned char before = content[at];
      cleave_npz_t npz = {0};
      content[at] = values[value];
      put(path, content, size);
      content[at] = before;
      if (cleave_npz_read(path, true, &npz, NULL) == CLEAVE_OK) {
        for (size_t k = 0; k < npz.entries.count; k++) { /* all of its bytes are there */
          (void)cleave_tensor_is_same(npz.entries.items[k].tensor, npz.entries.items[k].tensor);
        }
      }
      cleave_npz_deinit(&npz);
    }
  }
  ck_assert_int_eq(remove(path), 0);
}

UNIT_TEST(what_is_compressed_or_something_else_is_refused) {
  unsigned char content[4096];
  const char *path = path_of("other.npz");
  cleave_npz_t npz = {0};
  size_t size = write_archive(path, content, sizeof content);
  for (size_t k = 0; k + 4 < size; k++) {
    if (memcmp(content + k, "PK\1\2", 4) == 0) {
      content[k + 10] = 8; /* deflate */
    }
  }
  put(path, content, size);
  unit_fails_with(cleave_npz_read(path, false, &npz, e), CLEAVE_ERROR_UNSUPPORTED,
                  "array 'weight/a' is compressed: save with numpy.savez, not numpy.savez_compressed");
  cleave_npz_deinit(&npz);
  put(path, (const unsigned char *)"hello, this is not an archive at all", 36);
  unit_fails_with(cleave_npz_read(path, false, &npz, e), CLEAVE_ERROR_FORMAT, "found no end of one");
  cleave_npz_deinit(&npz);
  ck_assert_int_eq(remove(path), 0);
}

UNIT_SUITE("npz")
