// Objects of the NIC that programs create, change and free.
#define _GNU_SOURCE
#include "shim.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void *refuse(int error) {
  errno = error;
  return NULL;
}

static void wait_for_events(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *done, uint32_t seen) {
  pthread_mutex_lock(mutex);
  while (*done != seen) pthread_cond_wait(cond, mutex);
  pthread_mutex_unlock(mutex);
}

EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
  struct pd *pd = calloc(1, sizeof *pd);
  uint64_t args[1] = {0};
  int error = pd == NULL ? ENOMEM : command(context_of(context), OP_ALLOC_PD, args, 1);
  if (error != 0) {
    free(pd);
    return refuse(error);
  }
  pd->base = (struct ibv_pd){context, (uint32_t)args[0]};
  return &pd->base;
}

// Queues are in shared memory, so the allocators of the program are not called.
struct ibv_pd *object_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr) {
  if (attr->pd == NULL || (attr->comp_mask & ~3u) != 0) return refuse(EINVAL);
  struct pd *pd = calloc(1, sizeof *pd);
  if (pd == NULL) return NULL;
  pd->base = (struct ibv_pd){context, attr->pd->handle};
  pd->parent = (struct pd *)attr->pd;
  pthread_mutex_lock(&context_of(context)->lock);
  pd->parent->domains++;
  pthread_mutex_unlock(&context_of(context)->lock);
  return &pd->base;
}

struct ibv_td *object_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr) {
  if (attr->comp_mask != 0) return refuse(EINVAL);
  struct ibv_td *td = calloc(1, sizeof *td);
  if (td != NULL) td->context = context;
  return td;
}

int object_dealloc_td(struct ibv_td *td) {
  free(td);
  return 0;
}

EXPORT int ibv_dealloc_pd(struct ibv_pd *base) {
  struct pd *pd = (struct pd *)base;
  struct context *context = context_of(base->context);
  if (pd->domains != 0) return EBUSY;
  int error = pd->parent == NULL ? destroy_command(context, OP_DEALLOC_PD, base->handle) : 0;
  if (error != 0) return error;
  if (pd->parent != NULL) {
    pthread_mutex_lock(&context->lock);
    pd->parent->domains--;
    pthread_mutex_unlock(&context->lock);
  }
  free(pd);
  return 0;
}

// Memory is not pinned, and the NIC finds each page when it accesses it: paging on demand costs nothing.
static int known_access(unsigned access) {
  unsigned known = access & ~(unsigned)(ACCESS_OPTIONAL | ACCESS_ON_DEMAND);
  return (known & ~(unsigned)ACCESS_KNOWN) == 0 ? (int)known : -1;
}

int object_advise_mr(struct ibv_pd *pd, int advice, uint32_t flags, struct ibv_sge *sges, uint32_t count) {
  (void)pd, (void)flags, (void)sges, (void)count;
  return advice >= 0 && advice <= 2 ? 0 : EOPNOTSUPP;
}

EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access) {
  int known = known_access(access);
  if (known < 0) return refuse(EOPNOTSUPP);
  if (length == 0) return refuse(EINVAL);
  struct mr *mr = calloc(1, sizeof *mr);
  uint64_t args[5] = {pd->handle, (uint64_t)(uintptr_t)addr, length, iova, (uint64_t)known};
  int error = mr == NULL ? ENOMEM : command(context_of(pd->context), OP_REG_MR, args, 5);
  if (error != 0) {
    free(mr);
    return refuse(error);
  }
  uint32_t key = (uint32_t)args[1];
  *mr = (struct mr){{pd->context, pd, addr, length, (uint32_t)args[0], key, key}, iova, (unsigned)known};
  return &mr->base;
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access) {
  return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access) {
  return ibv_reg_mr_iova2(pd, addr, length, (uint64_t)(uintptr_t)addr, (unsigned)access);
}

EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                        int access) {
  (void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
  return refuse(EOPNOTSUPP);
}

static int refuse_rereg(int result, int error) {
  errno = error;
  return result;
}

// The keys stay. If it fails, nothing has changed.
EXPORT int ibv_rereg_mr(struct ibv_mr *base, int flags, struct ibv_pd *pd, void *addr, size_t length, int access) {
  struct mr *mr = (struct mr *)base;
  int moves = (flags & REREG_TRANSLATION) != 0;
  int lacks = (moves && (addr == NULL || length == 0)) || ((flags & REREG_PD) != 0 && pd == NULL);
  if (flags == 0 || (flags & ~7) != 0 || lacks) return refuse_rereg(REREG_ERR_INPUT, EINVAL);
  struct mr next = *mr;
  if (moves) {
    next.base.addr = addr;
    next.base.length = length;
    next.iova = (uint64_t)(uintptr_t)addr;
  }
  if ((flags & REREG_PD) != 0) next.base.pd = pd;
  int known = (flags & REREG_ACCESS) != 0 ? known_access((unsigned)access) : (int)mr->access;
  if (known < 0) return refuse_rereg(REREG_ERR_INPUT, EOPNOTSUPP);
  next.access = (unsigned)known;
  uint64_t args[6] = {base->handle, next.base.pd->handle, (uint64_t)(uintptr_t)next.base.addr, next.base.length,
                      next.iova, next.access};
  int error = command(context_of(base->context), OP_REREG_MR, args, 6);
  if (error != 0) return refuse_rereg(REREG_ERR_CMD, error);
  *mr = next;
  return 0;
}

EXPORT int ibv_dereg_mr(struct ibv_mr *mr) {
  int error = destroy_command(context_of(mr->context), OP_DEREG_MR, mr->handle);
  if (error == 0) free(mr);
  return error;
}

struct ibv_mw *object_alloc_mw(struct ibv_pd *pd, int type) {
  struct ibv_mw *mw = calloc(1, sizeof *mw);
  uint64_t args[2] = {pd->handle, (uint64_t)type};
  int error = mw == NULL ? ENOMEM : command(context_of(pd->context), OP_ALLOC_MW, args, 2);
  if (error != 0) {
    free(mw);
    return refuse(error);
  }
  *mw = (struct ibv_mw){pd->context, pd, (uint32_t)args[1], (uint32_t)args[0], type};
  return mw;
}

int object_dealloc_mw(struct ibv_mw *mw) {
  int error = destroy_command(context_of(mw->context), OP_DEALLOC_MW, mw->handle);
  if (error == 0) free(mw);
  return error;
}

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context) {
  struct context *own = context_of(context);
  struct channel *channel = calloc(1, sizeof *channel);
  struct message answer;
  int fd = channel == NULL ? -1 : connect_nic(own->device, KIND_CHANNEL, own->token, &answer);
  if (fd < 0) {
    free(channel);
    return NULL;
  }
  *channel = (struct channel){{context, fd, 0}, answer.args[0]};
  return &channel->base;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel) {
  if (channel->refcnt > 0) return EBUSY;
  close(channel->fd);
  free(channel);
  return 0;
}

static struct cq *create_cq(struct ibv_context *base, int cqe, void *cq_context, struct ibv_comp_channel *channel,
                            int vector) {
  if (cqe < 1 || cqe > CQ_DEPTH_MAX || vector != 0) return refuse(EINVAL);
  struct context *context = context_of(base);
  struct cq *cq = calloc(1, sizeof *cq);
  if (cq == NULL) return NULL;
  int error = ring_make(&cq->ring, (uint32_t)cqe, 64);
  if (error == 0) {
    pthread_mutex_lock(&context->lock);
    cq->cookie = ++context->next_cookie;
    pthread_mutex_unlock(&context->lock);
    uint64_t number = channel == NULL ? 0 : ((struct channel *)channel)->number;
    uint64_t args[4] = {(uint64_t)cq->ring.fd, cq->ring.bytes, cq->cookie, number};
    error = command(context, OP_CREATE_CQ, args, 4);
    if (error == 0) cq->base.handle = (uint32_t)args[0];
  }
  if (error != 0) {
    ring_free(&cq->ring);
    free(cq);
    return refuse(error);
  }
  ring_forget_name(&cq->ring);
  cq->base.context = base;
  cq->base.channel = channel;
  cq->base.cq_context = cq_context;
  cq->base.cqe = (int)cq->ring.depth;
  mutex_init(&cq->base.mutex);
  recursive_mutex_init(&cq->lock); // a program may ask for events between ibv_start_poll and ibv_end_poll
  pthread_cond_init(&cq->base.cond, NULL);
  pthread_mutex_lock(&context->lock);
  cq->next = context->cqs;
  context->cqs = cq;
  if (channel != NULL) channel->refcnt++;
  pthread_mutex_unlock(&context->lock);
  return cq;
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                    struct ibv_comp_channel *channel, int vector) {
  struct cq *cq = create_cq(context, cqe, cq_context, channel, vector);
  return cq == NULL ? NULL : &cq->base;
}

