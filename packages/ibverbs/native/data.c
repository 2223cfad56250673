// The data path: work queues and completion queues in memory that the NIC reads and writes.
#define _GNU_SOURCE
#include "shim.h"
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SL_IPV4_UDP = 10 };
enum { WC_FLAG_GRH = 1, WC_FLAG_WITH_IMM = 2, WC_FLAG_WITH_INV = 8 };
enum { ARM_SOLICITED = 1, ARM_NEXT = 2 };
// Polls that arm queues before a program sleeps: so each of several queues is armed, and wakes it.
enum { ARMED_POLLS = 4 };

struct send_element {
  uint8_t opcode, flags;
  uint16_t sge_count;
  uint32_t message_bytes;
  uint64_t remote_addr;
  uint32_t rkey, immediate;
  uint64_t compare_add, swap;
  uint32_t ah, remote_qpn, qkey, handle, access, unused;
  union {
    struct ibv_sge sges[SGE_MAX];
    uint8_t inline_data[INLINE_MAX];
  };
};

struct receive_element {
  uint32_t cookie, sge_count, total_bytes, unused;
  struct ibv_sge sges[SGE_MAX];
};

struct completion_element {
  uint32_t index, qpn;
  uint8_t status, opcode, flags, is_receive;
  uint32_t byte_count, immediate, source_qpn, vendor_error;
};

static void *element(const struct ring *ring, uint32_t index) {
  return ring->elements + (size_t)(index & (ring->depth - 1)) * ring->stride;
}

int receives_make(struct receives *receives, uint32_t depth, uint32_t max_sge) {
  if (depth == 0) depth = 1;
  if (max_sge == 0) max_sge = 1;
  int error = ring_make(&receives->ring, depth, 16 + max_sge * 16);
  if (error != 0) return error;
  receives->max_sge = max_sge;
  receives->wr_ids = calloc(receives->ring.depth, sizeof *receives->wr_ids);
  receives->free_cookies = calloc(receives->ring.depth, sizeof *receives->free_cookies);
  mutex_init(&receives->lock);
  receives->cookie_count = receives->ring.depth;
  if (receives->wr_ids == NULL || receives->free_cookies == NULL) return ENOMEM;
  receives_clear(receives);
  return 0;
}

void receives_clear(struct receives *receives) {
  pthread_mutex_lock(&receives->lock);
  receives->free_count = receives->cookie_count;
  for (uint32_t i = 0; i < receives->free_count; i++) receives->free_cookies[i] = receives->free_count - 1 - i;
  pthread_mutex_unlock(&receives->lock);
}

static uint32_t outstanding(const struct receives *receives) { return receives->cookie_count - receives->free_count; }

static int add_cookies(struct receives *receives, uint32_t count) {
  uint64_t *wr_ids = realloc(receives->wr_ids, count * sizeof *wr_ids);
  if (wr_ids != NULL) receives->wr_ids = wr_ids;
  uint32_t *cookies = realloc(receives->free_cookies, count * sizeof *cookies);
  if (cookies != NULL) receives->free_cookies = cookies;
  if (wr_ids == NULL || cookies == NULL) return ENOMEM;
  for (; receives->cookie_count < count; receives->cookie_count++) cookies[receives->free_count++] = receives->cookie_count;
  return 0;
}

// The NIC copies the elements that it has not taken; nothing is posted meanwhile.
int receives_resize(struct context *context, uint32_t srq, struct receives *receives, uint32_t depth) {
  struct ring next = {0};
  int error = ring_make(&next, depth, receives->ring.stride);
  pthread_mutex_lock(&receives->lock);
  struct ring old = receives->ring;
  if (error == 0 && outstanding(receives) > next.depth) error = EINVAL;
  if (error == 0 && next.depth > receives->cookie_count) error = add_cookies(receives, next.depth);
  if (error == 0) {
    next.header[WORD_PRODUCER] = old.header[WORD_PRODUCER];
    uint64_t args[3] = {srq, (uint64_t)next.fd, next.bytes};
    error = command(context, OP_RESIZE_SRQ, args, 3);
  }
  if (error == 0) {
    ring_forget_name(&next);
    receives->ring = next;
  }
  pthread_mutex_unlock(&receives->lock);
  ring_free(error == 0 ? &old : &next);
  return error;
}

