// SPDX-License-Identifier: Apache-2.0
#include "train/feed.h"

#include <string.h>

#include "cleave/half.h"

// ---- messages ----

static cleave_status_t fail_missing(const cleave_samples_t *samples, const char *what, const char *name,
                                    cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_samples_print(samples, &text);
  cleave_status_t status = cleave_error_set_at(error, CLEAVE_ERROR_INVALID_ARGUMENT, samples->path, 0,
                                               "%s '%.100s': expected an array of this name, found %.400s",
                                               what, name, cleave_text_get(&text));
  cleave_text_deinit(&text);
  return status;
}

static cleave_status_t fail_fit(const cleave_samples_t *samples, const cleave_train_feed_t *feed,
                                const cleave_port_t *port, cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_type_print(NULL, port->tensor.dtype, port->tensor.rank, port->tensor.dims, &text);
  cleave_text_format(&text, ", and the array '%.100s' is ", feed->name);
  cleave_type_print(NULL, feed->array->dtype, feed->array->rank, feed->array->dims, &text);
  cleave_status_t status = cleave_error_set_at(
      error, CLEAVE_ERROR_SHAPE, samples->path, 0,
      "input '%.100s' is %s: they do not fit for minibatches of %lld sample%s", port->name,
      cleave_text_get(&text), (long long)feed->dims[0], CLEAVE_PLURAL(feed->dims[0]));
  cleave_text_deinit(&text);
  return status;
}

// ---- which array an input takes ----

/* Does a number of the one type become one of the other without a change of what it means? */
static bool converts(cleave_dtype_t from, cleave_dtype_t to) {
  bool is_number = cleave_dtype_is_integer(from) || from == CLEAVE_DTYPE_BOOL;
  switch (to) {
    case CLEAVE_DTYPE_F32:
    case CLEAVE_DTYPE_F64: return is_number || cleave_dtype_is_float(from);
    case CLEAVE_DTYPE_I32:
    case CLEAVE_DTYPE_I64: return is_number;
    default: return from == to;
  }
}

static cleave_status_t set_array(cleave_train_feed_t *feed, const char *name, const cleave_tensor_t *array,
                                 int64_t batch, cleave_error_t *error) {
  int64_t count = 0;
  feed->name = name;
  feed->array = array;
  feed->dims[0] = batch;
  for (int32_t k = 1; k < array->rank; k++) {
    feed->dims[k] = array->dims[k];
  }
  feed->row = array->count / array->dims[0];
  feed->type = (cleave_tensor_view_t){
      .size = sizeof feed->type, .dtype = array->dtype, .rank = array->rank, .dims = feed->dims};
  if (!cleave_shape_element_count(array->rank, feed->dims, &count) ||
      !cleave_size_multiply((size_t)count, sizeof(double), &feed->bytes)) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "array '%.100s': minibatches of %lld are too large",
                            name, (long long)batch);
  }
  return CLEAVE_OK;
}

static void set_dtype(cleave_train_feed_t *feed, cleave_dtype_t dtype) {
  feed->type.dtype = dtype;
  feed->bytes = (size_t)feed->row * (size_t)feed->dims[0] * cleave_dtype_size(dtype);
}

static cleave_status_t check_fit(const cleave_samples_t *samples, cleave_train_feed_t *feed,
                                 const cleave_port_t *port, cleave_error_t *error) {
  bool fits = converts(feed->array->dtype, port->tensor.dtype) &&
              (port->tensor.rank < 0 || port->tensor.rank == feed->array->rank);
  for (int32_t k = 0; fits && k < port->tensor.rank; k++) {
    fits = port->tensor.dims[k] < 0 || port->tensor.dims[k] == feed->dims[k];
  }
  if (!fits) {
    return fail_fit(samples, feed, port, error);
  }
  set_dtype(feed, port->tensor.dtype);
  return CLEAVE_OK;
}

static bool is_input(const cleave_model_t *model, const char *name) {
  return cleave_model_find_input(model, name) != CLEAVE_INDEX_NONE;
}

/* The one array that no input and no loss has the name of; NULL if there are none or several. */
static const cleave_npz_entry_t *find_only(const cleave_model_t *model, const cleave_samples_t *samples,
                                           const char *loss_array) {
  const cleave_npz_entry_t *only = NULL;
  for (size_t k = 0; k < samples->arrays.entries.count; k++) {
    const cleave_npz_entry_t *entry = &samples->arrays.entries.items[k];
    if (is_input(model, entry->name) || (loss_array != NULL && strcmp(entry->name, loss_array) == 0)) {
      continue;
    }
    if (only != NULL) {
      return NULL;
    }
    only = entry;
  }
  return only;
}