struct ibv_cq_ex *object_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init) {
  if ((init->wc_flags & ~(uint64_t)0x7f) != 0 || (init->comp_mask & ~3u) != 0) return refuse(EOPNOTSUPP);
  struct cq *cq = create_cq(context, (int)init->cqe, init->cq_context, init->channel, (int)init->comp_vector);
  if (cq == NULL) return NULL;
  data_extend_cq(cq);
  return &cq->ex;
}

EXPORT int ibv_destroy_cq(struct ibv_cq *base) {
  struct cq *cq = (struct cq *)base;
  struct context *context = context_of(base->context);
  int error = destroy_command(context, OP_DESTROY_CQ, base->handle);
  if (error != 0) return error;
  pthread_mutex_lock(&context->lock);
  struct cq **link = &context->cqs;
  while (*link != cq) link = &(*link)->next;
  *link = cq->next;
  if (base->channel != NULL) base->channel->refcnt--;
  pthread_mutex_unlock(&context->lock);
  wait_for_events(&base->mutex, &base->cond, &base->comp_events_completed, cq->comp_events);
  wait_for_events(&base->mutex, &base->cond, &base->async_events_completed, cq->async_events);
  ring_free(&cq->ring);
  free(cq);
  return 0;
}

EXPORT int ibv_resize_cq(struct ibv_cq *base, int cqe) {
  if (cqe < 1 || cqe > CQ_DEPTH_MAX) return EINVAL;
  struct cq *cq = (struct cq *)base;
  int error = data_resize_cq(context_of(base->context), cq, (uint32_t)cqe);
  if (error == 0) base->cqe = (int)cq->ring.depth;
  return error;
}

// As read(2), but looks for a while before it sleeps.
static ssize_t receive_soon(int fd, void *bytes, size_t length) {
  _Atomic uint64_t since = 0;
  int blocks = (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
  for (;;) {
    ssize_t n = recv(fd, bytes, length, MSG_DONTWAIT);
    if (!blocks || n >= 0 || errno != EAGAIN) return n;
    if (!may_spin(&since)) return read(fd, bytes, length);
  }
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context) {
  struct context *context = context_of(channel->context);
  for (;;) {
    uint64_t cookie;
    ssize_t n = receive_soon(channel->fd, &cookie, sizeof cookie);
    if (n != sizeof cookie) {
      if (n >= 0) {
        nic_is_gone(context);
        errno = ENODEV;
      }
      return -1;
    }
    pthread_mutex_lock(&context->lock);
    struct cq *found = context->cqs;
    while (found != NULL && found->cookie != cookie) found = found->next;
    if (found != NULL) found->comp_events++;
    pthread_mutex_unlock(&context->lock);
    if (found == NULL) continue; // It was destroyed since.
    *cq = &found->base;
    *cq_context = found->base.cq_context;
    return 0;
  }
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count) {
  pthread_mutex_lock(&cq->mutex);
  cq->comp_events_completed += count;
  pthread_cond_signal(&cq->cond);
  pthread_mutex_unlock(&cq->mutex);
}

static struct ibv_srq *create_srq(struct ibv_pd *pd, void *srq_context, struct ibv_srq_attr *attr) {
  if (attr->max_wr > QUEUE_DEPTH_MAX || attr->max_sge > SGE_MAX) return refuse(EINVAL);
  struct context *context = context_of(pd->context);
  struct srq *srq = calloc(1, sizeof *srq);
  if (srq == NULL) return NULL;
  int error = receives_make(&srq->receives, attr->max_wr, attr->max_sge);
  if (error == 0) {
    uint64_t args[3] = {pd->handle, (uint64_t)srq->receives.ring.fd, srq->receives.ring.bytes};
    error = command(context, OP_CREATE_SRQ, args, 3);
    srq->base.handle = (uint32_t)args[0];
  }
  if (error != 0) {
    receives_free(&srq->receives);
    free(srq);
    return refuse(error);
  }
  ring_forget_name(&srq->receives.ring);
  srq->base.context = pd->context;
  srq->base.srq_context = srq_context;
  srq->base.pd = pd;
  mutex_init(&srq->base.mutex);
  pthread_cond_init(&srq->base.cond, NULL);
  attr->max_wr = srq->receives.ring.depth;
  attr->max_sge = srq->receives.max_sge;
  pthread_mutex_lock(&context->lock);
  srq->next = context->srqs;
  context->srqs = srq;
  pthread_mutex_unlock(&context->lock);
  return &srq->base;
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init) {
  return create_srq(pd, init->srq_context, &init->attr);
}

struct ibv_srq *object_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init) {
  (void)context;
  if ((init->comp_mask & ~3u) != 0 || ((init->comp_mask & 1) != 0 && init->srq_type != 0)) return refuse(EOPNOTSUPP);
  if ((init->comp_mask & 2) == 0) return refuse(EINVAL);
  return create_srq(init->pd, init->srq_context, &init->attr);
}