void receives_free(struct receives *receives) {
  ring_free(&receives->ring);
  free(receives->wr_ids);
  free(receives->free_cookies);
}

static uint64_t receive_done(struct receives *receives, uint32_t cookie) {
  if (cookie >= receives->cookie_count) return 0;
  pthread_mutex_lock(&receives->lock);
  uint64_t wr_id = receives->wr_ids[cookie];
  if (receives->free_count < receives->cookie_count) receives->free_cookies[receives->free_count++] = cookie;
  pthread_mutex_unlock(&receives->lock);
  return wr_id;
}

int receives_post(struct receives *receives, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
  int error = 0;
  pthread_mutex_lock(&receives->lock);
  uint32_t index = receives->ring.header[WORD_PRODUCER];
  for (; wr != NULL; wr = wr->next) {
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > receives->max_sge) error = EINVAL;
    else if (outstanding(receives) >= receives->ring.depth) error = ENOMEM;
    if (error != 0) break;
    struct receive_element *to = element(&receives->ring, index);
    uint32_t cookie = receives->free_cookies[--receives->free_count], total = 0;
    receives->wr_ids[cookie] = wr->wr_id;
    for (int i = 0; i < wr->num_sge; i++) {
      to->sges[i] = wr->sg_list[i];
      total += wr->sg_list[i].length;
    }
    to->cookie = cookie;
    to->sge_count = (uint32_t)wr->num_sge;
    to->total_bytes = total;
    receives->ring.header[WORD_PRODUCER] = ++index;
  }
  pthread_mutex_unlock(&receives->lock);
  if (error != 0) *bad = wr;
  return error;
}

int data_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
  struct qp *qp = (struct qp *)base;
  if (base->srq != NULL || base->state == QPS_RESET || qp->context->is_gone) {
    *bad = wr;
    return qp->context->is_gone ? EIO : EINVAL;
  }
  int error = receives_post(&qp->receives, wr, bad);
  // In the error state the NIC looks at receives only when it is asked to.
  if (base->state == QPS_ERR || qp->sq.header[WORD_FATAL] != 0) doorbell(qp->context, base->qp_num);
  return error;
}

int data_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
  if (context_of(srq->context)->is_gone) {
    *bad = wr;
    return EIO;
  }
  return receives_post(&((struct srq *)srq)->receives, wr, bad);
}

static int has_room(struct qp *qp, uint32_t index) { return index - qp->released < qp->sq.depth; }

static struct send_element *begin(struct qp *qp, uint32_t index, int opcode, unsigned flags, uint64_t wr_id) {
  struct send_element *to = element(&qp->sq, index);
  memset(to, 0, offsetof(struct send_element, sges));
  to->opcode = (uint8_t)opcode;
  to->flags = (uint8_t)(flags & 7);
  qp->wr_ids[index & (qp->sq.depth - 1)] = wr_id;
  return to;
}

static int put_sges(struct qp *qp, struct send_element *to, const struct ibv_sge *sges, size_t count) {
  if (count > qp->cap.max_send_sge) return EINVAL;
  uint64_t total = 0;
  for (size_t i = 0; i < count; i++) {
    to->sges[i] = sges[i];
    total += sges[i].length;
  }
  if (total > 1u << 31) return EINVAL;
  to->sge_count = (uint16_t)count;
  to->message_bytes = (uint32_t)total;
  return 0;
}

static int put_inline(struct qp *qp, struct send_element *to, const void *bytes, size_t length) {
  if (to->message_bytes + length > qp->cap.max_inline_data) return EINVAL;
  memcpy(to->inline_data + to->message_bytes, bytes, length);
  to->flags |= SEND_INLINE;
  to->message_bytes += (uint32_t)length;
  return 0;
}

