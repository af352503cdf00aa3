// SPDX-License-Identifier: Apache-2.0
// Asking and ending a worker. The process is reaped here and nowhere else. Its death is noticed by the
// socket's end or, if a child of its own still holds that, by looking now and then.
// Long file: one life of a process, from its start to its end.
#include "backend/process/worker_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "system/clock.h"

enum {
  LOOK_EVERY_MS = 100,   /* for a death that the socket does not show */
  GRACE_MS = 2000,       /* to end by itself */
  USUAL_REPLY = 8 << 10, /* bytes: there is always memory for it */
  USUAL_ANSWER = 1 << 10,
  LONGEST_REPLY = 64 << 20, /* bytes */
  MAX_CALLBACKS = 1 << 20,
  MAX_KEPT = 1 << 20, /* bytes */
  STATUS_COUNT = CLEAVE_ERROR_INTERNAL + 1,
};

/* ---- starting ---- */

static void close_fd(int *fd) {
  if (*fd >= 0) {
    (void)close(*fd);
  }
  *fd = -1;
}

static void free_worker(cleave_worker_t *worker) {
  close_fd(&worker->socket);
  close_fd(&worker->output);
  if (worker->record != NULL) {
    (void)munmap(worker->record, sizeof *worker->record);
  }
  cleave_wire_deinit(&worker->request);
  cleave_wire_deinit(&worker->answer);
  cleave_wire_deinit(&worker->outcome);
  cleave_worker_constants_deinit(&worker->constants);
  cleave_free(worker->frame.data);
  (void)pthread_mutex_destroy(&worker->lock);
  cleave_free(worker);
}

/* Recursive: what a library asks back is answered by the thread that has the lock, and may ask in turn. */
static bool make_lock(pthread_mutex_t *lock) {
  pthread_mutexattr_t attributes;
  if (pthread_mutexattr_init(&attributes) != 0) {
    return false;
  }
  bool is_made = pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE) == 0 &&
                 pthread_mutex_init(lock, &attributes) == 0;
  (void)pthread_mutexattr_destroy(&attributes);
  return is_made;
}