EXPORT int ibv_modify_srq(struct ibv_srq *base, struct ibv_srq_attr *attr, int mask) {
  struct context *context = context_of(base->context);
  struct receives *receives = &((struct srq *)base)->receives;
  if ((mask & ~(SRQ_MAX_WR | SRQ_LIMIT)) != 0) return EINVAL;
  if ((mask & SRQ_MAX_WR) != 0) {
    if (attr->max_wr < 1 || attr->max_wr > QUEUE_DEPTH_MAX) return EINVAL;
    int error = receives_resize(context, base->handle, receives, attr->max_wr);
    if (error != 0) return error;
  }
  if ((mask & SRQ_LIMIT) == 0) return 0;
  if (attr->srq_limit > receives->ring.depth) return EINVAL;
  uint64_t args[2] = {base->handle, attr->srq_limit};
  return command(context, OP_MODIFY_SRQ, args, 2);
}

EXPORT int ibv_query_srq(struct ibv_srq *base, struct ibv_srq_attr *attr) {
  struct srq *srq = (struct srq *)base;
  uint64_t args[2] = {base->handle};
  int error = command(context_of(base->context), OP_QUERY_SRQ, args, 2);
  if (error == 0) *attr = (struct ibv_srq_attr){srq->receives.ring.depth, srq->receives.max_sge, (uint32_t)args[1]};
  return error;
}

EXPORT int ibv_destroy_srq(struct ibv_srq *base) {
  struct srq *srq = (struct srq *)base;
  struct context *context = context_of(base->context);
  int error = destroy_command(context, OP_DESTROY_SRQ, base->handle);
  if (error != 0) return error;
  pthread_mutex_lock(&context->lock);
  struct srq **link = &context->srqs;
  while (*link != srq) link = &(*link)->next;
  *link = srq->next;
  pthread_mutex_unlock(&context->lock);
  wait_for_events(&base->mutex, &base->cond, &base->events_completed, srq->async_events);
  receives_free(&srq->receives);
  free(srq);
  return 0;
}

struct qp *find_qp(struct context *context, uint32_t qpn) {
  for (uint32_t i = qpn;; i++) {
    struct qp_entry *entry = &context->qps[i & (CONTEXT_QPS_MAX * 2 - 1)];
    uint32_t found = entry->qpn;
    if (found == qpn) return entry->qp;
    if (found == 0) return NULL;
  }
}

// Entries of destroyed queue pairs stay as 1, which is QP1's number, so that look-ups go beyond them.
static int remember_qp(struct context *context, struct qp *qp) {
  pthread_mutex_lock(&context->lock);
  uint32_t qpn = qp->base.qp_num, i = 0;
  for (; i < CONTEXT_QPS_MAX; i++) {
    struct qp_entry *entry = &context->qps[(qpn + i) & (CONTEXT_QPS_MAX * 2 - 1)];
    if (entry->qpn > 1) continue;
    entry->qp = qp;
    entry->qpn = qpn;
    break;
  }
  pthread_mutex_unlock(&context->lock);
  return i < CONTEXT_QPS_MAX ? 0 : ENOMEM;
}

static void forget_qp(struct context *context, uint32_t qpn) {
  pthread_mutex_lock(&context->lock);
  for (uint32_t i = qpn; context->qps[i & (CONTEXT_QPS_MAX * 2 - 1)].qpn != 0; i++) {
    struct qp_entry *entry = &context->qps[i & (CONTEXT_QPS_MAX * 2 - 1)];
    if (entry->qpn != qpn) continue;
    entry->qpn = 1;
    break;
  }
  pthread_mutex_unlock(&context->lock);
}

static void free_qp(struct qp *qp) {
  ring_free(&qp->sq);
  receives_free(&qp->receives);
  free(qp->wr_ids);
  free(qp);
}

