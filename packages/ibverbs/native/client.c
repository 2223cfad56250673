// The connection to the NIC process: devices, commands, rings, doorbells.
#define _GNU_SOURCE
#include "shim.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const uint32_t ASLEEP = 0;
static const size_t OFFSET_OF_VERBS = offsetof(struct verbs_context, context);

struct context *context_of(struct ibv_context *context) {
  return (struct context *)((char *)context - OFFSET_OF_VERBS);
}

void mutex_init(pthread_mutex_t *mutex) { pthread_mutex_init(mutex, NULL); }

void recursive_mutex_init(pthread_mutex_t *mutex) {
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(mutex, &attr);
  pthread_mutexattr_destroy(&attr);
}

uint32_t power_of_two(uint32_t number) {
  uint32_t power = 1;
  while (power < number) power *= 2;
  return power;
}

static int write_all(int fd, const void *bytes, size_t length) {
  const char *at = bytes;
  while (length > 0) {
    ssize_t n = send(fd, at, length, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return -1;
    at += n;
    length -= (size_t)n;
  }
  return 0;
}

static int read_all(int fd, void *bytes, size_t length) {
  char *at = bytes;
  while (length > 0) {
    ssize_t n = recv(fd, at, length, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return -1;
    at += n;
    length -= (size_t)n;
  }
  return 0;
}

// Sends bytes, and replaces them by as many of the answer. Returns 0 or an errno.
int exchange_bytes(int fd, void *bytes, size_t length) {
  return write_all(fd, bytes, length) == 0 && read_all(fd, bytes, length) == 0 ? 0 : EIO;
}

static int exchange(int fd, struct message *message) {
  int error = exchange_bytes(fd, message, sizeof *message);
  return error != 0 ? error : (int)message->op;
}

// Opens a connection of one kind; the descriptor, or -1 with errno.
int connect_nic(struct device *device, uint64_t kind, uint64_t token, struct message *answer) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, device->socket, sizeof address.sun_path);
  struct message hello = {.op = OP_HELLO, .args = {PROTOCOL_VERSION, kind, token, (uint64_t)getpid()}};
  int error = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? exchange(fd, &hello) : errno;
  if (error != 0) {
    if (error == EPROTO) fprintf(stderr, "rocev2: the NIC process has another version: end it and start it again\n");
    close(fd);
    errno = error;
    return -1;
  }
  if (answer != NULL) *answer = hello;
  return fd;
}

// The NIC process has ended: nothing can be posted, and polls of empty queues fail.
void nic_is_gone(struct context *context) { context->is_gone = 1; }

