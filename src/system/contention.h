// SPDX-License-Identifier: Apache-2.0
/*
 * Are processors taken by other processes? OpenMP's threads spin while they wait for each other. That is best
 * on an idle machine; if another process wants the same processor, they take the time that the late thread
 * needs. While runs are active, a thread of the library looks at how long OpenMP's threads waited for a
 * processor, and as long as they do, it makes libgomp's threads sleep instead of spin. It does nothing if the
 * environment sets OMP_WAIT_POLICY or GOMP_SPINCOUNT, if OpenMP is missing, or if the kernel does not tell
 * (/proc/self/task/N/schedstat).
 */
#ifndef CLEAVE_SYSTEM_CONTENTION_H
#define CLEAVE_SYSTEM_CONTENTION_H

#include <stdbool.h>
#include <stdint.h>

/* The first user starts the thread, the last one ends it. Thread-safe. Without a thread nothing is watched.
 */
void cleave_contention_retain(void);
void cleave_contention_release(void);

/* Callers put these around a run on `threads` threads; with 1, the calling thread alone is watched.
 * Thread-safe; they neither wait nor allocate, but the first run on a thread asks OpenMP for its threads. */
void cleave_contention_enter(int32_t threads);
void cleave_contention_leave(void);

/* The run at work uses one thread because processors are taken: that it does not wait says little. */
void cleave_contention_run_alone(void);

/* Threads wait for processors now. */
bool cleave_contention_found(void);

#endif /* CLEAVE_SYSTEM_CONTENTION_H */