static struct qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init) {
  struct ibv_qp_cap *cap = &init->cap;
  if (init->qp_type < QPT_RC || init->qp_type > QPT_UD) return refuse(EOPNOTSUPP);
  if (init->send_cq == NULL || init->recv_cq == NULL || cap->max_send_wr > QUEUE_DEPTH_MAX ||
      cap->max_recv_wr > QUEUE_DEPTH_MAX || cap->max_send_sge > SGE_MAX || cap->max_recv_sge > SGE_MAX ||
      cap->max_inline_data > INLINE_MAX)
    return refuse(EINVAL);
  struct context *context = context_of(pd->context);
  struct qp *qp = calloc(1, sizeof *qp);
  if (qp == NULL) return NULL;
  uint32_t room = cap->max_send_sge * 16 > cap->max_inline_data ? cap->max_send_sge * 16 : cap->max_inline_data;
  if (room < 64) room = 64;
  int error = ring_make(&qp->sq, cap->max_send_wr == 0 ? 1 : cap->max_send_wr, 64 + (room + 63) / 64 * 64);
  if (error == 0) error = receives_make(&qp->receives, init->srq == NULL ? cap->max_recv_wr : 1, cap->max_recv_sge);
  if (error == 0) qp->wr_ids = calloc(qp->sq.depth, sizeof *qp->wr_ids);
  if (error == 0 && qp->wr_ids == NULL) error = ENOMEM;
  if (error == 0) {
    uint64_t args[10] = {pd->handle, (uint64_t)init->qp_type, init->send_cq->handle, init->recv_cq->handle,
                         init->srq == NULL ? 0 : init->srq->handle, (uint64_t)qp->sq.fd, qp->sq.bytes,
                         (uint64_t)qp->receives.ring.fd, qp->receives.ring.bytes, init->sq_sig_all != 0};
    error = command(context, OP_CREATE_QP, args, 10);
    qp->base.qp_num = qp->base.handle = (uint32_t)args[0];
  }
  if (error == 0) {
    error = remember_qp(context, qp);
    if (error != 0) destroy_command(context, OP_DESTROY_QP, qp->base.handle);
  }
  if (error != 0) {
    free_qp(qp);
    return refuse(error);
  }
  ring_forget_name(&qp->sq);
  ring_forget_name(&qp->receives.ring);
  cap->max_send_wr = qp->sq.depth;
  cap->max_recv_wr = init->srq == NULL ? qp->receives.ring.depth : 0;
  cap->max_recv_sge = init->srq == NULL ? qp->receives.max_sge : 0;
  cap->max_inline_data = qp->sq.stride - 64 > INLINE_MAX ? INLINE_MAX : qp->sq.stride - 64;
  if (cap->max_send_sge == 0) cap->max_send_sge = 1;
  qp->context = context;
  qp->cap = *cap;
  qp->signal_all = init->sq_sig_all;
  qp->base.context = pd->context;
  qp->base.qp_context = init->qp_context;
  qp->base.pd = pd;
  qp->base.send_cq = init->send_cq;
  qp->base.recv_cq = init->recv_cq;
  qp->base.srq = init->srq;
  qp->base.qp_type = init->qp_type;
  mutex_init(&qp->base.mutex);
  mutex_init(&qp->lock);
  pthread_cond_init(&qp->base.cond, NULL);
  return qp;
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init) {
  struct qp *qp = create_qp(pd, init);
  return qp == NULL ? NULL : &qp->base;
}

// Extended operations that can be posted, as bits of send_ops_flags: all but TSO.
#define SEND_OPS_POSSIBLE 0x1bffull