// Gives the NIC process the memory of this one, for where process_vm_readv(2) is refused. It may stay without.
void send_memory(struct context *context) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int length = snprintf(address.sun_path, sizeof address.sun_path, "%s.mem", context->device->socket);
  int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC), fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof memory)];
  } control = {.header = {CMSG_LEN(sizeof memory), SOL_SOCKET, SCM_RIGHTS}};
  memcpy(CMSG_DATA(&control.header), &memory, sizeof memory);
  struct iovec vector = {&context->token, sizeof context->token};
  struct msghdr message = {&address, sizeof address, &vector, 1, &control, sizeof control, 0};
  if (memory >= 0 && fd >= 0 && length < (int)sizeof address.sun_path) {
    while (sendmsg(fd, &message, MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
  }
  if (memory >= 0) close(memory);
  if (fd >= 0) close(fd);
}

// Lets the NIC process access the memory of this one where Yama restricts that.
void admit_nic(uint64_t pid) { prctl(PR_SET_PTRACER, pid, 0, 0, 0); }

// Sends a command and waits for its answer, which replaces the arguments. Returns 0 or an errno.
int command(struct context *context, uint32_t op, uint64_t *args, int count) {
  struct message message = {.op = op};
  memcpy(message.args, args, (size_t)count * 8);
  pthread_mutex_lock(&context->lock);
  int broken = exchange_bytes(context->verbs.context.cmd_fd, &message, sizeof message);
  pthread_mutex_unlock(&context->lock);
  if (broken != 0) {
    nic_is_gone(context);
    return broken;
  }
  memcpy(args, message.args, (size_t)count * 8);
  return (int)message.op;
}

// The same for what destroys an object: it has disappeared with the NIC process.
int destroy_command(struct context *context, uint32_t op, uint32_t handle) {
  uint64_t args[1] = {handle};
  int error = context->is_gone ? 0 : command(context, op, args, 1);
  return context->is_gone ? 0 : error;
}

int ring_make(struct ring *ring, uint32_t depth, uint32_t stride) {
  depth = power_of_two(depth);
  size_t bytes = RING_HEADER_BYTES + (size_t)depth * stride;
  int fd = memfd_create("rocev2-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return errno;
  void *memory = MAP_FAILED;
  if (ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW) == 0) {
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (memory == MAP_FAILED) {
    int error = errno;
    close(fd);
    return error;
  }
  madvise(memory, bytes, MADV_DONTFORK);
  *ring = (struct ring){memory, (uint8_t *)memory + RING_HEADER_BYTES, bytes, depth, stride, fd};
  ring->header[WORD_DEPTH] = depth;
  ring->header[WORD_STRIDE] = stride;
  return 0;
}

// The NIC has mapped it.
void ring_forget_name(struct ring *ring) {
  close(ring->fd);
  ring->fd = -1;
}

void ring_free(struct ring *ring) {
  if (ring->header == NULL) return;
  if (ring->fd >= 0) close(ring->fd);
  munmap(ring->header, ring->bytes);
  ring->header = NULL;
}

// The NIC looks at its doorbells once more after it has stored ASLEEP, so that no doorbell is missed.
void doorbell(struct context *context, uint32_t qpn) {
  struct ring *ring = &context->doorbells;
  pthread_mutex_lock(&context->doorbell_lock);
  uint32_t index = ring->header[WORD_PRODUCER];
  uint32_t waiting = index - ring->header[WORD_CONSUMER];
  uint32_t *elements = (uint32_t *)ring->elements;
  if (waiting == 0 || elements[(index - 1) & (ring->depth - 1)] != qpn) {
    if (waiting >= ring->depth) ring->header[WORD_ALL] = 1;
    else {
      elements[index & (ring->depth - 1)] = qpn;
      ring->header[WORD_PRODUCER] = index + 1;
    }
  }
  int sleeps = ring->header[WORD_STATE] == ASLEEP;
  pthread_mutex_unlock(&context->doorbell_lock);
  if (sleeps && send(context->wake_fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EPIPE) nic_is_gone(context);
}

// With few cores the NIC needs those on which programs wait. Where other programs have taken the core for so long that
// sleeping had been better, threads sleep at once, for a while.
enum { SPIN_NS = 50000, FEW_CORES = 4, STALL_NS = 2000000, PAUSE_MIN_NS = 10000000, PAUSE_MAX_NS = 1000000000 };

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Whether a thread that finds nothing may look again before it sleeps: to be woken takes longer than most answers.
// `since`: when it found nothing first; 0 at the beginning of a wait.
int may_spin(_Atomic uint64_t *since) {
  static long cores;
  if (cores == 0) cores = sysconf(_SC_NPROCESSORS_ONLN);
  static _Atomic uint64_t paused_until, pause = PAUSE_MIN_NS;
  uint64_t now = now_ns(), first = atomic_load_explicit(since, memory_order_relaxed);
  if (first == 0) atomic_store_explicit(since, now, memory_order_relaxed);
  else if (now - first >= SPIN_NS) return 0;
  if (now < paused_until) return 0;
  if (cores > FEW_CORES) return 1;
  sched_yield();
  uint64_t returned = now_ns();
  if (returned - now < STALL_NS) return 1;
  if (now - paused_until > PAUSE_MAX_NS) pause = PAUSE_MIN_NS;
  paused_until = returned + pause;
  if (pause < PAUSE_MAX_NS) pause = 2 * pause;
  return 1;
}

// Sleeps until a completion is signalled, if none was after `seen`, or for a short time: the program may poll other things.
// Leaves errno as it is, since an empty poll is not a failure: rsockets depend on that.
void wait_for_signal(struct context *context, uint32_t seen) {
  static const struct timespec TIMEOUT = {.tv_nsec = 100000};
  static const unsigned TIMEOUTS_BEFORE_CHECK = 256;
  _Atomic uint32_t *header = context->doorbells.header;
  int caller_errno = errno;
  header[WORD_SLEEPERS]++;
  long result = syscall(SYS_futex, &header[WORD_SIGNALS], FUTEX_WAIT, seen, &TIMEOUT, NULL, 0);
  int timed_out = result < 0 && errno == ETIMEDOUT;
  header[WORD_SLEEPERS]--;
  errno = caller_errno;
  if (!timed_out || ++context->timeouts % TIMEOUTS_BEFORE_CHECK != 0) return;
  struct pollfd wake = {.fd = context->wake_fd};
  if (poll(&wake, 1, 0) > 0 && (wake.revents & (POLLHUP | POLLERR)) != 0) nic_is_gone(context);
}

static struct device **devices;
static int device_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_devices(void) {
  const char *sockets = getenv("ROCEV2_VERBS_SOCKETS");
  if (sockets == NULL) return;
  char *list = strdup(sockets), *state = NULL;
  devices = calloc(strlen(sockets) + 2, sizeof *devices);
  int index = 0;
  for (char *path = strtok_r(list, ":", &state); path != NULL; path = strtok_r(NULL, ":", &state), index++) {
    struct device *device = calloc(1, sizeof *device);
    snprintf(device->socket, sizeof device->socket, "%s", path);
    struct message answer;
    int fd = connect_nic(device, KIND_LIST, 0, &answer);
    if (fd < 0) {
      fprintf(stderr, "rocev2: no NIC answers at %s: %s; run rocev2 verbs serve\n", path, strerror(errno));
      free(device);
      continue;
    }
    close(fd);
    device->base.node_type = NODE_CA;
    device->base.transport_type = TRANSPORT_IB;
    snprintf(device->base.name, NAME_MAX_BYTES, "rocev2_%d", index);
    snprintf(device->base.dev_name, NAME_MAX_BYTES, "uverbs%d", index);
    snprintf(device->base.dev_path, PATH_MAX_BYTES, "/sys/class/infiniband_verbs/uverbs%d", index);
    snprintf(device->base.ibdev_path, PATH_MAX_BYTES, "/sys/class/infiniband/rocev2_%d", index);
    memcpy(&device->gid, &answer.args[1], 16);
    device->is_ipv4 = memcmp(device->gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12) == 0;
    device->mtu = (uint32_t)answer.args[3];
    device->ifindex = (uint32_t)answer.args[4];
    devices[device_count++] = device;
  }
  free(list);
}

struct device **all_devices(int *count) {
  pthread_once(&once, find_devices);
  *count = device_count;
  return devices;
}
