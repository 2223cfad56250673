// Two queue pairs of one device that are connected to each other: queues that are resized while they are in use, FLUSH and
// ATOMIC WRITE. Says what is wrong, and ends with 1.
#include "../native/abi.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ibv_device **ibv_get_device_list(int *count);
struct ibv_context *ibv_open_device(struct ibv_device *device);
struct ibv_pd *ibv_alloc_pd(struct ibv_context *context);
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *own, struct ibv_comp_channel *channel, int vector);
int ibv_resize_cq(struct ibv_cq *cq, int cqe);
struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init);
int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp);

enum { FLUSH_GLOBAL = 1, FLUSH_REGION = 1, WC_FLUSH = 8, WC_ATOMIC_WRITE = 9, REM_ACCESS_ERR = 10 };
#define SEND_OPS (1ull << 0 | 1ull << 2 | 1ull << 11 | 1ull << 12) // WRITE, SEND, FLUSH, ATOMIC WRITE
#define CHECK(what) do { if (!(what)) { printf("line %d: %s (%s)\n", __LINE__, #what, strerror(errno)); exit(1); } } while (0)

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_mr *mr;
static struct ibv_qp_ex *ex;
static uint64_t memory[512];

static struct ibv_qp *create_qp(void) {
  struct verbs_context *verbs = (struct verbs_context *)((char *)context - offsetof(struct verbs_context, context));
  struct ibv_qp_init_attr_ex init = {
    .send_cq = cq, .recv_cq = cq, .srq = srq, .cap = {16, 0, 1, 0, 0}, .qp_type = QPT_RC, .sq_sig_all = 1, .pd = pd,
    .comp_mask = QP_INIT_ATTR_PD | QP_INIT_ATTR_SEND_OPS_FLAGS, .send_ops_flags = SEND_OPS,
  };
  return verbs->create_qp_ex(context, &init);
}

static void connect_qp(struct ibv_qp *qp, struct ibv_qp *peer) {
  struct ibv_qp_attr attr = {.qp_state = QPS_INIT, .port_num = 1};
  attr.qp_access_flags = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_FLUSH_GLOBAL;
  CHECK(ibv_modify_qp(qp, &attr, QP_STATE | 1 << 4 | QP_PORT | QP_ACCESS_FLAGS) == 0);
  attr = (struct ibv_qp_attr){.qp_state = QPS_RTR, .path_mtu = 3, .dest_qp_num = peer->qp_num, .max_dest_rd_atomic = 4,
                              .min_rnr_timer = 12, .ah_attr = {.is_global = 1, .port_num = 1}};
  CHECK(ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid) == 0);
  int mask = QP_STATE | QP_AV | QP_PATH_MTU | QP_DEST_QPN | QP_RQ_PSN | QP_MAX_DEST_RD_ATOMIC | QP_MIN_RNR_TIMER;
  CHECK(ibv_modify_qp(qp, &attr, mask) == 0);
  attr = (struct ibv_qp_attr){.qp_state = QPS_RTS, .timeout = 16, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
  mask = QP_STATE | QP_SQ_PSN | QP_TIMEOUT | QP_RETRY_CNT | QP_RNR_RETRY | QP_MAX_QP_RD_ATOMIC;
  CHECK(ibv_modify_qp(qp, &attr, mask) == 0);
}

static struct ibv_wc next(void) {
  struct ibv_wc wc;
  int count;
  while ((count = context->ops.poll_cq(cq, 1, &wc)) == 0) {
  }
  CHECK(count == 1);
  return wc;
}

