// /dev/infiniband/rdma_cm for librdmacm: a descriptor that becomes readable for each event, and whose commands the NIC
// process executes. Commands and answers are those of the kernel (rdma/rdma_user_cm.h), in frames of 512 bytes.
#define _GNU_SOURCE
#include "shim.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FRAME_BYTES 512
#define DESCRIPTORS 65536

// A channel is found by the descriptor that the program has. It is never freed: a thread may still use it.
struct channel_of_events {
  int command_fd;
  uint64_t number; // by which the NIC process knows it
  pthread_mutex_t lock;
};

struct command_header {
  uint32_t command;
  uint16_t in, out;
};

struct frame {
  uint32_t command; // in an answer: errno, 0 for success
  uint32_t length;
  uint8_t bytes[FRAME_BYTES - 8];
};

enum {
  CREATE_ID, DESTROY_ID, BIND_IP, RESOLVE_IP, RESOLVE_ROUTE, QUERY_ROUTE, CONNECT, LISTEN, ACCEPT, REJECT, DISCONNECT,
  INIT_QP_ATTR, GET_EVENT, GET_OPTION, SET_OPTION, NOTIFY, JOIN_IP_MCAST, LEAVE_MCAST, MIGRATE_ID
};

static _Atomic(struct channel_of_events *) channels[DESCRIPTORS];

static struct channel_of_events *channel_of(int fd) { return fd >= 0 && fd < DESCRIPTORS ? channels[fd] : NULL; }

int rdma_cm_is_open(int fd) { return channel_of(fd) != NULL; }

// A new channel of the first device; its descriptor, or -1 with errno.
int rdma_cm_open(void) {
  int count;
  struct device **devices = all_devices(&count);
  if (count == 0) {
    errno = ENODEV;
    return -1;
  }
  struct message answer;
  int command_fd = connect_nic(devices[0], KIND_CM, 0, &answer);
  if (command_fd < 0) return -1;
  int fd = connect_nic(devices[0], KIND_CM_EVENTS, answer.args[0], NULL);
  struct channel_of_events *channel = fd < 0 || fd >= DESCRIPTORS ? NULL : calloc(1, sizeof *channel);
  if (channel == NULL) {
    int error = fd < 0 ? errno : ENOMEM;
    if (fd >= 0) real_close(fd);
    real_close(command_fd);
    errno = error;
    return -1;
  }
  channel->command_fd = command_fd;
  channel->number = answer.args[0];
  mutex_init(&channel->lock);
  channels[fd] = channel;
  return fd;
}

void rdma_cm_close(int fd) {
  struct channel_of_events *channel = atomic_exchange(&channels[fd], NULL);
  if (channel != NULL) real_close(channel->command_fd);
}

// Where in a command the address of its result is, or -1.
static int result_offset(uint32_t command) {
  switch (command) {
    case CREATE_ID:
      return 8;
    case DESTROY_ID:
    case BIND_IP:
    case QUERY_ROUTE:
    case INIT_QP_ATTR:
    case GET_EVENT:
    case MIGRATE_ID:
      return 0;
    default:
      return -1;
  }
}

// Puts what the command points to into the frame.
static int resolve_pointers(struct frame *frame) {
  if (frame->command == SET_OPTION && frame->length == 24) {
    uint64_t address;
    uint32_t length;
    memcpy(&address, frame->bytes, 8);
    memcpy(&length, frame->bytes + 20, 4);
    if (length > sizeof frame->bytes - 24) return EINVAL;
    memcpy(frame->bytes + 24, (const void *)(uintptr_t)address, length);
    frame->length += length;
  } else if (frame->command == MIGRATE_ID && frame->length >= 16) {
    int fd;
    memcpy(&fd, frame->bytes + 12, 4);
    struct channel_of_events *from = channel_of(fd);
    if (from == NULL) return EBADF;
    uint32_t number = (uint32_t)from->number;
    memcpy(frame->bytes + 12, &number, 4);
  }
  return 0;
}

static int execute(struct channel_of_events *channel, const struct command_header *header, size_t bytes) {
  if (bytes < sizeof *header || header->in != bytes - sizeof *header) return EINVAL;
  struct frame frame = {header->command, header->in, {0}};
  if (header->in > sizeof frame.bytes) return EINVAL;
  memcpy(frame.bytes, header + 1, header->in);
  int error = resolve_pointers(&frame);
  if (error != 0) return error;
  int offset = result_offset(header->command);
  uint64_t result = 0;
  if (offset >= 0 && header->in >= offset + 8) memcpy(&result, frame.bytes + offset, 8);
  pthread_mutex_lock(&channel->lock);
  error = exchange_bytes(channel->command_fd, &frame, sizeof frame);
  pthread_mutex_unlock(&channel->lock);
  if (error != 0) return error;
  if (frame.command != 0) return (int)frame.command;
  size_t length = frame.length < header->out ? frame.length : header->out;
  if (result != 0 && length <= sizeof frame.bytes) memcpy((void *)(uintptr_t)result, frame.bytes, length);
  return 0;
}

// Waits for an event unless the descriptor is O_NONBLOCK. An event of an identifier that was destroyed has disappeared.
static int get_event(int fd, struct channel_of_events *channel, const struct command_header *header, size_t bytes) {
  for (;;) {
    char notice;
    ssize_t n = recv(fd, &notice, 1, 0);
    if (n < 0) return errno;
    // Another thread has closed the channel: the kernel would not end this wait, and programs exit meanwhile.
    while (n == 0 && channel_of(fd) != channel) pause();
    if (n == 0) return ENODEV; // The NIC process has ended.
    int error = execute(channel, header, bytes);
    if (error != EAGAIN) return error;
  }
}

ssize_t rdma_cm_write(int fd, const void *bytes, size_t length) {
  struct channel_of_events *channel = channel_of(fd);
  const struct command_header *header = bytes;
  int is_get = length >= sizeof *header && header->command == GET_EVENT;
  int error = is_get ? get_event(fd, channel, header, length) : execute(channel, header, length);
  if (error == 0) return (ssize_t)length;
  errno = error;
  return -1;
}