static uint32_t count_missing(const cleave_model_t *model, const cleave_samples_t *samples) {
  uint32_t missing = 0;
  for (uint32_t k = 0; k < cleave_model_input_count(model); k++) {
    cleave_port_t port = {.size = sizeof port};
    if (cleave_model_input(model, k, &port, NULL) == CLEAVE_OK) {
      missing += cleave_samples_find(samples, port.name) == NULL ? 1 : 0;
    }
  }
  return missing;
}

static cleave_status_t find_input(cleave_train_feed_t *feed, const cleave_model_t *model,
                                  const cleave_samples_t *samples, const char *loss_array, int64_t batch,
                                  cleave_error_t *error) {
  cleave_port_t port = {.size = sizeof port};
  CLEAVE_TRY(cleave_model_input(model, feed->input, &port, error));
  const char *name = port.name;
  const cleave_tensor_t *array = cleave_samples_find(samples, name);
  if (array == NULL && count_missing(model, samples) == 1) {
    const cleave_npz_entry_t *only = find_only(model, samples, loss_array);
    name = only != NULL ? only->name : name;
    array = only != NULL ? only->tensor : NULL;
  }
  if (array == NULL) {
    return fail_missing(samples, "input", port.name, error);
  }
  CLEAVE_TRY(set_array(feed, name, array, batch, error));
  return check_fit(samples, feed, &port, error);
}

cleave_status_t cleave_train_feeds_init(cleave_train_feeds_t *feeds, const cleave_model_t *model,
                                        const cleave_samples_t *samples, const char *loss_array,
                                        int64_t batch, cleave_error_t *error) {
  *feeds = (cleave_train_feeds_t){.input_count = cleave_model_input_count(model)};
  feeds->items = cleave_allocate_zeroed((size_t)feeds->input_count + 1, sizeof *feeds->items);
  CLEAVE_TRY_MEMORY(feeds->items, error);
  for (uint32_t k = 0; k < feeds->input_count; k++) {
    cleave_train_feed_t *feed = &feeds->items[k];
    feed->input = feeds->count++;
    CLEAVE_TRY(find_input(feed, model, samples, loss_array, batch, error));
  }
  if (loss_array == NULL) {
    return CLEAVE_OK;
  }
  const cleave_tensor_t *array = cleave_samples_find(samples, loss_array);
  if (array == NULL) {
    return fail_missing(samples, "the loss's array", loss_array, error);
  }
  cleave_train_feed_t *feed = &feeds->items[feeds->count];
  feed->input = feeds->count++;
  return set_array(feed, loss_array, array, batch, error);
}

void cleave_train_feeds_deinit(cleave_train_feeds_t *feeds) {
  cleave_free(feeds->items);
  feeds->items = NULL;
  feeds->count = 0;
}

cleave_status_t cleave_train_feeds_for(const cleave_train_feeds_t *feeds, const cleave_samples_t *samples,
                                       cleave_train_feeds_t *other, cleave_error_t *error) {
  *other = *feeds;
  other->items = cleave_allocate((size_t)feeds->count + 1, sizeof *other->items);
  CLEAVE_TRY_MEMORY(other->items, error);
  memcpy(other->items, feeds->items, feeds->count * sizeof *other->items);
  for (uint32_t k = 0; k < feeds->count; k++) {
    const cleave_train_feed_t *from = &feeds->items[k];
    cleave_train_feed_t *feed = &other->items[k];
    const cleave_tensor_t *array = cleave_samples_find(samples, from->name);
    if (array == NULL) {
      return fail_missing(samples, "the training array", from->name, error);
    }
    feed->type.dims = feed->dims;
    bool fits = array->dtype == from->array->dtype && array->rank == from->array->rank;
    for (int32_t d = 1; fits && d < array->rank; d++) {
      fits = array->dims[d] == from->array->dims[d];
    }
    if (!fits) {
      cleave_text_t text = {0};
      cleave_type_print(NULL, array->dtype, array->rank, array->dims, &text);
      cleave_text_add(&text, ", and that of the training samples is ");
      cleave_type_print(NULL, from->array->dtype, from->array->rank, from->array->dims, &text);
      cleave_status_t status =
          cleave_error_set_at(error, CLEAVE_ERROR_SHAPE, samples->path, 0, "array '%.100s' is %s", from->name,
                              cleave_text_get(&text));
      cleave_text_deinit(&text);
      return status;
    }
    feed->array = array;
  }
  return CLEAVE_OK;
}

// ---- the array of the loss ----

