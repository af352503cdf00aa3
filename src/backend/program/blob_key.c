// SPDX-License-Identifier: Apache-2.0
// Constants cost the most. Those that lie in a mapped file are known by the file, its times, and their place
// in it, so that none of their pages is read. Others are read at the speed of memory, once per tensor version
// of the process (a small table remembers the last ones), and then stand for themselves as 16 bytes.
#include "backend/program/blob_key.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/utsname.h>

#include "backend/program/device.h"
#include "system/digest.h"
#include "system/file.h"

/* ---- constants ---- */

enum { REMEMBERED = 4096, SMALL_BYTES = 4096 };

static struct {
  pthread_mutex_t lock;
  uint64_t versions[REMEMBERED]; /* 0: none */
  cleave_digest_t digests[REMEMBERED];
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool recall(uint64_t version, cleave_digest_t *out_digest) {
  size_t at = version % REMEMBERED;
  (void)pthread_mutex_lock(&memory.lock);
  bool found = version != 0 && memory.versions[at] == version;
  *out_digest = memory.digests[at];
  (void)pthread_mutex_unlock(&memory.lock);
  return found;
}

static void remember(uint64_t version, cleave_digest_t digest) {
  size_t at = version % REMEMBERED;
  (void)pthread_mutex_lock(&memory.lock);
  memory.versions[at] = version;
  memory.digests[at] = digest;
  (void)pthread_mutex_unlock(&memory.lock);
}

static void add_word(cleave_digest_state_t *state, uint64_t word) {
  cleave_digest_add(state, &word, sizeof word);
}

static void add_text(cleave_digest_state_t *state, const char *text) {
  const char *known = text == NULL ? "" : text;
  size_t length = strlen(known);
  add_word(state, text == NULL ? UINT64_MAX : length);
  cleave_digest_add(state, known, length);
}

static cleave_digest_t digest_data(const cleave_tensor_view_t *tensor, int64_t count) {
  cleave_digest_state_t state;
  cleave_digest_start(&state);
  if (tensor->dtype == CLEAVE_DTYPE_STRING) {
    for (int64_t k = 0; k < count; k++) {
      add_text(&state, ((const char *const *)tensor->data)[k]);
    }
  } else {
    cleave_digest_add(&state, tensor->data, (size_t)count * cleave_dtype_size(tensor->dtype));
  }
  return cleave_digest_end(&state);
}

bool cleave_blob_key_add_constant(cleave_digest_state_t *state, const cleave_tensor_view_t *tensor) {
  int64_t count = cleave_view_element_count(tensor);
  cleave_digest_t digest = {{0}};
  if (tensor->storage != CLEAVE_STORAGE_DENSE || count < 0) {
    return false;
  }
  size_t bytes = (size_t)count * cleave_dtype_size(tensor->dtype);
  bool is_small = bytes <= SMALL_BYTES;
  cleave_file_identity_t identity;
  if (!is_small && tensor->dtype != CLEAVE_DTYPE_STRING &&
      cleave_file_identify(tensor->data, bytes, &identity)) {
    digest = cleave_digest_bytes(&identity, sizeof identity);
  } else if (is_small || !recall(tensor->version, &digest)) {
    digest = digest_data(tensor, count);
    if (!is_small) {
      remember(tensor->version, digest);
    }
  }
  cleave_digest_add(state, &digest, sizeof digest);
  return true;
}

static bool digest_constants(const cleave_region_view_t *region, cleave_digest_t *out_digest) {
  cleave_digest_state_t state;
  cleave_digest_start(&state);
  for (uint32_t k = 0; k < region->value_count; k++) {
    if (region->values[k].tensor.data != NULL &&
        !cleave_blob_key_add_constant(&state, &region->values[k].tensor)) {
      return false;
    }
  }
  for (uint32_t n = 0; n < region->node_count; n++) {
    for (uint32_t k = 0; k < region->nodes[n].attribute_count; k++) {
      const cleave_attribute_view_t *attribute = &region->nodes[n].attributes[k];
      if (attribute->kind == CLEAVE_ATTRIBUTE_TENSOR) {
        add_word(&state, (uint64_t)attribute->tensor->dtype);
        add_word(&state, (uint64_t)attribute->tensor->rank);
        for (int32_t d = 0; d < attribute->tensor->rank; d++) {
          add_word(&state, (uint64_t)attribute->tensor->dims[d]);
        }
        if (!cleave_blob_key_add_constant(&state, attribute->tensor)) {
          return false;
        }
      }
    }
  }
  *out_digest = cleave_digest_end(&state);
  return true;
}

/* ---- types ---- */

static void add_indices(cleave_digest_state_t *state, const uint32_t *indices, uint32_t count) {
  add_word(state, count);
  cleave_digest_add(state, indices, count * sizeof *indices);
}

static cleave_digest_t digest_types(const cleave_region_view_t *region) {
  cleave_digest_state_t state;
  cleave_digest_start(&state);
  for (uint32_t k = 0; k < region->value_count; k++) {
    const cleave_value_view_t *value = &region->values[k];
    add_word(&state, (uint64_t)value->tensor.dtype << 32 | (uint32_t)value->tensor.rank);
    for (int32_t d = 0; d < value->tensor.rank; d++) {
      add_word(&state, value->tensor.dims[d] < 0 ? UINT64_MAX : (uint64_t)value->tensor.dims[d]);
    }
    add_text(&state, value->tensor.layout);
    add_word(&state, (uint64_t)value->tensor.storage);
    add_word(&state, value->tensor.data != NULL);
    add_word(&state, (uint64_t)value->is_output << 32 | value->producer);
  }
  for (uint32_t k = 0; k < region->node_count; k++) {
    const cleave_node_view_t *node = &region->nodes[k];
    add_text(&state, node->op);
    add_text(&state, node->domain);
    add_word(&state, (uint64_t)(uint32_t)node->opset_version << 32 | node->fusion);
    add_indices(&state, node->inputs, node->input_count);
    add_indices(&state, node->outputs, node->output_count);
  }
  add_indices(&state, region->inputs, region->input_count);
  add_indices(&state, region->outputs, region->output_count);
  return cleave_digest_end(&state);
}

/* ---- lines ---- */

/* Writes backslashes and characters that do not print in hexadecimal. */
static void add_escaped(cleave_text_t *key, const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
    cleave_text_format(key, *c < ' ' || *c == 0x7f || *c == '\\' ? "\\x%02x" : "%c", (unsigned)*c);
  }
}

