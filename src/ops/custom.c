// SPDX-License-Identifier: Apache-2.0
// Operators of libraries are entries of a list that only grows at its head, so that readers need no lock. An
// entry counts as long as it has a definition: one for each context in which the library is loaded. An entry
// is used again by a definition that says the same; the list is as long as there are different ones, and that
// of an entry's definitions as there were contexts at a time. Entries are freed only when nobody can hold or
// look for one (cleave_memory_end).
#include "ops/custom.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { NAME_LIMIT = 63, OPERATOR_LIMIT = 1024 };

/* The definition of the library in one context. Whoever reads that of a context holds the library in it, so
 * that only places of others change meanwhile. */
typedef struct place {
  _Atomic(const cleave_custom_operator_t *) definition; /* NULL: free */
  _Atomic(cleave_context_t *) context;
  _Atomic(void *) owner;
  struct place *next;
} place_t;

typedef struct entry {
  cleave_op_t op; /* first: a pointer to it is one to the entry */
  struct entry *next;
  _Atomic(place_t *) places;
  const char *full_name;
  const char *library; /* that brought it first */
  const char *inputs;  /* as given */
  const char *outputs;
  const char *attributes;
  cleave_arena_t arena; /* of all texts, and of itself */
} entry_t;

static _Atomic(entry_t *) entries;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

static bool is_of_library(const cleave_op_t *op) {
  return op != NULL && (op->flags & CLEAVE_OP_FROM_LIBRARY) != 0;
}

static const entry_t *entry_of(const cleave_op_t *op) {
  return (const entry_t *)(const void *)op;
}

const char *cleave_custom_op_full_name(const cleave_op_t *op) {
  return is_of_library(op) ? entry_of(op)->full_name : op->name;
}

const char *cleave_custom_op_library(const cleave_op_t *op) {
  return is_of_library(op) ? entry_of(op)->library : "";
}

static place_t *find_place(const entry_t *entry, cleave_context_t *context) {
  place_t *place = atomic_load(&entry->places);
  while (place != NULL &&
         (atomic_load(&place->definition) == NULL || atomic_load(&place->context) != context)) {
    place = place->next;
  }
  return place;
}

static bool is_defined(const entry_t *entry) {
  const place_t *place = atomic_load(&entry->places);
  while (place != NULL && atomic_load(&place->definition) == NULL) {
    place = place->next;
  }
  return place != NULL;
}

const cleave_custom_operator_t *cleave_custom_op_definition(const cleave_op_t *op, cleave_context_t *context,
                                                            void **out_owner) {
  const place_t *place = is_of_library(op) ? find_place(entry_of(op), context) : NULL;
  if (out_owner != NULL) {
    *out_owner = place != NULL ? atomic_load(&place->owner) : NULL;
  }
  return place != NULL ? atomic_load(&place->definition) : NULL;
}

const cleave_op_t *cleave_custom_op_next(const cleave_op_t *op) {
  const entry_t *entry = op == NULL ? atomic_load(&entries) : entry_of(op)->next;
  while (entry != NULL && !is_defined(entry)) {
    entry = entry->next;
  }
  return entry == NULL ? NULL : &entry->op;
}

const cleave_op_t *cleave_custom_op_find(const char *domain, const char *name) {
  const cleave_op_t *op = cleave_custom_op_next(NULL);
  while (op != NULL && (strcmp(op->name, name) != 0 || strcmp(op->domain, domain) != 0)) {
    op = cleave_custom_op_next(op);
  }
  return op;
}

cleave_status_t cleave_custom_op_fail(const cleave_op_t *op, cleave_error_t *error) {
  if (is_of_library(op)) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                            "operator '%s' is of library '%s', which is not loaded %s",
                            cleave_custom_op_full_name(op), cleave_custom_op_library(op),
                            is_defined(entry_of(op)) ? "in this context" : "any more");
  }
  if (cleave_custom_op_find(op->domain, op->name) != NULL) {
    return cleave_error_set(
        error, CLEAVE_ERROR_UNSUPPORTED,
        "operator '%s.%s': its library was loaded after the model was read; read the model "
        "again",
        op->domain, op->name);
  }
  return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                          "operator '%s.%s' belongs to no loaded library and to none of ONNX's domains",
                          op->domain, op->name);
}

cleave_status_t cleave_custom_op_check_version(const cleave_op_t *op, int32_t version,
                                               cleave_error_t *error) {
  if (!is_of_library(op) || (version >= op->since_version && version <= op->last_version)) {
    return CLEAVE_OK;
  }
  char range[40];
  (void)snprintf(range, sizeof range, op->since_version == op->last_version ? "%d" : "%d to %d",
                 (int)op->since_version, (int)op->last_version);
  return cleave_error_set(
      error, CLEAVE_ERROR_UNSUPPORTED, "operator '%s' of version %d of '%s': library '%s' has version%s %s",
      cleave_custom_op_full_name(op), (int)version, op->domain, cleave_custom_op_library(op),
      op->since_version == op->last_version ? "" : "s", range);
}

/* ---- adding ---- */

