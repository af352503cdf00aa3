// SPDX-License-Identifier: Apache-2.0
// What an isolated library says of itself, as the structs that it would be in this process: sizes, names,
// texts and missing functions are its own, for those who check them; the functions that it has are of this
// process. Lists are as long as it says they are, or not there.
#include <stdio.h>
#include <string.h>

#include "backend/isolate/isolate_internal.h"

enum { MAX_NAME = 256, MAX_TEXT = 1 << 16, MIN_ENTRY = 4 };

typedef struct reader {
  cleave_isolate_t *isolate;
  cleave_wire_in_t *in;
  bool lacks_memory;
} reader_t;

/* ---- fields ---- */

static void *make(reader_t *reader, uint32_t count, size_t size) {
  void *memory = cleave_arena_allocate(&reader->isolate->arena, count, size);
  reader->lacks_memory = reader->lacks_memory || memory == NULL;
  return memory;
}

static const char *read_text(reader_t *reader, size_t most) {
  const char *text = cleave_wire_text(reader->in);
  if (text == NULL) {
    return NULL;
  }
  const char *copy = cleave_arena_copy_text(&reader->isolate->arena, text, strnlen(text, most));
  reader->lacks_memory = reader->lacks_memory || copy == NULL;
  return copy;
}

static size_t read_size(reader_t *reader, size_t known) {
  uint64_t size = cleave_wire_u64(reader->in);
  return size > known ? known : (size_t)size;
}

/* Reads how many entries a list has, and returns how many of them follow: all of them up to `most`, or none
 * if there is no list. */
static uint32_t read_counts(reader_t *reader, uint32_t most, uint32_t *out_count) {
  *out_count = cleave_wire_u32(reader->in);
  uint32_t sent = cleave_wire_count(reader->in, MIN_ENTRY);
  if (sent != 0 && sent != (*out_count < most ? *out_count : most)) {
    reader->in->failed = true;
    sent = 0;
  }
  return sent;
}

/* ---- what it adds to cleave ---- */

static const void *read_operator(reader_t *reader, uint32_t number) {
  cleave_isolated_operator_t *op = make(reader, 1, sizeof *op);
  if (op == NULL) {
    return NULL;
  }
  op->isolate = reader->isolate;
  op->number = number;
  cleave_custom_operator_t *definition = &op->definition;
  definition->size = read_size(reader, sizeof *definition);
  if (definition->size < sizeof *definition) {
    return definition;
  }
  definition->domain = read_text(reader, MAX_NAME);
  definition->name = read_text(reader, MAX_NAME);
  definition->version = (int32_t)cleave_wire_u32(reader->in);
  definition->last_version = (int32_t)cleave_wire_u32(reader->in);
  definition->inputs = read_text(reader, MAX_TEXT);
  definition->outputs = read_text(reader, MAX_TEXT);
  definition->attributes = read_text(reader, MAX_TEXT);
  uint32_t has = cleave_wire_u32(reader->in);
  definition->is_commutative = (has & CLEAVE_OPERATOR_IS_COMMUTATIVE) != 0;
  definition->is_stateful = (has & CLEAVE_OPERATOR_IS_STATEFUL) != 0;
  (void)snprintf(op->name, sizeof op->name, "%.31s.%.63s",
                 definition->domain == NULL ? "" : definition->domain,
                 definition->name == NULL ? "" : definition->name);
  cleave_isolate_fill_operator(op, has);
  return definition;
}

static const void *read_partitioner(reader_t *reader, uint32_t number) {
  cleave_isolated_partitioner_t *partitioner = make(reader, 1, sizeof *partitioner);
  if (partitioner == NULL) {
    return NULL;
  }
  partitioner->isolate = reader->isolate;
  partitioner->number = number;
  cleave_custom_partitioner_t *definition = &partitioner->definition;
  definition->size = read_size(reader, sizeof *definition);
  if (definition->size >= sizeof *definition) {
    definition->name = read_text(reader, MAX_NAME);
    definition->backend = read_text(reader, MAX_NAME);
    cleave_isolate_fill_partitioner(partitioner, cleave_wire_u32(reader->in));
  }
  return definition;
}

static const void *read_pass(reader_t *reader, uint32_t number) {
  cleave_isolated_pass_t *pass = make(reader, 1, sizeof *pass);
  if (pass == NULL) {
    return NULL;
  }
  pass->isolate = reader->isolate;
  pass->number = number;
  cleave_custom_pass_t *definition = &pass->definition;
  definition->size = read_size(reader, sizeof *definition);
  if (definition->size >= sizeof *definition) {
    definition->name = read_text(reader, MAX_NAME);
    cleave_isolate_fill_pass(pass, cleave_wire_u32(reader->in));
  }
  return definition;
}

static bool is_there(reader_t *reader) {
  return cleave_wire_index(reader->in, 2) == 1;
}