static void put_binding(struct send_element *to, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *bind) {
  to->remote_addr = bind->addr;
  to->rkey = rkey;
  to->handle = mw->handle;
  to->access = bind->mw_access_flags;
  to->sges[0] = (struct ibv_sge){0, (uint32_t)bind->length, bind->mr == NULL ? 0 : bind->mr->lkey};
  to->sge_count = 1;
  to->message_bytes = (uint32_t)bind->length;
}

// 0, or the errno with which requests are refused.
static int may_send(const struct qp *qp) {
  if (qp->context->is_gone) return EIO;
  return qp->base.state >= QPS_RTS ? 0 : EINVAL;
}

static int put_request(struct qp *qp, uint32_t index, const struct ibv_send_wr *wr) {
  if (!has_room(qp, index)) return ENOMEM;
  if (wr->num_sge < 0) return EINVAL;
  struct send_element *to = begin(qp, index, wr->opcode, wr->send_flags, wr->wr_id);
  switch (wr->opcode) {
    case WR_SEND_WITH_IMM:
      to->immediate = ntohl(wr->imm_data);
      break;
    case WR_SEND_WITH_INV:
      to->immediate = wr->imm_data;
      break;
    case WR_RDMA_WRITE_WITH_IMM:
      to->immediate = ntohl(wr->imm_data); // fall through
    case WR_RDMA_WRITE:
    case WR_RDMA_READ:
      to->remote_addr = wr->wr.rdma.remote_addr;
      to->rkey = wr->wr.rdma.rkey;
      break;
    case WR_ATOMIC_CMP_AND_SWP:
    case WR_ATOMIC_FETCH_AND_ADD:
      to->remote_addr = wr->wr.atomic.remote_addr;
      to->rkey = wr->wr.atomic.rkey;
      to->compare_add = wr->wr.atomic.compare_add;
      to->swap = wr->wr.atomic.swap;
      break;
    case WR_LOCAL_INV:
      to->rkey = wr->imm_data;
      return 0;
    case WR_BIND_MW:
      put_binding(to, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
      return 0;
    case WR_SEND:
      break;
    default:
      return EINVAL;
  }
  if (qp->base.qp_type == QPT_UD) {
    if (wr->wr.ud.ah == NULL) return EINVAL;
    to->ah = wr->wr.ud.ah->handle;
    to->remote_qpn = wr->wr.ud.remote_qpn;
    to->qkey = wr->wr.ud.remote_qkey;
  }
  int takes_inline = wr->opcode != WR_RDMA_READ && wr->opcode < WR_ATOMIC_CMP_AND_SWP;
  if ((wr->send_flags & SEND_INLINE) == 0) return put_sges(qp, to, wr->sg_list, (size_t)wr->num_sge);
  if (!takes_inline && wr->opcode != WR_SEND_WITH_INV) return EINVAL;
  for (int i = 0; i < wr->num_sge; i++) {
    const struct ibv_sge *sge = &wr->sg_list[i];
    if (put_inline(qp, to, (const void *)(uintptr_t)sge->addr, sge->length) != 0) return EINVAL;
  }
  if (wr->num_sge == 0) to->flags |= SEND_INLINE;
  return 0;
}

int data_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
  struct qp *qp = (struct qp *)base;
  int error = may_send(qp);
  if (error != 0) {
    *bad = wr;
    return error;
  }
  pthread_mutex_lock(&qp->lock);
  uint32_t first = qp->sq.header[WORD_PRODUCER], index = first;
  for (; wr != NULL; wr = wr->next, index++) {
    error = put_request(qp, index, wr);
    if (error != 0) break;
  }
  qp->sq.header[WORD_PRODUCER] = index;
  pthread_mutex_unlock(&qp->lock);
  if (error != 0) *bad = wr;
  if (index != first) doorbell(qp->context, base->qp_num);
  return error;
}

