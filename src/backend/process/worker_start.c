// SPDX-License-Identifier: Apache-2.0
// Making a worker's process. It is started with posix_spawn, so that no copy of this process with its threads
// and locks ever runs, and leads a process group of its own, so that what the library starts ends with it.
#define _GNU_SOURCE  // memfd_create, pipe2
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/process/worker_process.h"
#include "base/status.h"
#include "system/installed.h"

/* ---- worker find ---- */

static const char WORKER[] = "cleave_worker";

/* CLEAVE_ERROR_IO with the places that were looked at if there is none. */
static cleave_status_t cleave_worker_find(char *path, size_t size, cleave_error_t *error) {
  const char *given = getenv("CLEAVE_WORKER");
  if (given != NULL && given[0] != '\0') {
    int length = snprintf(path, size, "%s", given);
    bool is_there = length > 0 && (size_t)length < size && access(path, X_OK) == 0;
    return is_there ? CLEAVE_OK
                    : cleave_error_set(error, CLEAVE_ERROR_IO, "%s: no program (from CLEAVE_WORKER)", given);
  }
  if (cleave_installed_find(WORKER, path, size) && access(path, X_OK) == 0) {
    return CLEAVE_OK;
  }
  return cleave_error_set(error, CLEAVE_ERROR_IO,
                          "no program for isolated libraries: looked for '" CLEAVE_LIBEXECDIR
                          "/cleave/%s' above the program and at %s; set CLEAVE_WORKER to its path",
                          WORKER, cleave_installed_folder());
}

extern char **environ;

/* ---- shared memory ---- */

static int make_memory(const char *name) {
  return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/* Beyond what files of this process may have, a signal would end it. */
static bool may_have(size_t bytes) {
  struct rlimit limit;
  bool is_allowed = bytes <= INT64_MAX && (getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
                                           limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur);
  errno = is_allowed ? errno : EFBIG;
  return is_allowed;
}

int cleave_worker_make_memory(const char *name, size_t bytes) {
  int fd = may_have(bytes) ? make_memory(name) : -1;
  if (fd >= 0 && (ftruncate(fd, (off_t)bytes) != 0 ||
                  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
    (void)close(fd);
    return -1;
  }
  return fd;
}

/* Written, not mapped and copied: a model file that shrinks meanwhile is an error then, and no signal. */
int cleave_worker_make_constant(const void *data, size_t bytes) {
  int fd = may_have(bytes) ? make_memory("cleave constant") : -1;
  size_t at = 0;
  while (fd >= 0 && at < bytes) {
    size_t step = bytes - at > (size_t)1 << 30 ? (size_t)1 << 30 : bytes - at;
    ssize_t written = write(fd, (const char *)data + at, step);
    if (written <= 0 && errno != EINTR) {
      (void)close(fd);
      return -1;
    }
    at += written > 0 ? (size_t)written : 0;
  }
  if (fd >= 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    (void)close(fd);
    return -1;
  }
  return fd;
}

/* ---- starting ---- */

typedef struct ends {
  int socket[2];
  int output[2];
  int record;
} ends_t;

static void close_fd(int *fd) {
  if (*fd >= 0) {
    (void)close(*fd);
  }
  *fd = -1;
}

static void close_ends(ends_t *ends) {
  close_fd(&ends->socket[0]);
  close_fd(&ends->socket[1]);
  close_fd(&ends->output[0]);
  close_fd(&ends->output[1]);
  close_fd(&ends->record);
}

/* A descriptor above all that a worker has, so that putting one in its place never takes another's. */
static bool move_up(int *fd) {
  int moved = fcntl(*fd, F_DUPFD_CLOEXEC, CLEAVE_WORKER_RECORD + 1);
  close_fd(fd);
  *fd = moved;
  return moved >= 0;
}

static bool make_ends(ends_t *ends) {
  *ends = (ends_t){{-1, -1}, {-1, -1}, -1};
  return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends->socket) == 0 &&
         pipe2(ends->output, O_CLOEXEC) == 0 && fcntl(ends->output[0], F_SETFL, O_NONBLOCK) == 0 &&
         (ends->record = cleave_worker_make_memory("cleave record", sizeof(cleave_fault_record_t))) >= 0 &&
         move_up(&ends->socket[1]) && move_up(&ends->output[1]) && move_up(&ends->record);
}

/* Descriptors of the new process, its group and its signals. What else is open here it closes itself. */
static int spawn(const char *path, const ends_t *ends, pid_t *out_pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  sigset_t all;
  (void)sigemptyset(&none);
  (void)sigfillset(&all);
  int status = posix_spawn_file_actions_init(&actions);
  if (status != 0) {
    return status;
  }
  status = posix_spawnattr_init(&attributes);
  if (status == 0) {
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawnattr_setflags(&attributes,
                                   POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    status = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    status =
        status != 0 ? status : posix_spawn_file_actions_adddup2(&actions, ends->output[1], STDOUT_FILENO);
    status =
        status != 0 ? status : posix_spawn_file_actions_adddup2(&actions, ends->output[1], STDERR_FILENO);
    status = status != 0 ? status
                         : posix_spawn_file_actions_adddup2(&actions, ends->socket[1], CLEAVE_WORKER_SOCKET);
    status =
        status != 0 ? status : posix_spawn_file_actions_adddup2(&actions, ends->record, CLEAVE_WORKER_RECORD);
    char *arguments[] = {(char *)(uintptr_t) "cleave_worker", (char *)(uintptr_t)CLEAVE_VERSION, NULL};
    status = status != 0 ? status : posix_spawn(out_pid, path, &actions, &attributes, arguments, environ);
    (void)posix_spawnattr_destroy(&attributes);
  }
  (void)posix_spawn_file_actions_destroy(&actions);
  return status;
}

cleave_status_t cleave_worker_spawn(cleave_worker_t *worker, cleave_error_t *error) {
  char path[1024];
  ends_t ends;
  CLEAVE_TRY(cleave_worker_find(path, sizeof path, error));
  cleave_status_t status = CLEAVE_OK;
  void *record = MAP_FAILED;
  int spawned = 0;
  if (!make_ends(&ends)) {
    CLEAVE_TRY_CLEANUP(cleave_error_set(error, CLEAVE_ERROR_IO, "library '%s': no process for it: %s",
                                        worker->library, strerror(errno)));
  }
  record = mmap(NULL, sizeof *worker->record, PROT_READ | PROT_WRITE, MAP_SHARED, ends.record, 0);
  if (record == MAP_FAILED) {
    CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
  }
  worker->record = record;
  spawned = spawn(path, &ends, &worker->pid);
  if (spawned != 0) {
    worker->pid = -1;
    CLEAVE_TRY_CLEANUP(
        cleave_error_set(error, CLEAVE_ERROR_IO, "%s: does not start: %s", path, strerror(spawned)));
  }
  atomic_store(&worker->process, worker->pid);
  worker->owner = getpid();
  worker->socket = ends.socket[0];
  worker->output = ends.output[0];
  ends.socket[0] = -1;
  ends.output[0] = -1;
cleanup:
  close_ends(&ends);
  return status;
}