/* The entries that were sent, each as `read_entry` makes it, or NULL for one that is not there. */
static const void *read_entries(reader_t *reader,
                                const void *(*read_entry)(reader_t *reader, uint32_t number),
                                uint32_t *out_count) {
  uint32_t sent = read_counts(reader, CLEAVE_MAX_EXTENSIONS, out_count);
  const void **list = sent == 0 ? NULL : make(reader, sent, sizeof *list);
  for (uint32_t k = 0; list != NULL && k < sent && !reader->in->failed; k++) {
    list[k] = is_there(reader) ? read_entry(reader, k) : NULL;
  }
  return list;
}

static const char *const *read_texts(reader_t *reader, uint32_t most, uint32_t *out_count,
                                     uint32_t *out_sent) {
  *out_sent = read_counts(reader, most, out_count);
  const char **list = *out_sent == 0 ? NULL : make(reader, *out_sent, sizeof *list);
  for (uint32_t k = 0; list != NULL && k < *out_sent && !reader->in->failed; k++) {
    list[k] = read_text(reader, MAX_NAME);
  }
  return list;
}

/* No more entries are read than were sent. */
static void read_rule_files(reader_t *reader, cleave_backend_extensions_t *extensions) {
  uint32_t sent = 0;
  extensions->rule_files = read_texts(reader, CLEAVE_MAX_RULE_FILES, &extensions->rule_file_count, &sent);
  extensions->rule_file_count = extensions->rule_files == NULL ? extensions->rule_file_count : sent;
}

static void read_extensions(reader_t *reader) {
  cleave_backend_extensions_t *extensions = &reader->isolate->extensions;
  if (!is_there(reader)) {
    return;
  }
  extensions->size = read_size(reader, sizeof *extensions);
  if (extensions->size >= sizeof *extensions) {
    extensions->operators = read_entries(reader, read_operator, &extensions->operator_count);
    extensions->partitioners = read_entries(reader, read_partitioner, &extensions->partitioner_count);
    extensions->passes = read_entries(reader, read_pass, &extensions->pass_count);
    read_rule_files(reader, extensions);
  }
  reader->isolate->table.extensions = extensions;
}

/* ---- the table ---- */

/* Take the place of functions that are called otherwise here, so that the table is complete. */
static cleave_status_t initialise_nothing(const cleave_host_t *host, void **out_state,
                                          cleave_message_t *message) {
  (void)host;
  (void)out_state;
  (void)snprintf(message->text, sizeof message->text, "this function is not called for isolated libraries");
  return CLEAVE_ERROR_INTERNAL;
}

static void destroy_nothing(void *state) {
  (void)state;
}

static void fill_functions(cleave_backend_t *table, uint32_t has) {
  table->initialise = has & CLEAVE_HAS_INITIALISE ? initialise_nothing : NULL;
  table->destroy = has & CLEAVE_HAS_DESTROY ? destroy_nothing : NULL;
  table->supports = has & CLEAVE_HAS_SUPPORTS ? cleave_isolate_supports : NULL;
  table->compile = has & CLEAVE_HAS_COMPILE ? cleave_isolate_compile : NULL;
  table->unload = has & CLEAVE_HAS_UNLOAD ? cleave_isolate_unload : NULL;
  table->info = has & CLEAVE_HAS_INFO ? cleave_isolate_info : NULL;
  table->run = has & CLEAVE_HAS_RUN ? cleave_isolate_run : NULL;
  table->profile = has & CLEAVE_HAS_PROFILE ? cleave_isolate_profile : NULL;
  table->cost = has & CLEAVE_HAS_COST ? cleave_isolate_cost : NULL;
  table->review = has & CLEAVE_HAS_REVIEW ? cleave_isolate_review : NULL;
  table->configure = has & CLEAVE_HAS_CONFIGURE ? cleave_isolate_configure : NULL;
  table->devices = has & CLEAVE_HAS_DEVICES ? &cleave_isolate_devices : NULL;
  table->imperative = has & CLEAVE_HAS_IMPERATIVE ? &cleave_isolate_imperative : NULL;
  table->blobs = has & CLEAVE_HAS_BLOBS ? &cleave_isolate_blobs : NULL;
  table->adds = (has & CLEAVE_HAS_ADDS) != 0;
  table->takes_sparse = (has & CLEAVE_HAS_SPARSE) != 0;
}

cleave_status_t cleave_isolate_read_table(cleave_isolate_t *isolate, cleave_wire_in_t *reply) {
  reader_t reader = {.isolate = isolate, .in = reply};
  cleave_backend_t *table = &isolate->table;
  *table = (cleave_backend_t){.size = read_size(&reader, sizeof *table)};
  table->abi_major = cleave_wire_u32(reply);
  table->abi_minor = cleave_wire_u32(reply);
  uint32_t has = cleave_wire_u32(reply);
  table->name = read_text(&reader, MAX_NAME);
  table->version = read_text(&reader, MAX_NAME);
  table->description = read_text(&reader, MAX_NAME);
  fill_functions(table, has);
  read_extensions(&reader);
  uint32_t sent = 0;
  table->option_keys = read_texts(&reader, CLEAVE_MAX_OPTION_KEYS, &table->option_key_count, &sent);
  return reader.lacks_memory ? CLEAVE_ERROR_OUT_OF_MEMORY : reply->failed ? CLEAVE_ERROR_FORMAT : CLEAVE_OK;
}