// A new key of a window: its number in the upper 24 bits, another low byte.
int data_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind) {
  if (mw->type != 1) return EINVAL;
  uint32_t rkey = (mw->rkey & ~255u) | ((mw->rkey + 1) & 255);
  struct ibv_send_wr wr = {.wr_id = bind->wr_id, .opcode = WR_BIND_MW, .send_flags = bind->send_flags}, *bad;
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = rkey;
  wr.bind_mw.bind_info = bind->bind_info;
  int error = data_post_send(qp, &wr, &bad);
  if (error == 0) mw->rkey = rkey;
  return error;
}

// The queue pair is gone or reset: its completions name no queue pair, and receives of a shared queue are free again.
static void forget_in(struct cq *cq, struct qp *qp) {
  pthread_mutex_lock(&cq->lock);
  uint32_t end = cq->ring.header[WORD_PRODUCER];
  for (uint32_t index = cq->ring.header[WORD_CONSUMER]; index != end; index++) {
    struct completion_element *from = element(&cq->ring, index);
    if (from->qpn != qp->base.qp_num) continue;
    from->qpn = 0;
    if (from->is_receive && qp->base.srq != NULL) {
      receive_done(&((struct srq *)qp->base.srq)->receives, from->index);
    }
  }
  pthread_mutex_unlock(&cq->lock);
}

void forget_completions(struct qp *qp) {
  forget_in((struct cq *)qp->base.send_cq, qp);
  if (qp->base.recv_cq != qp->base.send_cq) forget_in((struct cq *)qp->base.recv_cq, qp);
}

// Takes the oldest completion of a queue pair that exists. The caller has the lock of the queue.
static int take(struct cq *cq, struct context *context, struct ibv_wc *wc) {
  _Atomic uint32_t *header = cq->ring.header;
  for (;;) {
    uint32_t index = header[WORD_CONSUMER];
    if (index == header[WORD_PRODUCER]) return 0;
    struct completion_element from = *(struct completion_element *)element(&cq->ring, index);
    header[WORD_CONSUMER] = index + 1;
    struct qp *qp = from.qpn < 2 ? NULL : find_qp(context, from.qpn);
    if (qp == NULL) continue;
    uint64_t wr_id;
    if (from.is_receive) {
      struct srq *srq = (struct srq *)qp->base.srq;
      wr_id = receive_done(srq == NULL ? &qp->receives : &srq->receives, from.index);
    } else {
      wr_id = qp->wr_ids[from.index & (qp->sq.depth - 1)];
      qp->released = from.index + 1;
    }
    *wc = (struct ibv_wc){.wr_id = wr_id, .status = from.status, .opcode = from.opcode,
                          .vendor_err = from.vendor_error, .byte_len = from.byte_count, .qp_num = from.qpn,
                          .src_qp = from.source_qpn, .wc_flags = from.flags & 15u};
    // As NICs of the mlx5 series, which UCX expects: in a datagram's service level, that its packet was IPv4 and UDP.
    if ((from.flags & WC_FLAG_GRH) != 0 && context->device->is_ipv4) wc->sl = SL_IPV4_UDP;
    wc->imm_data = (from.flags & WC_FLAG_WITH_INV) != 0 ? from.immediate : htonl(from.immediate);
    return 1;
  }
}

// The NIC writes later completions to the new ring, and leaves room for those that were not taken.
int data_resize_cq(struct context *context, struct cq *cq, uint32_t depth) {
  struct ring next = {0};
  int error = ring_make(&next, depth, 64);
  pthread_mutex_lock(&cq->lock);
  struct ring old = cq->ring;
  uint32_t first = old.header[WORD_CONSUMER];
  if (error == 0 && old.header[WORD_PRODUCER] - first > next.depth) error = EINVAL;
  if (error == 0) {
    uint64_t args[3] = {cq->base.handle, (uint64_t)next.fd, next.bytes};
    error = command(context, OP_RESIZE_CQ, args, 3);
  }
  if (error == 0) {
    ring_forget_name(&next);
    uint32_t end = old.header[WORD_PRODUCER];
    for (uint32_t index = first; index != end; index++) memcpy(element(&next, index), element(&old, index), 64);
    cq->ring = next;
  }
  pthread_mutex_unlock(&cq->lock);
  ring_free(error == 0 ? &old : &next);
  return error;
}