void cleave_blob_key_add_line(cleave_text_t *key, const char *label, const char *text) {
  cleave_text_format(key, "%s ", label);
  add_escaped(key, text);
  cleave_text_add(key, "\n");
}

void cleave_blob_key_add_digest(cleave_text_t *key, const char *label, cleave_digest_t digest) {
  cleave_text_format(key, "%s %016" PRIx64 "%016" PRIx64 "\n", label, digest.words[0], digest.words[1]);
}

static bool add_device(cleave_text_t *key, const cleave_backend_handle_t *handle, uint32_t index) {
  cleave_device_t *device = NULL;
  bool is_known = cleave_device_acquire(handle, index, &device, NULL) == CLEAVE_OK;
  cleave_blob_key_add_line(key, "device", !is_known ? "" : device == NULL ? "host" : device->properties.name);
  cleave_device_release(device);
  return is_known;
}

bool cleave_blob_key_add_backend(cleave_text_t *key, const cleave_backend_handle_t *handle, uint32_t device) {
  const cleave_backend_t *backend = handle->backend;
  cleave_blob_key_add_line(key, "backend", backend->name);
  cleave_text_format(key, "interface %u.%u\n", (unsigned)backend->abi_major, (unsigned)backend->abi_minor);
  cleave_blob_key_add_line(key, "version", backend->version == NULL ? "" : backend->version);
  cleave_blob_key_add_digest(key, "code", cleave_registry_digest(handle));
  cleave_text_format(key, "settings %" PRIx64 "\n", (uint64_t)atomic_load(handle->settings));
  return add_device(key, handle, device);
}

bool cleave_blob_key_build(const cleave_program_request_t *request, cleave_text_t *key) {
  const cleave_region_view_t *region = &request->view->region;
  const cleave_compile_options_t *options = request->options;
  cleave_digest_t constants;
  if (!digest_constants(region, &constants)) {
    return false;
  }
  struct utsname machine;
  cleave_text_format(key, "cleave " CLEAVE_VERSION ", interface %d.%d, %s\n", CLEAVE_BACKEND_ABI_MAJOR,
                     CLEAVE_BACKEND_ABI_MINOR, uname(&machine) < 0 ? "" : machine.machine);
  if (!cleave_blob_key_add_backend(key, request->handle, options->device)) {
    return false;
  }
  cleave_text_format(key, "threads %d, profile %d\n", (int)options->threads, options->profile ? 1 : 0);
  for (uint32_t k = 0; k < options->option_count; k++) {
    cleave_text_add(key, "option ");
    add_escaped(key, options->options[k].key);
    cleave_text_add(key, "=");
    add_escaped(key, options->options[k].value);
    cleave_text_add(key, "\n");
  }
  cleave_text_format(key, "region %016" PRIx64 ", %u node%s\n", region->hash, (unsigned)region->node_count,
                     CLEAVE_PLURAL(region->node_count));
  cleave_blob_key_add_digest(key, "types", digest_types(region));
  cleave_blob_key_add_digest(key, "constants", constants);
  cleave_blob_key_add_line(key, "name", request->name);
  return !key->failed;
}

const char *cleave_blob_key_find(const char *key, const char *label, size_t *out_length) {
  size_t length = strlen(label);
  for (const char *line = key; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n' ? 1 : 0) {
    if (strncmp(line, label, length) == 0 && line[length] == ' ') {
      *out_length = strcspn(line + length + 1, "\n");
      return line + length + 1;
    }
  }
  *out_length = 0;
  return "";
}
