// SPDX-License-Identifier: Apache-2.0
/*
 * .npy files: magic, version, a Python dict as text, data. The dict is read by a small scanner that accepts
 * what NumPy writes, in any order of keys, and nothing else.
 */
#include "tensor/npy.h"

#include <stdlib.h>
#include <string.h>

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

typedef struct npy_code {
  const char *code; /* after the byte order mark */
  cleave_dtype_t dtype;
} npy_code_t;

static const npy_code_t codes[] = {
    {"f4", CLEAVE_DTYPE_F32}, {"f8", CLEAVE_DTYPE_F64}, {"f2", CLEAVE_DTYPE_F16}, {"i8", CLEAVE_DTYPE_I64},
    {"i4", CLEAVE_DTYPE_I32}, {"i2", CLEAVE_DTYPE_I16}, {"i1", CLEAVE_DTYPE_I8},  {"u8", CLEAVE_DTYPE_U64},
    {"u4", CLEAVE_DTYPE_U32}, {"u2", CLEAVE_DTYPE_U16}, {"u1", CLEAVE_DTYPE_U8},  {"b1", CLEAVE_DTYPE_BOOL},
};

typedef struct npy_header {
  cleave_dtype_t dtype;
  bool fortran;
  int32_t rank;
  int64_t dims[CLEAVE_MAX_RANK];
} npy_header_t;

/* Points behind `'key':` and blanks, or NULL. */
static const char *find_key(const char *text, const char *key) {
  const char *found = strstr(text, key);
  if (found == NULL) {
    return NULL;
  }
  found += strlen(key);
  while (*found == ' ' || *found == ':') {
    found++;
  }
  return found;
}

static cleave_status_t parse_descr(const char *path, const char *text, npy_header_t *header,
                                   cleave_error_t *error) {
  const char *descr = find_key(text, "'descr'");
  if (descr == NULL || descr[0] != '\'') {
    return cleave_error_set_at(error, CLEAVE_ERROR_UNSUPPORTED, path, 0,
                               "header: expected a 'descr' of one simple type");
  }
  char order = descr[1];
  for (size_t k = 0; k < sizeof codes / sizeof codes[0]; k++) {
    if (order != '>' && strncmp(descr + 2, codes[k].code, 2) == 0 && descr[4] == '\'') {
      header->dtype = codes[k].dtype;
      return CLEAVE_OK;
    }
  }
  const char *end = strchr(descr + 1, '\'');
  int length = end != NULL && end - descr < 32 ? (int)(end - descr) + 1 : 8;
  return cleave_error_set_at(error, CLEAVE_ERROR_UNSUPPORTED, path, 0,
                             "header: expected a little-endian number type, found %.*s%s", length, descr,
                             order == '>' ? "; save with numpy.astype" : "");
}

