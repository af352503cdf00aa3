// SPDX-License-Identifier: Apache-2.0
// Starting, asking and ending a worker. The process is started with posix_spawn, so that no copy of this
// process with its threads and locks ever runs, leads a process group of its own, so that what the library
// starts ends with it, and is reaped here and nowhere else. Its death is noticed by the socket's end or,
// where a child of its own still holds that, by looking now and then.
#define _GNU_SOURCE  // memfd_create, pipe2
#include "backend/worker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/worker_find.h"
#include "base/clock.h"

extern char **environ;

enum {
  LOOK_EVERY_MS = 100,      /* for a death that the socket does not show */
  GRACE_MS = 2000,          /* to end by itself */
  USUAL_REPLY = 8 << 10,    /* bytes: there is always memory for it */
  LONGEST_REPLY = 64 << 20, /* bytes */
  STATUS_COUNT = CLEAVE_ERROR_INTERNAL + 1,
};

/* ---- shared memory ---- */

static int make_memory(const char *name) {
  return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

int cleave_worker_make_memory(const char *name, size_t bytes) {
  int fd = make_memory(name);
  if (fd >= 0 && (bytes > INT64_MAX || ftruncate(fd, (off_t)bytes) != 0 ||
                  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
    (void)close(fd);
    return -1;
  }
  return fd;
}

/* Written, not mapped and copied: a model file that shrinks meanwhile is an error then, and no signal. */
int cleave_worker_make_constant(const void *data, size_t bytes) {
  int fd = make_memory("cleave constant");
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

static void free_worker(cleave_worker_t *worker) {
  close_fd(&worker->socket);
  close_fd(&worker->output);
  if (worker->record != NULL) {
    (void)munmap(worker->record, sizeof *worker->record);
  }
  cleave_wire_deinit(&worker->request);
  cleave_worker_constants_deinit(&worker->constants);
  cleave_free(worker->frame.data);
  (void)pthread_mutex_destroy(&worker->lock);
  cleave_free(worker);
}

cleave_status_t cleave_worker_start(const char *name, cleave_log_t *log, cleave_worker_t **out_worker,
                                    cleave_error_t *error) {
  char path[1024];
  ends_t ends;
  *out_worker = NULL;
  CLEAVE_TRY(cleave_worker_find(path, sizeof path, error));
  cleave_worker_t *worker = cleave_allocate_zeroed(1, sizeof *worker);
  if (worker == NULL || pthread_mutex_init(&worker->lock, NULL) != 0) {
    cleave_free(worker);
    return cleave_error_out_of_memory(error);
  }
  worker->pid = -1;
  worker->socket = -1;
  worker->output = -1;
  worker->frame.fd = -1;
  (void)snprintf(worker->library, sizeof worker->library, "%s", name);
  worker->log = log;
  atomic_init(&worker->references, 1);
  cleave_status_t status = CLEAVE_OK;
  worker->frame.data = cleave_allocate(USUAL_REPLY, 1);
  worker->frame.capacity = worker->frame.data == NULL ? 0 : USUAL_REPLY;
  int spawned = 0;
  if (worker->frame.data == NULL) {
    ends = (ends_t){{-1, -1}, {-1, -1}, -1};
    CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
  }
  if (!make_ends(&ends)) {
    CLEAVE_TRY_CLEANUP(cleave_error_set(error, CLEAVE_ERROR_IO, "library '%s': no process for it: %s", name,
                                        strerror(errno)));
  }
  void *record = mmap(NULL, sizeof *worker->record, PROT_READ | PROT_WRITE, MAP_SHARED, ends.record, 0);
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
  *out_worker = worker;
  worker = NULL;
cleanup:
  close_ends(&ends);
  if (worker != NULL) {
    free_worker(worker);
  }
  return status;
}

/* ---- what the library prints ---- */

static void end_line(cleave_worker_t *worker) {
  if (worker->line_length > 0) {
    cleave_log(worker->log, CLEAVE_LOG_DETAIL, "library '%s' prints: %.*s", worker->library,
               (int)worker->line_length, worker->line);
  }
  worker->line_length = 0;
}

/* Reads what is there, once: a library that prints without end does not hold its caller. */
static void drain_output(cleave_worker_t *worker) {
  char bytes[4096];
  ssize_t got = worker->output < 0 ? 0 : read(worker->output, bytes, sizeof bytes);
  if (got == 0) {
    close_fd(&worker->output);
  }
  for (ssize_t k = 0; k < got; k++) {
    if (bytes[k] == '\n' || worker->line_length == sizeof worker->line) {
      end_line(worker);
    }
    if (bytes[k] != '\n') {
      worker->line[worker->line_length++] =
          (unsigned char)bytes[k] < ' ' && bytes[k] != '\t' ? '?' : bytes[k];
    }
  }
}

/* ---- waiting ---- */

/* Has the process ended? It is not reaped yet. Where somebody else reaped it, it has. */
static bool has_ended(const cleave_worker_t *worker) {
  siginfo_t info = {.si_pid = 0};
  return waitid(P_PID, (id_t)worker->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

static bool wait_for(void *context, short events) {
  cleave_worker_t *worker = context;
  for (;;) {
    uint64_t now = cleave_clock_now();
    if (now >= worker->deadline) {
      return false;
    }
    uint64_t left = (worker->deadline - now) / 1000000 + 1;
    struct pollfd pollers[2] = {{.fd = worker->socket, .events = events},
                                {.fd = worker->output, .events = POLLIN}};
    int ready = poll(pollers, 2, left < LOOK_EVERY_MS ? (int)left : LOOK_EVERY_MS);
    if (ready > 0 && pollers[1].revents != 0) {
      drain_output(worker);
    }
    if (ready > 0 && pollers[0].revents != 0) {
      return true;
    }
    if (ready == 0 && has_ended(worker)) {
      worker->has_died = true;
      return false;
    }
  }
}

static cleave_channel_t channel_of(cleave_worker_t *worker) {
  return (cleave_channel_t){
      .socket = worker->socket, .wait = wait_for, .context = worker, .limit = LONGEST_REPLY};
}

/* ---- ending ---- */

/* Waits until it has ended by itself. */
static bool wait_end(const cleave_worker_t *worker, uint32_t limit_ms) {
  uint64_t deadline = cleave_clock_now() + (uint64_t)limit_ms * 1000000;
  while (!has_ended(worker)) {
    if (cleave_clock_now() >= deadline) {
      return false;
    }
    (void)poll(NULL, 0, 1);
  }
  return true;
}

/* Ends the group of the process while its number is still its own, then reaps it. Returns the status of
 * waitpid, or -1 where somebody else has it. */
static int end_process(cleave_worker_t *worker) {
  int status = -1;
  if (worker->pid <= 0 || worker->owner != getpid()) {
    return status;
  }
  siginfo_t info = {.si_pid = 0};
  if (waitid(P_PID, (id_t)worker->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0) {
    (void)kill(-worker->pid, SIGKILL);
    (void)kill(worker->pid, SIGKILL);
    while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  for (int k = 0; k < 16 && worker->output >= 0; k++) {
    drain_output(worker);
  }
  end_line(worker);
  worker->pid = -1;
  atomic_store(&worker->process, -1);
  close_fd(&worker->socket);
  close_fd(&worker->output);
  return status;
}

static const char *signal_name(int number) {
  switch (number) {
    case SIGSEGV: return "segmentation fault";
    case SIGBUS: return "bus error";
    case SIGFPE: return "arithmetic error";
    case SIGILL: return "illegal instruction";
    case SIGABRT: return "abort";
    case SIGKILL: return "killed";
    case SIGTERM: return "terminated";
    default: return "signal";
  }
}

/* "wrote behind output 0", or "" where the place is not known. */
static void describe_place(const cleave_fault_record_t *record, char *text, size_t size) {
  static const char *const ACCESSES[] = {"touched", "read", "wrote"};
  static const char *const PLACES[] = {"", "input", "output", "the workspace", "a constant"};
  char number[16] = "";
  text[0] = '\0';
  if (record->place == CLEAVE_PLACE_ELSEWHERE || record->place > CLEAVE_PLACE_CONSTANT ||
      record->access > CLEAVE_ACCESS_WRITE) {
    return;
  }
  if (record->place <= CLEAVE_PLACE_OUTPUT) {
    (void)snprintf(number, sizeof number, " %u", (unsigned)record->index);
  }
  const char *access = ACCESSES[record->access];
  const char *place = PLACES[record->place];
  if (record->side == CLEAVE_SIDE_BEHIND) {
    (void)snprintf(text, size, "%s byte %llu behind the end of %s%s", access,
                   (unsigned long long)record->distance, place, number);
  } else if (record->side == CLEAVE_SIDE_BEFORE) {
    (void)snprintf(text, size, "%s byte %llu before %s%s", access, (unsigned long long)record->distance,
                   place, number);
  } else {
    (void)snprintf(text, size, "%s into %s%s", access, place, number);
  }
}

/* "crashed (segmentation fault at 0x0)", "ended its process (exit status 3)". */
static void describe_death(const cleave_worker_t *worker, int status, char *text, size_t size) {
  cleave_fault_record_t record;
  memcpy(&record, worker->record, sizeof record);
  char place[96];
  describe_place(&record, place, sizeof place);
  bool has_address = record.signal == SIGSEGV || record.signal == SIGBUS;
  if (record.signal != 0 && has_address && place[0] != '\0') {
    (void)snprintf(text, size, "%s (%s at 0x%llx)", place, signal_name((int)record.signal),
                   (unsigned long long)record.address);
  } else if (record.signal != 0 && has_address) {
    (void)snprintf(text, size, "crashed (%s at 0x%llx)", signal_name((int)record.signal),
                   (unsigned long long)record.address);
  } else if (record.signal != 0 && record.signal < 256) {
    (void)snprintf(text, size, "crashed (%s)", signal_name((int)record.signal));
  } else if (status >= 0 && WIFSIGNALED(status)) {
    (void)snprintf(text, size, "crashed (%s, %d)", signal_name(WTERMSIG(status)), WTERMSIG(status));
  } else if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == CLEAVE_WORKER_EXIT_CLOSED) {
    (void)snprintf(text, size, "closed the descriptors of its process");
  } else if (status >= 0 && WIFEXITED(status)) {
    (void)snprintf(text, size, "ended its process (exit status %d)", WEXITSTATUS(status));
  } else {
    (void)snprintf(text, size, "ended its process");
  }
}

static cleave_status_t lose(cleave_worker_t *worker, const cleave_worker_call_t *call,
                            cleave_message_t *message, const char *what) {
  bool has_region = call->region != NULL && call->region[0] != '\0';
  (void)snprintf(worker->reason, sizeof worker->reason, "library '%.40s' %.110s while %s%s%.30s%s",
                 worker->library, what, call->doing, has_region ? " '" : "", has_region ? call->region : "",
                 has_region ? "'" : "");
  cleave_log(worker->log, CLEAVE_LOG_WARNING, "%s", worker->reason);
  atomic_store(&worker->is_lost, true);
  if (message != NULL) {
    (void)snprintf(message->text, sizeof message->text, "%s", worker->reason);
    message->code = CLEAVE_REASON_DEVICE;
  }
  return CLEAVE_ERROR_BACKEND;
}

cleave_status_t cleave_worker_lose(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                   cleave_message_t *message, const char *format, ...) {
  char what[160];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  (void)end_process(worker);
  return lose(worker, call, message, what);
}

cleave_status_t cleave_worker_answered_nonsense(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                                cleave_message_t *message) {
  return cleave_worker_lose(worker, call, message, "sent an answer that makes no sense");
}

static cleave_status_t fail_frame(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                  cleave_frame_status_t status, cleave_message_t *message) {
  char what[160];
  if (status == CLEAVE_FRAME_NO_MEMORY) {
    (void)cleave_worker_lose(worker, call, message, "answered more than there is memory for");
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  if (status == CLEAVE_FRAME_BROKEN) {
    return cleave_worker_answered_nonsense(worker, call, message);
  }
  if (status == CLEAVE_FRAME_GIVEN_UP && !worker->has_died) {
    return cleave_worker_lose(worker, call, message, "did not answer within %g s", call->limit_ms * 1e-3);
  }
  if (!wait_end(worker, GRACE_MS)) {
    return cleave_worker_lose(worker, call, message, "closed its connection");
  }
  describe_death(worker, end_process(worker), what, sizeof what);
  return lose(worker, call, message, what);
}

/* ---- references ---- */

cleave_worker_t *cleave_worker_retain(cleave_worker_t *worker) {
  (void)atomic_fetch_add(&worker->references, 1);
  return worker;
}

/* Asks it to end; where it does not, it is ended. */
static void stop(cleave_worker_t *worker) {
  cleave_worker_call_t call = {.kind = CLEAVE_FRAME_CLOSE, .limit_ms = GRACE_MS, .doing = "ending", .fd = -1};
  cleave_message_t message = {.text = ""};
  cleave_wire_in_t reply;
  if (worker->owner != getpid() || worker->pid <= 0 || cleave_worker_begin(worker, &message) != CLEAVE_OK) {
    return;
  }
  if (cleave_worker_ask(worker, &call, &reply, &message) == CLEAVE_OK) {
    (void)wait_end(worker, GRACE_MS);
  }
  int status = end_process(worker);
  if (status > 0 && !atomic_load(&worker->is_lost)) {
    cleave_log(worker->log, CLEAVE_LOG_WARNING, "library '%s': its process ended with %s %d", worker->library,
               WIFSIGNALED(status) ? "signal" : "status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  }
  cleave_worker_end(worker);
}

void cleave_worker_release(cleave_worker_t *worker) {
  if (worker == NULL || atomic_fetch_sub(&worker->references, 1) > 1) {
    return;
  }
  stop(worker);
  free_worker(worker);
}

/* ---- calls ---- */

cleave_status_t cleave_worker_begin(cleave_worker_t *worker, cleave_message_t *message) {
  bool is_lost = atomic_load(&worker->is_lost);
  if (!is_lost && worker->owner != getpid()) {
    (void)snprintf(message->text, sizeof message->text, "library '%s' is isolated for another process",
                   worker->library);
    return CLEAVE_ERROR_BACKEND;
  }
  if (!is_lost) {
    (void)pthread_mutex_lock(&worker->lock);
    is_lost = atomic_load(&worker->is_lost);
    if (!is_lost) {
      cleave_wire_reset(&worker->request);
      return CLEAVE_OK;
    }
    (void)pthread_mutex_unlock(&worker->lock);
  }
  (void)snprintf(message->text, sizeof message->text, "%s", worker->reason);
  message->code = CLEAVE_REASON_DEVICE;
  return CLEAVE_ERROR_BACKEND;
}

void cleave_worker_end(cleave_worker_t *worker) {
  (void)pthread_mutex_unlock(&worker->lock);
}

static void log_frame(const cleave_worker_t *worker) {
  cleave_wire_in_t in = cleave_wire_read(worker->frame.data, worker->frame.length);
  uint32_t level = cleave_wire_u32(&in);
  const char *line = cleave_wire_named(&in);
  cleave_log(worker->log, level <= CLEAVE_LOG_DETAIL ? (cleave_log_level_t)level : CLEAVE_LOG_DETAIL, "%s",
             line);
}

cleave_status_t cleave_worker_tell(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                   cleave_message_t *message) {
  if (worker->request.failed) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  cleave_channel_t channel = channel_of(worker);
  worker->deadline = cleave_clock_now() + (uint64_t)call->limit_ms * 1000000;
  worker->has_died = false;
  cleave_frame_status_t sent =
      cleave_channel_send(&channel, call->kind, worker->request.data, worker->request.length, call->fd);
  return sent == CLEAVE_FRAME_OK ? CLEAVE_OK : fail_frame(worker, call, sent, message);
}

cleave_status_t cleave_worker_ask(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                  cleave_wire_in_t *out_reply, cleave_message_t *message) {
  message->text[0] = '\0';
  CLEAVE_TRY(cleave_worker_tell(worker, call, message));
  cleave_channel_t channel = channel_of(worker);
  cleave_frame_t *frame = &worker->frame;
  do {
    cleave_frame_status_t received = cleave_channel_receive(&channel, frame);
    if (received != CLEAVE_FRAME_OK) {
      return fail_frame(worker, call, received, message);
    }
    close_fd(&frame->fd);
    if (frame->kind == CLEAVE_FRAME_LOG) {
      log_frame(worker);
    }
  } while (frame->kind == CLEAVE_FRAME_LOG);
  drain_output(worker);
  *out_reply = cleave_wire_read(frame->data, frame->length);
  uint32_t status = cleave_wire_u32(out_reply);
  uint32_t code = cleave_wire_u32(out_reply);
  const char *text = cleave_wire_named(out_reply);
  if (status == CLEAVE_OK) {
    (void)cleave_wire_take(out_reply, 0, 1, CLEAVE_REPLY_ALIGNMENT);
  }
  if (frame->kind != CLEAVE_FRAME_REPLY || out_reply->failed) {
    return cleave_worker_answered_nonsense(worker, call, message);
  }
  (void)snprintf(message->text, sizeof message->text, "%s", text);
  message->code = code <= CLEAVE_REASON_DEVICE ? (cleave_reason_code_t)code : CLEAVE_REASON_NONE;
  if (status >= STATUS_COUNT) {
    if (text[0] == '\0') {
      (void)snprintf(message->text, sizeof message->text, "status %ld, which does not exist",
                     (long)(int32_t)status);
    }
    return CLEAVE_ERROR_BACKEND;
  }
  return (cleave_status_t)status;
}