struct ibv_qp *object_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init) {
  (void)context;
  uint32_t known = QP_INIT_ATTR_PD | QP_INIT_ATTR_CREATE_FLAGS | QP_INIT_ATTR_SEND_OPS_FLAGS;
  if ((init->comp_mask & ~known) != 0) return refuse(EOPNOTSUPP);
  if ((init->comp_mask & QP_INIT_ATTR_CREATE_FLAGS) != 0 && init->create_flags != 0) return refuse(EOPNOTSUPP);
  if ((init->comp_mask & QP_INIT_ATTR_PD) == 0) return refuse(EINVAL);
  int extended = (init->comp_mask & QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  if (extended && (init->send_ops_flags & ~SEND_OPS_POSSIBLE) != 0) return refuse(EOPNOTSUPP);
  struct qp *qp = create_qp(init->pd, (struct ibv_qp_init_attr *)init);
  if (qp == NULL) return NULL;
  if (extended) data_extend_qp(qp);
  return &qp->base;
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp) {
  struct qp *own = (struct qp *)qp;
  return own->ex.wr_start == NULL ? NULL : &own->ex;
}

// Arguments of OP_MODIFY_QP and results of OP_QUERY_QP, from the second one on.
enum {
  ARG_MASK, ARG_STATE, ARG_ACCESS, ARG_QKEY, ARG_GID, ARG_DSCP = ARG_GID + 2, ARG_MTU, ARG_TIMEOUT, ARG_RETRY,
  ARG_RNR_RETRY, ARG_RQ_PSN, ARG_RD_ATOMIC, ARG_RNR_TIMER, ARG_SQ_PSN, ARG_DEST_RD_ATOMIC, ARG_DEST_QPN, ARG_NOTIFY,
  ARG_PORT, ARG_CUR_STATE, ARG_DRAINING, ARG_COUNT
};

EXPORT int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask) {
  struct qp *qp = (struct qp *)base;
  if ((mask & QP_AV) != 0 && !attr->ah_attr.is_global) return EINVAL;
  if ((mask & QP_AV) != 0 && attr->ah_attr.grh.sgid_index != 0) return EINVAL;
  if ((mask & QP_CAP) != 0) return EOPNOTSUPP;
  uint64_t args[1 + ARG_COUNT] = {base->handle};
  uint64_t *to = args + 1;
  to[ARG_MASK] = (uint64_t)mask;
  // Members that are not in the mask are not set.
#define GIVEN(bit, value) ((mask & (bit)) != 0 ? (uint64_t)(uint32_t)(value) : 0)
  to[ARG_STATE] = GIVEN(QP_STATE, attr->qp_state);
  to[ARG_CUR_STATE] = GIVEN(QP_CUR_STATE, attr->cur_qp_state);
  to[ARG_ACCESS] = GIVEN(QP_ACCESS_FLAGS, attr->qp_access_flags & ACCESS_KNOWN);
  to[ARG_QKEY] = GIVEN(QP_QKEY, attr->qkey);
  if ((mask & QP_AV) != 0) memcpy(&to[ARG_GID], &attr->ah_attr.grh.dgid, 16);
  to[ARG_DSCP] = GIVEN(QP_AV, attr->ah_attr.grh.traffic_class >> 2);
  to[ARG_MTU] = GIVEN(QP_PATH_MTU, attr->path_mtu);
  to[ARG_TIMEOUT] = GIVEN(QP_TIMEOUT, attr->timeout);
  to[ARG_RETRY] = GIVEN(QP_RETRY_CNT, attr->retry_cnt);
  to[ARG_RNR_RETRY] = GIVEN(QP_RNR_RETRY, attr->rnr_retry);
  to[ARG_RQ_PSN] = GIVEN(QP_RQ_PSN, attr->rq_psn);
  to[ARG_RD_ATOMIC] = GIVEN(QP_MAX_QP_RD_ATOMIC, attr->max_rd_atomic);
  to[ARG_RNR_TIMER] = GIVEN(QP_MIN_RNR_TIMER, attr->min_rnr_timer);
  to[ARG_SQ_PSN] = GIVEN(QP_SQ_PSN, attr->sq_psn);
  to[ARG_DEST_RD_ATOMIC] = GIVEN(QP_MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic);
  to[ARG_DEST_QPN] = GIVEN(QP_DEST_QPN, attr->dest_qp_num);
  to[ARG_NOTIFY] = GIVEN(QP_EN_SQD_ASYNC_NOTIFY, attr->en_sqd_async_notify);
  to[ARG_PORT] = GIVEN(QP_PORT, attr->port_num);
#undef GIVEN
  int error = command(qp->context, OP_MODIFY_QP, args, 1 + ARG_COUNT);
  if (error != 0 || (mask & QP_STATE) == 0) return error;
  base->state = attr->qp_state;
  if (attr->qp_state == QPS_RESET) {
    qp->sq.header[WORD_FATAL] = 0;
    forget_completions(qp);
    qp->released = qp->sq.header[WORD_PRODUCER];
    if (base->srq == NULL) receives_clear(&qp->receives);
  } else if (attr->qp_state == QPS_ERR) doorbell(qp->context, base->qp_num);
  return 0;
}