static bool is_word(const char *text, const char *more) {
  size_t length = text == NULL ? 0 : strlen(text);
  if (length == 0 || length > NAME_LIMIT || (text[0] >= '0' && text[0] <= '9')) {
    return false;
  }
  for (size_t k = 0; k < length; k++) {
    char c = text[k];
    bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!is_letter && !(c >= '0' && c <= '9') && strchr(more, c) == NULL) {
      return false;
    }
  }
  return true;
}

static bool is_domain(const char *domain) {
  return is_word(domain, ".-") && domain[0] != '.' && domain[0] != '-' && domain[strlen(domain) - 1] != '.';
}

static bool is_onnx(const char *domain) {
  return strcmp(domain, "ai.onnx") == 0 || strncmp(domain, "ai.onnx.", 8) == 0;
}

/* Everything but the texts of the schema. */
static cleave_status_t check(const cleave_custom_operator_t *definition, uint32_t index, const char *library,
                             cleave_context_t *context, cleave_error_t *error) {
  if (definition == NULL || definition->size < sizeof *definition) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                            "library '%s': operator %u: struct of %zu byte%s, version 2.0 has %zu", library,
                            (unsigned)index, definition == NULL ? 0 : definition->size,
                            CLEAVE_PLURAL(definition == NULL ? 0 : definition->size), sizeof *definition);
  }
  if (!is_domain(definition->domain) || is_onnx(definition->domain)) {
    return cleave_error_set(
        error, CLEAVE_ERROR_BACKEND,
        "library '%s': operator %u: expected a domain of its own like 'my.company', found "
        "'%.64s'",
        library, (unsigned)index, definition->domain == NULL ? "" : definition->domain);
  }
  if (!is_word(definition->name, "")) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                            "library '%s': operator %u of '%s': expected a name of letters and digits, found "
                            "'%.64s'",
                            library, (unsigned)index, definition->domain,
                            definition->name == NULL ? "" : definition->name);
  }
  bool has_kernel = definition->create != NULL || definition->execute != NULL || definition->destroy != NULL;
  const char *missing = definition->infer == NULL                   ? "infer"
                        : has_kernel && definition->create == NULL  ? "create"
                        : has_kernel && definition->execute == NULL ? "execute"
                        : has_kernel && definition->destroy == NULL ? "destroy"
                                                                    : NULL;
  if (missing != NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                            "library '%s': operator '%s.%s': function '%s' is missing", library,
                            definition->domain, definition->name, missing);
  }
  if (definition->version < 1) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                            "library '%s': operator '%s.%s': expected a version from 1, found %d", library,
                            definition->domain, definition->name, (int)definition->version);
  }
  if (definition->last_version != 0 && definition->last_version < definition->version) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                            "library '%s': operator '%s.%s': expected a last version from %d, or 0, found %d",
                            library, definition->domain, definition->name, (int)definition->version,
                            (int)definition->last_version);
  }
  const cleave_op_t *other = cleave_custom_op_find(definition->domain, definition->name);
  if (other != NULL && find_place(entry_of(other), context) != NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                            "library '%s': operator '%s.%s' exists already, of library '%s'", library,
                            definition->domain, definition->name, cleave_custom_op_library(other));
  }
  return CLEAVE_OK;
}

/* A definition that says the same, from this library, of an earlier time. */
static bool is_same(const entry_t *entry, const entry_t *made) {
  return strcmp(entry->full_name, made->full_name) == 0 && strcmp(entry->library, made->library) == 0 &&
         entry->op.since_version == made->op.since_version &&
         entry->op.last_version == made->op.last_version && entry->op.flags == made->op.flags &&
         strcmp(entry->inputs, made->inputs) == 0 && strcmp(entry->outputs, made->outputs) == 0 &&
         strcmp(entry->attributes, made->attributes) == 0;
}

static const char *copy(cleave_arena_t *arena, const char *text) {
  text = text == NULL ? "" : text;
  return cleave_arena_copy_text(arena, text, strlen(text));
}