static int post_receive(uint64_t wr_id) {
  struct ibv_sge sge = {(uint64_t)(uintptr_t)&memory[256], 8, mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
  return context->ops.post_srq_recv(srq, &wr, &bad);
}

static void send_word(uint64_t wr_id, uint64_t *word) {
  ex->wr_start(ex);
  ex->wr_id = wr_id;
  ex->wr_flags = SEND_SIGNALED;
  ex->wr_send(ex);
  ex->wr_set_sge(ex, mr->lkey, (uint64_t)(uintptr_t)word, 8);
  CHECK(ex->wr_complete(ex) == 0);
}

static void send_one(uint64_t wr_id) { send_word(wr_id, memory); }

static void wait_for_message(uint64_t word) {
  while (*(volatile uint64_t *)&memory[256] != word) {
  }
}

static void resize_completion_queue(void) {
  CHECK(cq->cqe == 4);
  for (uint64_t i = 0; i < 2; i++) CHECK(post_receive(i) == 0);
  for (uint64_t i = 0; i < 2; i++) send_one(100 + i);
  wait_for_message(memory[0]);
  CHECK(ibv_resize_cq(cq, 64) == 0 && cq->cqe == 64);
  CHECK(ibv_resize_cq(cq, 0) == EINVAL && ibv_resize_cq(cq, 1 << 30) == EINVAL);
  uint64_t sum = 0;
  for (int i = 0; i < 4; i++) sum += next().wr_id;
  CHECK(sum == 0 + 1 + 100 + 101);
  for (uint64_t i = 0; i < 8; i++) CHECK(post_receive(i) == 0);
  for (uint64_t i = 0; i < 7; i++) send_one(i);
  send_word(7, &memory[1]);
  wait_for_message(memory[1]);
  CHECK(ibv_resize_cq(cq, 4) == EINVAL && cq->cqe == 64); // At least seven receives are done.
  for (int i = 0; i < 16; i++) CHECK(next().status == 0);
  CHECK(ibv_resize_cq(cq, 16) == 0);
}

static void resize_shared_receive_queue(void) {
  struct ibv_srq_attr attr = {.max_wr = 32, .srq_limit = 5};
  CHECK(ibv_modify_srq(srq, &attr, SRQ_MAX_WR | SRQ_LIMIT) == 0);
  CHECK(ibv_query_srq(srq, &attr) == 0 && attr.max_wr == 32 && attr.srq_limit == 5 && attr.max_sge == 1);
  for (uint64_t i = 0; i < 32; i++) CHECK(post_receive(i) == 0);
  CHECK(post_receive(32) == ENOMEM);
  attr.max_wr = 16;
  CHECK(ibv_modify_srq(srq, &attr, SRQ_MAX_WR) == EINVAL);
  for (uint64_t i = 0; i < 28; i++) {
    send_one(1000);
    uint64_t first = next().wr_id, second = next().wr_id;
    CHECK(first + second == 1000 + i);
  }
  CHECK(ibv_query_srq(srq, &attr) == 0 && attr.max_wr == 32 && attr.srq_limit == 0); // It was reached.
  attr.max_wr = 8;
  CHECK(ibv_modify_srq(srq, &attr, SRQ_MAX_WR) == 0);
  for (uint64_t i = 0; i < 4; i++) CHECK(post_receive(32 + i) == 0);
  CHECK(post_receive(36) == ENOMEM);
  for (uint64_t i = 28; i < 36; i++) {
    send_one(1000);
    CHECK(next().wr_id + next().wr_id == 1000 + i);
  }
}

static struct ibv_wc flush(uint32_t rkey, size_t length, uint8_t level) {
  ex->wr_start(ex);
  ex->wr_flush(ex, rkey, (uint64_t)(uintptr_t)&memory[128], length, FLUSH_GLOBAL, level);
  CHECK(ex->wr_complete(ex) == 0);
  return next();
}

static void place(uint32_t key_without_right) {
  uint64_t value = 0x0102030405060708;
  ex->wr_start(ex);
  ex->wr_atomic_write(ex, mr->rkey, (uint64_t)(uintptr_t)&memory[128], &value);
  value = 0; // It was copied.
  CHECK(ex->wr_complete(ex) == 0);
  struct ibv_wc wc = next();
  CHECK(wc.status == 0 && wc.opcode == WC_ATOMIC_WRITE && memory[128] == 0x0102030405060708);
  wc = flush(mr->rkey, 8, 0);
  CHECK(wc.status == 0 && wc.opcode == WC_FLUSH);
  CHECK(flush(mr->rkey, 1 << 20, FLUSH_REGION).status == 0);
  ex->wr_start(ex);
  ex->wr_flush(ex, mr->rkey, 0, 8, 4, 0);
  CHECK(ex->wr_complete(ex) == EINVAL);
  CHECK(flush(key_without_right, 8, 0).status == REM_ACCESS_ERR);
}

int main(void) {
  int count;
  struct ibv_device **devices = ibv_get_device_list(&count);
  CHECK(count == 1 && (context = ibv_open_device(devices[0])) != NULL);
  CHECK((pd = ibv_alloc_pd(context)) != NULL && (cq = ibv_create_cq(context, 4, NULL, NULL, 0)) != NULL);
  struct ibv_srq_init_attr init = {.attr = {8, 1, 0}};
  CHECK((srq = ibv_create_srq(pd, &init)) != NULL);
  int access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE;
  struct ibv_mr *plain = ibv_reg_mr(pd, memory, sizeof memory, access);
  CHECK(plain != NULL && (mr = ibv_reg_mr(pd, memory, sizeof memory, access | ACCESS_FLUSH_GLOBAL)) != NULL);
  CHECK(ibv_reg_mr(pd, memory, 8, ACCESS_FLUSH_PERSISTENT) == NULL && errno == EOPNOTSUPP);
  struct ibv_qp *one = create_qp(), *other = create_qp();
  CHECK(one != NULL && other != NULL && (ex = ibv_qp_to_qp_ex(one)) != NULL);
  connect_qp(one, other);
  connect_qp(other, one);
  memory[0] = 7;
  memory[1] = 9;
  resize_completion_queue();
  resize_shared_receive_queue();
  place(plain->rkey);
  return 0;
}