static int is_empty(const struct cq *cq) { return cq->ring.header[WORD_CONSUMER] == cq->ring.header[WORD_PRODUCER]; }

static void arm(struct cq *cq, uint32_t wanted) {
  uint32_t armed = cq->ring.header[WORD_ARMED];
  while (armed < wanted && !atomic_compare_exchange_weak(&cq->ring.header[WORD_ARMED], &armed, wanted)) {
  }
}

static void on_completion(struct context *context) {
  atomic_store_explicit(&context->empty_since, 0, memory_order_relaxed);
  atomic_store_explicit(&context->empty_polls, 0, memory_order_relaxed);
}

static void after_empty_poll(struct cq *cq, struct context *context) {
  if (may_spin(&context->empty_since)) return;
  uint32_t signals = context->doorbells.header[WORD_SIGNALS];
  pthread_mutex_lock(&cq->lock);
  // A queue that is armed for solicited completions must not raise an event for others.
  int is_solicited = cq->ring.header[WORD_ARMED] == ARM_SOLICITED;
  if (!is_solicited) arm(cq, ARM_NEXT);
  int empty = is_empty(cq);
  pthread_mutex_unlock(&cq->lock);
  if (is_solicited) {
    sched_yield();
    return;
  }
  if (context->seen_signals != signals) {
    context->seen_signals = signals;
    on_completion(context);
  } else if (++context->empty_polls > ARMED_POLLS && empty) wait_for_signal(context, signals);
}

int data_poll(struct ibv_cq *base, int max, struct ibv_wc *wc) {
  struct cq *cq = (struct cq *)base;
  struct context *context = context_of(base->context);
  int count = 0;
  pthread_mutex_lock(&cq->lock);
  while (count < max && take(cq, context, &wc[count])) count++;
  pthread_mutex_unlock(&cq->lock);
  if (count > 0) on_completion(context);
  else if (max > 0 && context->is_gone) return -EIO;
  else if (max > 0) after_empty_poll(cq, context);
  return count;
}

int data_notify(struct ibv_cq *base, int solicited_only) {
  struct cq *cq = (struct cq *)base;
  pthread_mutex_lock(&cq->lock);
  cq->ring.header[WORD_REQUESTED] = 1;
  arm(cq, solicited_only ? ARM_SOLICITED : ARM_NEXT);
  pthread_mutex_unlock(&cq->lock);
  return 0;
}

// The interface of ibv_wr_*: a batch of requests between wr_start, which takes the lock, and wr_complete.

static struct qp *own(struct ibv_qp_ex *qp) { return (struct qp *)qp; }

static void ex_start(struct ibv_qp_ex *ex) {
  struct qp *qp = own(ex);
  pthread_mutex_lock(&qp->lock);
  qp->first = qp->building = qp->sq.header[WORD_PRODUCER];
  qp->error = may_send(qp);
}

static struct send_element *ex_begin(struct ibv_qp_ex *ex, int opcode) {
  static struct send_element nowhere; // Where refused requests go.
  struct qp *qp = own(ex);
  if (qp->error == 0 && !has_room(qp, qp->building)) qp->error = ENOMEM;
  if (qp->error != 0) return &nowhere;
  return begin(qp, qp->building++, opcode, ex->wr_flags, ex->wr_id);
}

static struct send_element *ex_last(struct qp *qp) { return element(&qp->sq, qp->building - 1); }