static cleave_status_t parse_shape(const char *path, const char *text, npy_header_t *header,
                                   cleave_error_t *error) {
  const char *at = find_key(text, "'shape'");
  if (at == NULL || *at != '(') {
    return cleave_error_set_at(error, CLEAVE_ERROR_FORMAT, path, 0, "header: expected 'shape': (...)");
  }
  at++;
  while (*at != ')') {
    char *end = NULL;
    long long size = *at >= '0' && *at <= '9' ? strtoll(at, &end, 10) : -1;
    if (size < 0 || size == INT64_MAX || header->rank == CLEAVE_MAX_RANK) {
      return cleave_error_set_at(error, CLEAVE_ERROR_FORMAT, path, 0,
                                 "header: expected a shape of at most %d sizes, found '%.24s'",
                                 CLEAVE_MAX_RANK, at);
    }
    header->dims[header->rank++] = size;
    at = end;
    while (*at == ',' || *at == ' ' || *at == 'L') {
      at++;
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t parse_header(const char *path, const char *text, npy_header_t *header,
                                    cleave_error_t *error) {
  CLEAVE_TRY(parse_descr(path, text, header, error));
  CLEAVE_TRY(parse_shape(path, text, header, error));
  const char *order = find_key(text, "'fortran_order'");
  bool is_true = order != NULL && strncmp(order, "True", 4) == 0;
  if (!is_true && (order == NULL || strncmp(order, "False", 5) != 0)) {
    return cleave_error_set_at(error, CLEAVE_ERROR_FORMAT, path, 0,
                               "header: expected 'fortran_order': True or False");
  }
  header->fortran = is_true && header->rank > 1;
  return CLEAVE_OK;
}

/* Fortran order has the first axis innermost: the elements in C order, in memory of their own. */
static cleave_status_t copy_transposed(const cleave_tensor_view_t *view, int64_t count,
                                       cleave_tensor_t **out_tensor, cleave_error_t *error) {
  size_t size = cleave_dtype_size(view->dtype);
  const unsigned char *from = view->data;
  int64_t at[CLEAVE_MAX_RANK] = {0};
  CLEAVE_TRY(cleave_tensor_create(view->dtype, view->rank, view->dims, out_tensor, error));
  unsigned char *to = (*out_tensor)->data;
  for (int64_t k = 0; k < count; k++) {
    int64_t place = 0;
    for (int32_t d = view->rank - 1; d >= 0; d--) {
      place = place * view->dims[d] + at[d];
    }
    memcpy(to + (size_t)k * size, from + (size_t)place * size, size);
    for (int32_t d = view->rank - 1; d >= 0 && ++at[d] == view->dims[d]; d--) {
      at[d] = 0;
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_npy_read_part(cleave_file_t *file, size_t offset, size_t size, const char *name,
                                     cleave_tensor_t **out_tensor, cleave_error_t *error) {
  *out_tensor = NULL;
  const unsigned char *data = cleave_file_data(file) + offset;
  if (size < 12 || memcmp(data, magic, sizeof magic) != 0 || data[6] < 1 || data[6] > 3) {
    return cleave_error_set_at(error, CLEAVE_ERROR_FORMAT, name, 0,
                               "expected a NumPy file of format 1.0 to 3.0, found something else");
  }
  size_t start = data[6] == 1 ? 10 : 12;
  size_t length = (size_t)data[8] | (size_t)data[9] << 8;
  if (data[6] > 1) {
    length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
  }
  if (length > size - start || length > 65536) {
    return cleave_error_set_at(error, CLEAVE_ERROR_FORMAT, name, 0,
                               "header: %zu byte%s long, in a file of %zu", length, CLEAVE_PLURAL(length),
                               size);
  }
  char *text = cleave_copy_text((const char *)data + start, length);
  CLEAVE_TRY_MEMORY(text, error);
  npy_header_t header = {0};
  cleave_status_t status = parse_header(name, text, &header, error);
  cleave_free(text);
  CLEAVE_TRY(status);
  int64_t count = 0;
  size_t left = size - start - length;
  size_t bytes = 0;
  if (!cleave_shape_element_count(header.rank, header.dims, &count) ||
      !cleave_size_multiply((size_t)count, cleave_dtype_size(header.dtype), &bytes) || bytes > left) {
    return cleave_error_set_at(error, CLEAVE_ERROR_FORMAT, name, 0,
                               "data: %zu byte%s, fewer than the shape needs", left, CLEAVE_PLURAL(left));
  }
  cleave_tensor_view_t view = {
      .dtype = header.dtype, .rank = header.rank, .dims = header.dims, .data = data + start + length};
  return header.fortran ? copy_transposed(&view, count, out_tensor, error)
                        : cleave_tensor_create_borrowed(&view, bytes, file, out_tensor, error);
}

cleave_status_t cleave_npy_read_file(cleave_file_t *file, cleave_tensor_t **out_tensor,
                                     cleave_error_t *error) {
  return cleave_npy_read_part(file, 0, cleave_file_size(file), cleave_file_path(file), out_tensor, error);
}

cleave_status_t cleave_npy_read(const char *path, cleave_tensor_t **out_tensor, cleave_error_t *error) {
  cleave_file_t *file = NULL;
  *out_tensor = NULL;
  CLEAVE_TRY(cleave_file_open(path, &file, error));
  cleave_status_t status = cleave_npy_read_file(file, out_tensor, error);
  cleave_file_release(file);
  return status;
}

cleave_status_t cleave_npy_print_header(const cleave_tensor_t *tensor, const char *name, cleave_text_t *out,
                                        cleave_error_t *error) {
  const char *code = NULL;
  for (size_t k = 0; k < sizeof codes / sizeof codes[0]; k++) {
    code = codes[k].dtype == tensor->dtype ? codes[k].code : code;
  }
  if (code == NULL) {
    return cleave_error_set_at(error, CLEAVE_ERROR_UNSUPPORTED, name, 0, "the npy format has no type for %s",
                               cleave_dtype_name(tensor->dtype));
  }
  cleave_text_t text = {0};
  cleave_text_format(&text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                     cleave_dtype_size(tensor->dtype) == 1 ? '|' : '<', code);
  for (int32_t d = 0; d < tensor->rank; d++) {
    cleave_text_format(&text, d + 1 < tensor->rank ? "%lld, " : "%lld,", (long long)tensor->dims[d]);
  }
  cleave_text_add(&text, "), }");
  while ((10 + text.length + 1) % 64 != 0 && !text.failed) {
    cleave_text_add(&text, " ");
  }
  cleave_text_add(&text, "\n");
  unsigned char head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
  head[8] = (unsigned char)(text.length & 0xff);
  head[9] = (unsigned char)(text.length >> 8 & 0xff);
  cleave_text_append(out, (const char *)head, sizeof head);
  cleave_text_append(out, cleave_text_get(&text), text.length);
  out->failed = out->failed || text.failed;
  cleave_text_deinit(&text);
  return cleave_text_check(out, error);
}

cleave_status_t cleave_npy_write(const char *path, const cleave_tensor_t *tensor, cleave_error_t *error) {
  cleave_text_t header = {0};
  cleave_status_t status = cleave_npy_print_header(tensor, path, &header, error);
  if (status == CLEAVE_OK) {
    const cleave_file_part_t parts[] = {{header.data, header.length}, {tensor->data, tensor->bytes}};
    status = cleave_file_write_parts(path, parts, 2, false, error);
  }
  cleave_text_deinit(&header);
  return status;
}