EXPORT int ibv_query_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init) {
  (void)mask;
  struct qp *qp = (struct qp *)base;
  uint64_t args[1 + ARG_COUNT] = {base->handle};
  int error = command(qp->context, OP_QUERY_QP, args, 1 + ARG_COUNT);
  if (error != 0) return error;
  const uint64_t *from = args + 1;
  *attr = (struct ibv_qp_attr){
    .qp_state = (int)from[ARG_STATE], .cur_qp_state = (int)from[ARG_STATE], .path_mtu = (int)from[ARG_MTU],
    .path_mig_state = 0, .qkey = (uint32_t)from[ARG_QKEY], .rq_psn = (uint32_t)from[ARG_RQ_PSN],
    .sq_psn = (uint32_t)from[ARG_SQ_PSN], .dest_qp_num = (uint32_t)from[ARG_DEST_QPN],
    .qp_access_flags = (unsigned)from[ARG_ACCESS], .cap = qp->cap, .sq_draining = (uint8_t)from[ARG_DRAINING],
    .max_rd_atomic = (uint8_t)from[ARG_RD_ATOMIC], .max_dest_rd_atomic = (uint8_t)from[ARG_DEST_RD_ATOMIC],
    .min_rnr_timer = (uint8_t)from[ARG_RNR_TIMER], .port_num = 1, .timeout = (uint8_t)from[ARG_TIMEOUT],
    .retry_cnt = (uint8_t)from[ARG_RETRY], .rnr_retry = (uint8_t)from[ARG_RNR_RETRY],
  };
  attr->ah_attr.is_global = 1;
  attr->ah_attr.port_num = 1;
  attr->ah_attr.grh.traffic_class = (uint8_t)(from[ARG_DSCP] << 2);
  memcpy(&attr->ah_attr.grh.dgid, &from[ARG_GID], 16);
  base->state = attr->qp_state;
  *init = (struct ibv_qp_init_attr){base->qp_context, base->send_cq, base->recv_cq, base->srq, qp->cap, base->qp_type,
                                    qp->signal_all};
  return 0;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *base) {
  struct qp *qp = (struct qp *)base;
  int error = destroy_command(qp->context, OP_DESTROY_QP, base->handle);
  if (error != 0) return error;
  forget_completions(qp);
  forget_qp(qp->context, base->qp_num);
  wait_for_events(&base->mutex, &base->cond, &base->events_completed, qp->async_events);
  free_qp(qp);
  return 0;
}

EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, int opcode, uint32_t flags) {
  (void)qp, (void)opcode, (void)flags;
  return 0;
}

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr) {
  if (!attr->is_global || attr->port_num != 1 || attr->grh.sgid_index != 0) return refuse(EINVAL);
  struct ibv_ah *ah = calloc(1, sizeof *ah);
  uint64_t args[4] = {pd->handle, 0, 0, attr->grh.traffic_class >> 2};
  memcpy(&args[1], &attr->grh.dgid, 16);
  int error = ah == NULL ? ENOMEM : command(context_of(pd->context), OP_CREATE_AH, args, 4);
  if (error != 0) {
    free(ah);
    return refuse(error);
  }
  *ah = (struct ibv_ah){pd->context, pd, (uint32_t)args[0]};
  return ah;
}

EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
                               struct ibv_ah_attr *attr) {
  (void)context;
  if ((wc->wc_flags & 1) == 0) {
    errno = EINVAL;
    return -1;
  }
  *attr = (struct ibv_ah_attr){.is_global = 1, .port_num = port, .sl = wc->sl};
  attr->grh.hop_limit = 64;
  const uint8_t *bytes = (const uint8_t *)grh;
  if (bytes[0] >> 4 == 6) attr->grh.dgid = grh->sgid;
  else { // An IPv4 header is in the last 20 bytes.
    memset(attr->grh.dgid.raw, 0, 10);
    memset(attr->grh.dgid.raw + 10, 0xff, 2);
    memcpy(attr->grh.dgid.raw + 12, bytes + 32, 4);
  }
  return 0;
}

EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port) {
  struct ibv_ah_attr attr;
  if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr) != 0) return NULL;
  return ibv_create_ah(pd, &attr);
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah) {
  int error = destroy_command(context_of(ah->context), OP_DESTROY_AH, ah->handle);
  if (error == 0) free(ah);
  return error;
}

EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid) {
  (void)qp, (void)gid, (void)lid;
  return EOPNOTSUPP;
}

EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid) {
  (void)qp, (void)gid, (void)lid;
  return EOPNOTSUPP;
}

