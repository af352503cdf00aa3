// SPDX-License-Identifier: Apache-2.0
/*
 * What the stand-ins of NVIDIA's libraries share: faults on demand, memory of devices, and streams. The
 * stand-in of libcuda has all of it; those of cuBLASLt and cuDNN are linked against it.
 *
 * Work on a stream waits until somebody waits for the stream, and then happens in order, with what it waits
 * for before: whoever reads or frees too early is found out. Memory of a device cannot be touched but by work
 * of that device.
 *
 * By the environment, as it is when a call is made:
 *   CLEAVE_CUDA_FAIL=NAME[:N]=CODE[,...]  the call of this name returns the code; with N, the Nth one alone.
 * "late" is the work on streams. Errors above 700, and 46, stay: the device is lost. Another value begins
 * anew. A call of an algorithm of cuBLASLt or cuDNN has the name NAME.0, NAME.1, ..., too.
 *   CLEAVE_CUDA_TIMES=NAME=MS/MS/...[,...]  what each of its algorithms takes, for events; 2/6/6 otherwise.
 *   CLEAVE_CUDA_DEVICES, _MEMORY, _CAPABILITY, _DRIVER    1; bytes of each; 90; 13000
 */
#ifndef CLEAVE_TESTS_STAND_IN_H
#define CLEAVE_TESTS_STAND_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/library/driver.h"

#define STAND_IN_EXPORT __attribute__((visibility("default")))

enum { STAND_IN_MAX_DEVICES = 4 };

/* The error that this call returns now, or 0. */
STAND_IN_EXPORT int32_t stand_in_fault(const char *name);
STAND_IN_EXPORT long stand_in_number(const char *name, long otherwise);

/* Every entry point begins with one and ends with the other. The result of the first is an error of the
 * device, or a fault; the lock is taken anyway. */
STAND_IN_EXPORT int32_t stand_in_enter(const char *name);
STAND_IN_EXPORT int32_t stand_in_leave(int32_t result);

/* The device of the calling thread's context, or -1. */
int32_t stand_in_device(void);

/* ---- memory (driver_memory.c), under the lock ---- */

int32_t stand_in_allocate(int32_t device, size_t bytes, cuda_address_t *out_address);
int32_t stand_in_free(cuda_address_t address);
/* Whether the bytes are inside of one block of the device. */
STAND_IN_EXPORT bool stand_in_holds(int32_t device, cuda_address_t address, size_t bytes);
/* Between these, memory of the device can be touched. */
void stand_in_open(int32_t device);
void stand_in_close(int32_t device);
bool stand_in_is_pinned(const void *memory, size_t bytes);
void *stand_in_pin(size_t bytes);
bool stand_in_unpin(void *memory);
size_t stand_in_live_blocks(void);

/* ---- streams (driver_queue.c), under the lock ---- */

/* Work: `run` happens once for a stream, or each time that a graph is launched; `context` is freed at last
 * (free). */
typedef int32_t (*stand_in_work_t)(void *context);
STAND_IN_EXPORT int32_t stand_in_enqueue(cuda_stream_t stream, stand_in_work_t run, void *context);
/* The error of this call of an algorithm, or 0; the milliseconds that it takes. */
STAND_IN_EXPORT int32_t stand_in_algorithm(const char *name, int algorithm, double *out_milliseconds);
/* Called by work: events behind it are reached so much later. Nothing else takes time. */
STAND_IN_EXPORT void stand_in_spend(double milliseconds);
/* Does what is on the stream. */
int32_t stand_in_drain(cuda_stream_t stream);
bool stand_in_is_capturing(cuda_stream_t stream);
int32_t stand_in_stream_device(cuda_stream_t stream);
/* What went wrong on the device, and stays. */
void stand_in_lose(int32_t error);

#endif /* CLEAVE_TESTS_STAND_IN_H */
