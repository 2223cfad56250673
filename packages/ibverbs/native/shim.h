// What the files of this library share: the objects behind the public ones, the messages to the NIC, the rings.
#ifndef ROCEV2_SHIM_H
#define ROCEV2_SHIM_H

#include "abi.h"
#include <stdatomic.h>
#include <sys/types.h>

#define EXPORT __attribute__((visibility("default")))
#define PROTOCOL_VERSION 4
#define GID_TABLE_LENGTH 16
#define QUEUE_DEPTH_MAX 16384
#define CQ_DEPTH_MAX (1 << 20)
#define SGE_MAX 32
#define INLINE_MAX 1024
#define CONTEXT_QPS_MAX 8192
#define RD_ATOMIC_MAX 16

// Commands to the NIC process, one element of 256 bytes each way: src/messages.ts has the same numbers.
enum {
  OP_HELLO = 1, OP_ALLOC_PD, OP_DEALLOC_PD, OP_REG_MR, OP_DEREG_MR, OP_CREATE_CQ, OP_DESTROY_CQ, OP_CREATE_SRQ,
  OP_MODIFY_SRQ, OP_DESTROY_SRQ, OP_CREATE_QP, OP_MODIFY_QP, OP_QUERY_QP, OP_DESTROY_QP, OP_CREATE_AH, OP_DESTROY_AH,
  OP_ALLOC_MW, OP_DEALLOC_MW, OP_REREG_MR, OP_RESIZE_CQ, OP_RESIZE_SRQ, OP_QUERY_SRQ
};
enum { KIND_LIST, KIND_CONTEXT, KIND_WAKE, KIND_EVENTS, KIND_CHANNEL, KIND_CM, KIND_CM_EVENTS };

struct message {
  uint32_t op; // in an answer: errno, 0 for success
  uint32_t reserved;
  uint64_t args[31];
};

// Header words of a ring; src/memory/ring of the transport describes them. Those from WORD_STATE on are of this package.
// Of doorbells: the number of completions for which the NIC has woken threads that poll, and how many such threads sleep.
// Of completion queues: the program itself has asked for an event.
enum {
  WORD_PRODUCER, WORD_CONSUMER, WORD_ARMED, WORD_DEPTH, WORD_STRIDE, WORD_ALL, WORD_STATE, WORD_FATAL, WORD_SIGNALS,
  WORD_SLEEPERS, WORD_REQUESTED
};
#define RING_HEADER_BYTES 64

struct ring {
  _Atomic uint32_t *header;
  uint8_t *elements;
  size_t bytes;
  uint32_t depth, stride;
  int fd;
};

struct device {
  struct ibv_device base;
  uint8_t driver_data[4096]; // zero: libmlx5 and libefa read behind the device whether it is theirs
  char socket[108];
  union ibv_gid gid;
  uint32_t mtu, ifindex;
  int is_ipv4;
};

struct qp_entry {
  _Atomic uint32_t qpn;
  struct qp *qp;
};

struct context {
  struct verbs_context verbs;
  struct device *device;
  pthread_mutex_t lock; // of commands and of the lists
  pthread_mutex_t doorbell_lock;
  int wake_fd;
  uint64_t token, next_cookie;
  struct ring doorbells;
  struct cq *cqs;
  struct srq *srqs;
  struct qp_entry *qps;
  atomic_int is_gone, fatal_reported;
  // Of all threads: the first poll that found nothing since one that did, such polls that armed their queues, and the
  // signals that were known then.
  _Atomic uint64_t empty_since;
  atomic_uint empty_polls, seen_signals, timeouts;
};

struct pd {
  struct ibv_pd base;
  struct pd *parent; // of a parent domain: the one whose handle it has
  uint32_t domains;  // that have this one as their parent
};

struct mr {
  struct ibv_mr base;
  uint64_t iova;
  unsigned access;
};

struct channel {
  struct ibv_comp_channel base;
  uint64_t number; // by which the NIC process knows it
};

struct cq {
  union {
    struct ibv_cq base;
    struct ibv_cq_ex ex;
  };
  struct cq *next;
  uint64_t cookie;
  struct ring ring;
  pthread_mutex_t lock;
  uint32_t comp_events, async_events;
  struct ibv_wc current; // of the extended interface
};

// Receives of a queue pair or of a shared queue: completions come in any order, so the NIC returns a cookie.
struct receives {
  struct ring ring;
  pthread_mutex_t lock;
  uint64_t *wr_ids;
  uint32_t *free_cookies;
  uint32_t free_count, cookie_count, max_sge; // there are more cookies than elements after the queue has shrunk
};

struct srq {
  struct ibv_srq base;
  struct srq *next;
  struct receives receives;
  uint32_t async_events;
};

struct qp {
  union {
    struct ibv_qp base;
    struct ibv_qp_ex ex;
  };
  struct context *context;
  struct ring sq;
  struct receives receives;
  pthread_mutex_t lock;
  uint64_t *wr_ids;
  uint32_t released;
  struct ibv_qp_cap cap;
  int signal_all;
  uint32_t async_events;
  // Between wr_start and wr_complete: elements begin at `first`, `building` is the next one, `error` the first refusal.
  uint32_t first, building;
  int error;
};

struct context *context_of(struct ibv_context *context);
struct device **all_devices(int *count);
int command(struct context *context, uint32_t op, uint64_t *args, int count);
int connect_nic(struct device *device, uint64_t kind, uint64_t token, struct message *answer);
int exchange_bytes(int fd, void *bytes, size_t length);
int ring_make(struct ring *ring, uint32_t depth, uint32_t stride);
void ring_forget_name(struct ring *ring);
void ring_free(struct ring *ring);
void doorbell(struct context *context, uint32_t qpn);
void nic_is_gone(struct context *context);
void admit_nic(uint64_t pid);
void send_memory(struct context *context);
int destroy_command(struct context *context, uint32_t op, uint32_t handle);
int may_spin(_Atomic uint64_t *since);
void wait_for_signal(struct context *context, uint32_t seen);
uint32_t power_of_two(uint32_t number);
void mutex_init(pthread_mutex_t *mutex);
void recursive_mutex_init(pthread_mutex_t *mutex);

int real_close(int fd);
int rdma_cm_open(void);
int rdma_cm_is_open(int fd);
void rdma_cm_close(int fd);
ssize_t rdma_cm_write(int fd, const void *bytes, size_t length);

struct qp *find_qp(struct context *context, uint32_t qpn);
int receives_make(struct receives *receives, uint32_t depth, uint32_t max_sge);
void receives_free(struct receives *receives);
void receives_clear(struct receives *receives);
int receives_resize(struct context *context, uint32_t srq, struct receives *receives, uint32_t depth);
int receives_post(struct receives *receives, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
void forget_completions(struct qp *qp);
int data_poll(struct ibv_cq *cq, int max, struct ibv_wc *wc);
int data_notify(struct ibv_cq *cq, int solicited_only);
int data_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int data_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int data_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int data_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
void data_extend_qp(struct qp *qp);
void data_extend_cq(struct cq *cq);
int data_resize_cq(struct context *context, struct cq *cq, uint32_t depth);

#endif