static void ex_send(struct ibv_qp_ex *ex) { ex_begin(ex, WR_SEND); }
static void ex_send_imm(struct ibv_qp_ex *ex, uint32_t imm) { ex_begin(ex, WR_SEND_WITH_IMM)->immediate = ntohl(imm); }
static void ex_send_inv(struct ibv_qp_ex *ex, uint32_t rkey) { ex_begin(ex, WR_SEND_WITH_INV)->immediate = rkey; }
static void ex_local_inv(struct ibv_qp_ex *ex, uint32_t rkey) { ex_begin(ex, WR_LOCAL_INV)->rkey = rkey; }

static struct send_element *ex_remote(struct ibv_qp_ex *ex, int opcode, uint32_t rkey, uint64_t addr) {
  struct send_element *to = ex_begin(ex, opcode);
  to->remote_addr = addr;
  to->rkey = rkey;
  return to;
}

static void ex_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr) { ex_remote(ex, WR_RDMA_WRITE, rkey, addr); }
static void ex_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr) { ex_remote(ex, WR_RDMA_READ, rkey, addr); }
static void ex_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint32_t imm) {
  ex_remote(ex, WR_RDMA_WRITE_WITH_IMM, rkey, addr)->immediate = ntohl(imm);
}
static void ex_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap) {
  struct send_element *to = ex_remote(ex, WR_ATOMIC_CMP_AND_SWP, rkey, addr);
  to->compare_add = compare;
  to->swap = swap;
}
static void ex_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add) {
  ex_remote(ex, WR_ATOMIC_FETCH_AND_ADD, rkey, addr)->compare_add = add;
}
static void ex_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, const void *value) {
  struct send_element *to = ex_remote(ex, WR_ATOMIC_WRITE, rkey, addr);
  memcpy(to->inline_data, value, 8);
  to->flags |= SEND_INLINE;
  to->message_bytes = 8;
}
static void ex_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, size_t length, uint8_t type, uint8_t level) {
  struct send_element *to = ex_remote(ex, WR_FLUSH, rkey, addr);
  struct qp *qp = own(ex);
  if (qp->error == 0 && (length > 1u << 31 || type > 3 || level > 1)) qp->error = EINVAL;
  to->immediate = (uint32_t)type | (uint32_t)level << 4;
  to->message_bytes = (uint32_t)length;
}
static void ex_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *bind) {
  put_binding(ex_begin(ex, WR_BIND_MW), mw, rkey, bind);
}
static void ex_set_ud(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey) {
  struct qp *qp = own(ex);
  if (qp->error != 0) return;
  struct send_element *to = ex_last(qp);
  to->ah = ah->handle;
  to->remote_qpn = qpn;
  to->qkey = qkey;
}
static void ex_set_sges(struct ibv_qp_ex *ex, size_t count, const struct ibv_sge *sges) {
  struct qp *qp = own(ex);
  if (qp->error == 0) qp->error = put_sges(qp, ex_last(qp), sges, count);
}
static void ex_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length) {
  struct ibv_sge sge = {addr, length, lkey};
  ex_set_sges(ex, 1, &sge);
}
static void ex_set_inline(struct ibv_qp_ex *ex, void *addr, size_t length) {
  struct qp *qp = own(ex);
  if (qp->error == 0) qp->error = put_inline(qp, ex_last(qp), addr, length);
}
static void ex_set_inlines(struct ibv_qp_ex *ex, size_t count, const struct ibv_data_buf *list) {
  for (size_t i = 0; i < count; i++) ex_set_inline(ex, list[i].addr, list[i].length);
}
static int ex_complete(struct ibv_qp_ex *ex) {
  struct qp *qp = own(ex);
  int error = qp->error, posts = error == 0 && qp->building != qp->first;
  if (posts) qp->sq.header[WORD_PRODUCER] = qp->building;
  pthread_mutex_unlock(&qp->lock);
  if (posts) doorbell(qp->context, qp->base.qp_num);
  return error;
}
static void ex_abort(struct ibv_qp_ex *ex) { pthread_mutex_unlock(&own(ex)->lock); }