static cleave_status_t fill(entry_t *entry, const cleave_custom_operator_t *definition, const char *library,
                            cleave_error_t *error) {
  cleave_arena_t *arena = &entry->arena;
  char place[224];
  (void)snprintf(place, sizeof place, "library '%.60s': operator '%s.%s'", library, definition->domain,
                 definition->name);
  CLEAVE_TRY(cleave_custom_op_parse(definition, place, arena, &entry->op, error));
  entry->op.name = copy(arena, definition->name);
  entry->op.domain = copy(arena, definition->domain);
  entry->op.id = CLEAVE_OP_ID_CUSTOM;
  entry->op.since_version = definition->version;
  entry->op.last_version = definition->last_version == 0 ? definition->version : definition->last_version;
  entry->op.flags = CLEAVE_OP_FROM_LIBRARY | (definition->is_commutative ? CLEAVE_OP_COMMUTATIVE : 0u) |
                    (definition->is_stateful ? CLEAVE_OP_STATEFUL : 0u);
  entry->full_name = cleave_arena_format(arena, "%s.%s", definition->domain, definition->name);
  entry->library = copy(arena, library);
  entry->inputs = copy(arena, definition->inputs);
  entry->outputs = copy(arena, definition->outputs);
  entry->attributes = copy(arena, definition->attributes);
  bool is_complete = entry->op.name != NULL && entry->op.domain != NULL && entry->full_name != NULL &&
                     entry->library != NULL && entry->inputs != NULL && entry->outputs != NULL &&
                     entry->attributes != NULL;
  return is_complete ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

/* An operator of another context with the same name must be the same. */
static cleave_status_t check_others(const entry_t *made, cleave_error_t *error) {
  const cleave_op_t *other = cleave_custom_op_find(made->op.domain, made->op.name);
  if (other == NULL || is_same(entry_of(other), made)) {
    return CLEAVE_OK;
  }
  return cleave_error_set(
      error, CLEAVE_ERROR_BACKEND,
      "library '%s': operator '%s' exists already with another definition, of library '%s' in "
      "another context",
      made->library, made->full_name, cleave_custom_op_library(other));
}

/* A free place of an entry, or a new one. */
static cleave_status_t take_place(entry_t *entry, place_t **out_place, cleave_error_t *error) {
  place_t *place = atomic_load(&entry->places);
  while (place != NULL && atomic_load(&place->definition) != NULL) {
    place = place->next;
  }
  *out_place = place;
  if (place != NULL) {
    return CLEAVE_OK;
  }
  place = cleave_arena_allocate(&entry->arena, 1, sizeof *place);
  CLEAVE_TRY_MEMORY(place, error);
  place->next = atomic_load(&entry->places);
  atomic_store(&entry->places, place);
  *out_place = place;
  return CLEAVE_OK;
}

/* Frees the entries of operators that are defined in no context. Nothing points to them any more, and nobody
 * looks one up meanwhile. */
static void end(void) {
  (void)pthread_mutex_lock(&adding);
  entry_t *kept = NULL;
  for (entry_t *entry = atomic_load(&entries); entry != NULL;) {
    entry_t *next = entry->next;
    cleave_arena_t arena = entry->arena;
    if (is_defined(entry)) {
      entry->next = kept;
      kept = entry;
    } else {
      cleave_arena_deinit(&arena);
    }
    entry = next;
  }
  atomic_store(&entries, kept);
  (void)pthread_mutex_unlock(&adding);
}

/* Its entry, new or used again, with the definition in place. */
static cleave_status_t add(const cleave_custom_operator_t *definition, const char *library,
                           cleave_context_t *context, void *owner, cleave_error_t *error) {
  cleave_arena_t arena = {0};
  entry_t *made = cleave_arena_allocate(&arena, 1, sizeof *made);
  CLEAVE_TRY_MEMORY(made, error);
  made->arena = arena;
  cleave_status_t status = fill(made, definition, library, error);
  CLEAVE_THEN(status, check_others(made, error));
  entry_t *entry = atomic_load(&entries);
  while (status == CLEAVE_OK && entry != NULL && !is_same(entry, made)) {
    entry = entry->next;
  }
  if (status != CLEAVE_OK || entry != NULL) {
    arena = made->arena;
    cleave_arena_deinit(&arena);
  } else {
    cleave_memory_at_end(end);
    made->next = atomic_load(&entries);
    entry = made;
    atomic_store(&entries, made);
  }
  place_t *place = NULL;
  CLEAVE_THEN(status, take_place(entry, &place, error));
  if (status == CLEAVE_OK) {
    atomic_store(&place->owner, owner);
    atomic_store(&place->context, context);
    atomic_store(&place->definition, definition);
  }
  return status;
}

cleave_status_t cleave_custom_ops_add(cleave_context_t *context,
                                      const cleave_custom_operator_t *const *definitions, uint32_t count,
                                      const char *library, void *owner, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  if (count > OPERATOR_LIMIT || (count > 0 && definitions == NULL)) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                            "library '%s': %u operator%s: expected a list of at most %d", library,
                            (unsigned)count, CLEAVE_PLURAL(count), OPERATOR_LIMIT);
  }
  (void)pthread_mutex_lock(&adding);
  for (uint32_t k = 0; k < count && status == CLEAVE_OK; k++) {
    status = check(definitions[k], k, library, context, error);
    CLEAVE_THEN(status, add(definitions[k], library, context, owner, error));
  }
  (void)pthread_mutex_unlock(&adding);
  if (status != CLEAVE_OK) {
    cleave_custom_ops_remove(owner);
  }
  return status;
}

void cleave_custom_ops_remove(const void *owner) {
  (void)pthread_mutex_lock(&adding);
  for (entry_t *entry = atomic_load(&entries); entry != NULL; entry = entry->next) {
    for (place_t *place = atomic_load(&entry->places); place != NULL; place = place->next) {
      if (atomic_load(&place->owner) == owner) {
        atomic_store(&place->definition, NULL);
        atomic_store(&place->owner, NULL);
      }
    }
  }
  (void)pthread_mutex_unlock(&adding);
}