// The form in which the kernel describes queue pairs and paths to librdmacm (rdma/ib_user_verbs.h, ib_user_sa.h).
struct kernel_ah_attr {
  uint8_t dgid[16];
  uint32_t flow_label;
  uint8_t sgid_index, hop_limit, traffic_class, reserved;
  uint16_t dlid;
  uint8_t sl, src_path_bits, static_rate, is_global, port_num, reserved2;
};

struct kernel_qp_attr {
  uint32_t mask, state, cur_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn, dest_qpn, access_flags;
  struct kernel_ah_attr ah, alt_ah;
  uint32_t cap[5];
  uint16_t pkey_index, alt_pkey_index;
  uint8_t notify, draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port, timeout, retry, rnr_retry, alt_port;
  uint8_t alt_timeout, reserved[5];
};

EXPORT void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, const struct kernel_ah_attr *from) {
  *to = (struct ibv_ah_attr){.dlid = from->dlid, .sl = from->sl, .src_path_bits = from->src_path_bits,
                             .static_rate = from->static_rate, .is_global = from->is_global,
                             .port_num = from->port_num};
  memcpy(&to->grh.dgid, from->dgid, 16);
  to->grh.flow_label = from->flow_label;
  to->grh.sgid_index = from->sgid_index;
  to->grh.hop_limit = from->hop_limit;
  to->grh.traffic_class = from->traffic_class;
}

EXPORT void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, const struct kernel_qp_attr *from) {
  to->cur_qp_state = (int)from->cur_state;
  to->path_mtu = (int)from->path_mtu;
  to->path_mig_state = (int)from->path_mig_state;
  to->qkey = from->qkey;
  to->rq_psn = from->rq_psn;
  to->sq_psn = from->sq_psn;
  to->dest_qp_num = from->dest_qpn;
  to->qp_access_flags = from->access_flags;
  memcpy(&to->cap, from->cap, sizeof to->cap);
  ibv_copy_ah_attr_from_kern(&to->ah_attr, &from->ah);
  ibv_copy_ah_attr_from_kern(&to->alt_ah_attr, &from->alt_ah);
  to->pkey_index = from->pkey_index;
  to->alt_pkey_index = from->alt_pkey_index;
  to->en_sqd_async_notify = from->notify;
  to->sq_draining = from->draining;
  to->max_rd_atomic = from->max_rd_atomic;
  to->max_dest_rd_atomic = from->max_dest_rd_atomic;
  to->min_rnr_timer = from->min_rnr_timer;
  to->port_num = from->port;
  to->timeout = from->timeout;
  to->retry_cnt = from->retry;
  to->rnr_retry = from->rnr_retry;
  to->alt_port_num = from->alt_port;
  to->alt_timeout = from->alt_timeout;
  if (from->mask & QP_STATE) to->qp_state = (int)from->state;
}

struct kernel_path {
  uint8_t dgid[16], sgid[16];
  uint16_t dlid, slid;
  uint32_t raw_traffic, flow_label, reversible, mtu;
  uint16_t pkey;
  uint8_t hop_limit, traffic_class, numb_path, sl, mtu_selector, rate_selector, rate, life_time_selector, life_time;
  uint8_t preference;
};

// infiniband/sa.h
struct ibv_sa_path_rec {
  union ibv_gid dgid, sgid;
  uint16_t dlid, slid;
  int raw_traffic;
  uint32_t flow_label;
  uint8_t hop_limit, traffic_class;
  int reversible;
  uint8_t numb_path;
  uint16_t pkey;
  uint8_t sl, mtu_selector, mtu, rate_selector, rate, packet_life_time_selector, packet_life_time, preference;
};

EXPORT void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to, const struct kernel_path *from) {
  *to = (struct ibv_sa_path_rec){
    .dlid = from->dlid, .slid = from->slid, .raw_traffic = (int)from->raw_traffic, .flow_label = from->flow_label,
    .hop_limit = from->hop_limit, .traffic_class = from->traffic_class, .reversible = (int)from->reversible,
    .numb_path = from->numb_path, .pkey = from->pkey, .sl = from->sl, .mtu_selector = from->mtu_selector,
    .mtu = (uint8_t)from->mtu, .rate_selector = from->rate_selector, .rate = from->rate,
    .packet_life_time_selector = from->life_time_selector, .packet_life_time = from->life_time,
    .preference = from->preference,
  };
  memcpy(&to->dgid, from->dgid, 16);
  memcpy(&to->sgid, from->sgid, 16);
}