void data_extend_qp(struct qp *qp) {
  struct ibv_qp_ex *ex = &qp->ex;
  ex->wr_atomic_cmp_swp = ex_cmp_swp;
  ex->wr_atomic_fetch_add = ex_fetch_add;
  ex->wr_bind_mw = ex_bind_mw;
  ex->wr_local_inv = ex_local_inv;
  ex->wr_rdma_read = ex_read;
  ex->wr_rdma_write = ex_write;
  ex->wr_rdma_write_imm = ex_write_imm;
  ex->wr_send = ex_send;
  ex->wr_send_imm = ex_send_imm;
  ex->wr_send_inv = ex_send_inv;
  ex->wr_set_ud_addr = ex_set_ud;
  ex->wr_set_inline_data = ex_set_inline;
  ex->wr_set_inline_data_list = ex_set_inlines;
  ex->wr_set_sge = ex_set_sge;
  ex->wr_set_sge_list = ex_set_sges;
  ex->wr_start = ex_start;
  ex->wr_complete = ex_complete;
  ex->wr_abort = ex_abort;
  ex->wr_atomic_write = ex_atomic_write;
  ex->wr_flush = ex_flush;
}

// The interface of ibv_start_poll: the lock of the queue is held until ibv_end_poll.

static int cq_next(struct ibv_cq_ex *ex) {
  struct cq *cq = (struct cq *)ex;
  if (!take(cq, context_of(cq->base.context), &cq->current)) return ENOENT;
  ex->wr_id = cq->current.wr_id;
  ex->status = cq->current.status;
  return 0;
}
static int cq_start(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr) {
  struct cq *cq = (struct cq *)ex;
  if (attr->comp_mask != 0) return EINVAL;
  pthread_mutex_lock(&cq->lock);
  struct context *context = context_of(cq->base.context);
  int error = cq_next(ex);
  if (error == 0) {
    on_completion(context);
    return 0;
  }
  pthread_mutex_unlock(&cq->lock);
  if (context->is_gone) return EIO;
  after_empty_poll(cq, context);
  return error;
}
static void cq_end(struct ibv_cq_ex *ex) { pthread_mutex_unlock(&((struct cq *)ex)->lock); }
#define CURRENT(ex) (((struct cq *)(ex))->current)
static int cq_opcode(struct ibv_cq_ex *ex) { return CURRENT(ex).opcode; }
static uint32_t cq_vendor_err(struct ibv_cq_ex *ex) { return CURRENT(ex).vendor_err; }
static uint32_t cq_byte_len(struct ibv_cq_ex *ex) { return CURRENT(ex).byte_len; }
static uint32_t cq_imm_data(struct ibv_cq_ex *ex) { return CURRENT(ex).imm_data; }
static uint32_t cq_qp_num(struct ibv_cq_ex *ex) { return CURRENT(ex).qp_num; }
static uint32_t cq_src_qp(struct ibv_cq_ex *ex) { return CURRENT(ex).src_qp; }
static unsigned cq_wc_flags(struct ibv_cq_ex *ex) { return CURRENT(ex).wc_flags; }
static uint32_t cq_slid(struct ibv_cq_ex *ex) { return CURRENT(ex).slid; }
static uint8_t cq_sl(struct ibv_cq_ex *ex) { return CURRENT(ex).sl; }
static uint8_t cq_dlid_path_bits(struct ibv_cq_ex *ex) { return CURRENT(ex).dlid_path_bits; }

void data_extend_cq(struct cq *cq) {
  struct ibv_cq_ex *ex = &cq->ex;
  ex->start_poll = cq_start;
  ex->next_poll = cq_next;
  ex->end_poll = cq_end;
  ex->read_opcode = cq_opcode;
  ex->read_vendor_err = cq_vendor_err;
  ex->read_byte_len = cq_byte_len;
  ex->read_imm_data = cq_imm_data;
  ex->read_qp_num = cq_qp_num;
  ex->read_src_qp = cq_src_qp;
  ex->read_wc_flags = cq_wc_flags;
  ex->read_slid = cq_slid;
  ex->read_sl = cq_sl;
  ex->read_dlid_path_bits = cq_dlid_path_bits;
}
