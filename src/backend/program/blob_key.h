// SPDX-License-Identifier: Apache-2.0
/*
 * The key of a compiled region, the same in all processes: everything that it depends on, as lines of text.
 * Two requests with the same text get the same program.
 *
 *   cleave 0.1.0, interface 2.0, x86_64       the program that asks, and the machine's architecture
 *   backend mirror
 *   interface 2.0                             that the backend was made for
 *   version 1.0                               of the backend
 *   code 8f...                                digest of its library as it is loaded
 *   settings 0                                hash of the settings that `configure` got
 *   device Mirror 0                           name of the device; "host" without devices
 *   threads 4, profile 0
 *   option level=3                            one line each, by key
 *   region 1a..., 12 nodes                    hash of the region (cleave_region_view_t)
 *   types 77...                               digest of values, nodes and how they hang together
 *   constants 03...                           digest of all constants: of their content, or of the mapped
 *                                             file (device, inode, size, times) and place they lie in
 *   name Relu_0                               of a node on its own, which is part of its program
 */
#ifndef CLEAVE_BACKEND_PROGRAM_BLOB_KEY_H
#define CLEAVE_BACKEND_PROGRAM_BLOB_KEY_H

#include "backend/program/program_cache.h"
#include "base/text.h"
#include "system/digest.h"

/* Appends the key of a request. False if the request has none (sparse constants), or without memory.
 * Thread-safe; constants are read once per version, those of mapped files never. */
bool cleave_blob_key_build(const cleave_program_request_t *request, cleave_text_t *key);

/* The pieces that keys of other things are made of. */

/* The content of a constant, by itself or by where it lies; its type is left out. False: it has neither. */
bool cleave_blob_key_add_constant(cleave_digest_state_t *state, const cleave_tensor_view_t *tensor);
/* The lines of a backend, from its name to its device. False if the device cannot be had. */
bool cleave_blob_key_add_backend(cleave_text_t *key, const cleave_backend_handle_t *handle, uint32_t device);
/* A label and a text, in which what does not print is escaped. */
void cleave_blob_key_add_line(cleave_text_t *key, const char *label, const char *text);
void cleave_blob_key_add_digest(cleave_text_t *key, const char *label, cleave_digest_t digest);

/* Keys of plans (runtime/plans/kept_plan.h), and no others, begin with this. */
#define CLEAVE_BLOB_KEY_PLAN "plan\n"

/* Finds what follows `label` and a space in the line that begins so ("mirror" for "backend"); "" if there is
 * no such line. *out_length is its length. */
const char *cleave_blob_key_find(const char *key, const char *label, size_t *out_length);

#endif /* CLEAVE_BACKEND_PROGRAM_BLOB_KEY_H */