cleave_status_t cleave_train_feed_set_type(cleave_train_feed_t *feed, cleave_dtype_t dtype,
                                           const cleave_samples_t *samples, cleave_error_t *error) {
  if (!converts(feed->array->dtype, dtype)) {
    return cleave_error_set_at(error, CLEAVE_ERROR_SHAPE, samples->path, 0,
                               "array '%.100s': expected %s or numbers that become it, found %s", feed->name,
                               cleave_dtype_name(dtype), cleave_dtype_name(feed->array->dtype));
  }
  set_dtype(feed, dtype);
  return CLEAVE_OK;
}

cleave_status_t cleave_train_check_labels(const cleave_train_feed_t *feed, const cleave_samples_t *samples,
                                          int64_t classes, cleave_error_t *error) {
  int64_t first = samples->first * feed->row;
  for (int64_t k = first; k < first + samples->count * feed->row; k++) {
    int64_t label = cleave_tensor_get_int(feed->array, k);
    if ((label < 0 || label >= classes) && label != CLEAVE_TRAIN_IGNORED) {
      return cleave_error_set_at(
          error, CLEAVE_ERROR_INVALID_ARGUMENT, samples->path, 0,
          "array '%.100s', sample %lld: label %lld, expected a class from 0 to %lld, or "
          "%lld for none",
          feed->name, (long long)(k / feed->row), (long long)label, (long long)classes - 1,
          (long long)CLEAVE_TRAIN_IGNORED);
    }
  }
  return CLEAVE_OK;
}

// ---- rows ----

/* Elements of the file may lie at any address. */
#define CONVERT(from_type, to_type)                                      \
  do {                                                                   \
    const unsigned char *at = from;                                      \
    to_type *numbers = to;                                               \
    for (int64_t k = 0; k < count; k++) {                                \
      from_type element;                                                 \
      memcpy(&element, at + (size_t)k * sizeof element, sizeof element); \
      numbers[k] = (to_type)element;                                     \
    }                                                                    \
    return;                                                              \
  } while (0)

#define CONVERT_TO(to_type)                            \
  switch (from_dtype) {                                \
    case CLEAVE_DTYPE_F32: CONVERT(float, to_type);    \
    case CLEAVE_DTYPE_F64: CONVERT(double, to_type);   \
    case CLEAVE_DTYPE_I8: CONVERT(int8_t, to_type);    \
    case CLEAVE_DTYPE_I16: CONVERT(int16_t, to_type);  \
    case CLEAVE_DTYPE_I32: CONVERT(int32_t, to_type);  \
    case CLEAVE_DTYPE_I64: CONVERT(int64_t, to_type);  \
    case CLEAVE_DTYPE_BOOL:                            \
    case CLEAVE_DTYPE_U8: CONVERT(uint8_t, to_type);   \
    case CLEAVE_DTYPE_U16: CONVERT(uint16_t, to_type); \
    case CLEAVE_DTYPE_U32: CONVERT(uint32_t, to_type); \
    case CLEAVE_DTYPE_U64: CONVERT(uint64_t, to_type); \
    default: break;                                    \
  }

static void convert_halves(const void *from, int64_t count, bool is_double, void *to) {
  for (int64_t k = 0; k < count; k++) {
    uint16_t bits = 0;
    memcpy(&bits, (const unsigned char *)from + 2 * k, sizeof bits);
    float number = cleave_half_to_float(bits);
    if (is_double) {
      ((double *)to)[k] = (double)number;
    } else {
      ((float *)to)[k] = number;
    }
  }
}

static void convert(cleave_dtype_t from_dtype, const void *from, int64_t count, cleave_dtype_t to_dtype,
                    void *to) {
  if (from_dtype == CLEAVE_DTYPE_F16) {
    convert_halves(from, count, to_dtype == CLEAVE_DTYPE_F64, to);
    return;
  }
  switch (to_dtype) {
    case CLEAVE_DTYPE_F32: CONVERT_TO(float); break;
    case CLEAVE_DTYPE_F64: CONVERT_TO(double); break;
    case CLEAVE_DTYPE_I32: CONVERT_TO(int32_t); break;
    case CLEAVE_DTYPE_I64: CONVERT_TO(int64_t); break;
    default: break;
  }
}

void cleave_train_feed_fill(const cleave_train_feed_t *feed, const int64_t *rows, int64_t count, void *to) {
  size_t from_bytes = (size_t)feed->row * cleave_dtype_size(feed->array->dtype);
  size_t to_bytes = (size_t)feed->row * cleave_dtype_size(feed->type.dtype);
  for (int64_t k = 0; k < count; k++) {
    const unsigned char *from = (const unsigned char *)feed->array->data + (size_t)rows[k] * from_bytes;
    unsigned char *at = (unsigned char *)to + (size_t)k * to_bytes;
    if (feed->array->dtype == feed->type.dtype) {
      memcpy(at, from, from_bytes);
    } else {
      convert(feed->array->dtype, from, feed->row, feed->type.dtype, at);
    }
  }
}