cleave_status_t cleave_worker_start(const char *name, cleave_log_t *log, cleave_worker_t **out_worker,
                                    cleave_error_t *error) {
  *out_worker = NULL;
  cleave_worker_t *worker = cleave_allocate_zeroed(1, sizeof *worker);
  if (worker == NULL || !make_lock(&worker->lock)) {
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
  worker->frame.data = cleave_allocate(USUAL_REPLY, 1);
  worker->frame.capacity = worker->frame.data == NULL ? 0 : USUAL_REPLY;
  bool has_memory = worker->frame.data != NULL && cleave_wire_reserve(&worker->answer, USUAL_ANSWER) &&
                    cleave_wire_reserve(&worker->outcome, USUAL_ANSWER);
  cleave_status_t status = has_memory ? CLEAVE_OK : cleave_error_out_of_memory(error);
  CLEAVE_THEN(status, cleave_worker_spawn(worker, error));
  CLEAVE_TRY_OR(status, free_worker(worker));
  *out_worker = worker;
  return CLEAVE_OK;
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

/* Has the process ended? It is not reaped here. If somebody else reaped it, it has ended. */
static bool has_ended(const cleave_worker_t *worker) {
  siginfo_t info = {.si_pid = 0};
  return waitid(P_PID, (id_t)worker->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

static bool wait_for(void *context, short events) {
  cleave_worker_t *worker = context;
  uint64_t look_at = cleave_clock_now() + LOOK_EVERY_MS * UINT64_C(1000000);
  for (;;) {
    uint64_t now = cleave_clock_now();
    /* Now and then even if there is output all the time: a child may go on printing. */
    bool looks = now >= look_at;
    if (looks && has_ended(worker)) {
      worker->has_died = true;
      return false;
    }
    if (now >= worker->deadline) {
      return false;
    }
    look_at = looks ? now + LOOK_EVERY_MS * UINT64_C(1000000) : look_at;
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
 * waitpid, or -1 if somebody else has it. */
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

/* "wrote behind output 0", or "" if the place is not known. */
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
  return cleave_worker_lose(worker, call, message, "sent a malformed answer");
}

static cleave_status_t fail_frame(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                  cleave_frame_status_t status, cleave_message_t *message) {
  char what[160];
  if (status == CLEAVE_FRAME_NO_MEMORY) {
    (void)cleave_worker_lose(worker, call, message, "sent an answer that is larger than the memory for it");
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

/* Asks it to end; if it does not, it is ended. */
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

/* The worker whose callback this thread is answering. */
static _Thread_local const cleave_worker_t *answering;

/* Two libraries whose passes ask for each other's operators, on two threads, would wait for each other: the
 * limit of the call that waits ends that. */
static bool take_lock(cleave_worker_t *worker) {
  if (answering == NULL || answering == worker) {
    return pthread_mutex_lock(&worker->lock) == 0;
  }
  uint64_t now = cleave_clock_now();
  uint64_t left = answering->deadline > now ? answering->deadline - now : 0;
  struct timespec until;
  (void)clock_gettime(CLOCK_REALTIME, &until);
  uint64_t end = (uint64_t)until.tv_nsec + left % 1000000000;
  until.tv_sec += (time_t)(left / 1000000000 + end / 1000000000);
  until.tv_nsec = (long)(end % 1000000000);
  return pthread_mutex_timedlock(&worker->lock, &until) == 0;
}

cleave_status_t cleave_worker_begin(cleave_worker_t *worker, cleave_message_t *message) {
  bool is_lost = atomic_load(&worker->is_lost);
  if (!is_lost && worker->owner != getpid()) {
    (void)snprintf(message->text, sizeof message->text, "library '%s' is isolated for another process",
                   worker->library);
    return CLEAVE_ERROR_BACKEND;
  }
  if (!is_lost && !take_lock(worker)) {
    (void)snprintf(message->text, sizeof message->text, "library '%s' is busy", worker->library);
    return CLEAVE_ERROR_BACKEND;
  }
  if (!is_lost) {
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

/* Status, reason code, message; then what `content` holds. */
static void put_outcome(cleave_wire_out_t *out, cleave_status_t status, const cleave_message_t *message,
                        const cleave_wire_out_t *content) {
  cleave_wire_put_u32(out, (uint32_t)status);
  cleave_wire_put_u32(out, (uint32_t)message->code);
  cleave_wire_put_text(out, message->text);
  if (status == CLEAVE_OK) {
    cleave_wire_put(out, content->data, content->length, CLEAVE_REPLY_ALIGNMENT);
    out->failed = out->failed || content->failed;
  }
}

/* Large steps of a pass are not kept for the life of the process. */
static void trim(cleave_worker_t *worker) {
  if (worker->frame.capacity > MAX_KEPT) {
    unsigned char *data = cleave_reallocate(worker->frame.data, USUAL_REPLY, 1);
    worker->frame.data = data != NULL ? data : worker->frame.data;
    worker->frame.capacity = data != NULL ? USUAL_REPLY : worker->frame.capacity;
    worker->frame.length = 0;
  }
  if (worker->answer.capacity > MAX_KEPT || worker->outcome.capacity > MAX_KEPT) {
    cleave_wire_deinit(&worker->answer);
    cleave_wire_deinit(&worker->outcome);
    (void)(cleave_wire_reserve(&worker->answer, USUAL_ANSWER) &&
           cleave_wire_reserve(&worker->outcome, USUAL_ANSWER));
  }
}

/* Answers a callback. It lies in a frame of its own meanwhile, and so do calls that the answer makes. */
static cleave_status_t answer(cleave_worker_t *worker, const cleave_worker_call_t *call,
                              cleave_message_t *message) {
  cleave_frame_t callback = worker->frame;
  cleave_wire_out_t request = worker->request;
  cleave_wire_out_t content = worker->answer;
  cleave_message_t own = {.text = ""};
  uint64_t deadline = worker->deadline;
  int fd = -1;
  worker->frame = (cleave_frame_t){.fd = -1};
  worker->request = (cleave_wire_out_t){0};
  worker->answer = (cleave_wire_out_t){0};
  cleave_wire_reset(&content);
  cleave_wire_in_t in = cleave_wire_read(callback.data, callback.length);
  const cleave_worker_t *outer = answering;
  answering = worker;
  cleave_status_t status = call->answer(call->context, callback.kind, &in, &content, &fd, &own);
  answering = outer;
  cleave_free(worker->frame.data);
  cleave_wire_deinit(&worker->request);
  cleave_wire_deinit(&worker->answer);
  worker->frame = callback;
  worker->request = request;
  worker->answer = content;
  worker->deadline = deadline;
  cleave_wire_reset(&worker->outcome);
  put_outcome(&worker->outcome, status, &own, &worker->answer);
  if (atomic_load(&worker->is_lost)) {
    (void)snprintf(message->text, sizeof message->text, "%s", worker->reason);
    status = CLEAVE_ERROR_BACKEND;
  } else if (in.failed) {
    status = cleave_worker_answered_nonsense(worker, call, message);
  } else if (worker->outcome.failed) {
    status = cleave_worker_lose(worker, call, message, "cannot be answered: there is no memory");
  } else {
    cleave_channel_t channel = channel_of(worker);
    cleave_frame_status_t sent =
        cleave_channel_send(&channel, CLEAVE_FRAME_ANSWER, worker->outcome.data, worker->outcome.length, fd);
    status = sent == CLEAVE_FRAME_OK ? CLEAVE_OK : fail_frame(worker, call, sent, message);
  }
  trim(worker);
  close_fd(&fd);
  return status;
}

/* The next frame that is neither a line nor a callback. Of these there is no end that the limit does not
 * set. */
static cleave_status_t receive(cleave_worker_t *worker, const cleave_worker_call_t *call,
                               cleave_message_t *message) {
  cleave_channel_t channel = channel_of(worker);
  channel.limit = call->most_bytes > 0 ? call->most_bytes : channel.limit;
  for (uint32_t answered = 0;;) {
    cleave_frame_status_t received = cleave_channel_receive(&channel, &worker->frame);
    if (received != CLEAVE_FRAME_OK) {
      return fail_frame(worker, call, received, message);
    }
    close_fd(&worker->frame.fd);
    bool is_callback = call->answer != NULL && cleave_frame_is_callback(worker->frame.kind);
    if (worker->frame.kind != CLEAVE_FRAME_LOG && !is_callback) {
      return CLEAVE_OK;
    }
    if (cleave_clock_now() >= worker->deadline) {
      return fail_frame(worker, call, CLEAVE_FRAME_GIVEN_UP, message);
    }
    if (!is_callback) {
      log_frame(worker);
    } else if (++answered > MAX_CALLBACKS) {
      return cleave_worker_lose(worker, call, message, "asked more than %d times", MAX_CALLBACKS);
    } else {
      CLEAVE_TRY(answer(worker, call, message));
    }
  }
}

cleave_status_t cleave_worker_ask(cleave_worker_t *worker, const cleave_worker_call_t *call,
                                  cleave_wire_in_t *out_reply, cleave_message_t *message) {
  message->text[0] = '\0';
  CLEAVE_TRY(cleave_worker_tell(worker, call, message));
  CLEAVE_TRY(receive(worker, call, message));
  const cleave_frame_t *frame = &worker->frame;
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
