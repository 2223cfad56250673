// Devices, contexts and what can be asked about them.
#define _GNU_SOURCE
#include "shim.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char FIRMWARE[] = "rocev2";
enum { VENDOR_ID = 0xffffff }; // as the software NICs of Linux
enum { ODP_SUPPORT = 1, ODP_ALL = 63, ODP_SEND_RECV = 3, ODP_SEND_RECV_WRITE = 7 };
#define CAP_FLUSH_GLOBAL (1ull << 38)
#define CAP_ATOMIC_WRITE (1ull << 40)
static const int MTU_CODES[] = {0, 256, 512, 1024, 2048, 4096};

EXPORT struct ibv_device **ibv_get_device_list(int *count) {
  int found = 0;
  struct device **devices = all_devices(&found);
  struct ibv_device **list = calloc((size_t)found + 1, sizeof *list);
  if (list == NULL) return NULL;
  for (int i = 0; i < found; i++) list[i] = &devices[i]->base;
  if (count != NULL) *count = found;
  return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list) { free(list); }
EXPORT const char *ibv_get_device_name(struct ibv_device *device) { return device->name; }
EXPORT int ibv_get_device_index(struct ibv_device *device) {
  return atoi(strrchr(device->name, '_') + 1);
}

static uint64_t guid_of(const struct device *device) {
  uint64_t guid;
  memcpy(&guid, &device->gid.raw[8], 8);
  return guid;
}

EXPORT uint64_t ibv_get_device_guid(struct ibv_device *device) { return guid_of((struct device *)device); }

static struct device *device_of(struct ibv_context *context) { return (struct device *)context->device; }

static int mtu_code(uint32_t bytes) {
  int code = 1;
  while (code < 5 && (uint32_t)MTU_CODES[code + 1] <= bytes) code++;
  return code;
}

static void describe(struct ibv_context *context, struct ibv_device_attr *attr) {
  *attr = (struct ibv_device_attr){
    .node_guid = guid_of(device_of(context)), .sys_image_guid = guid_of(device_of(context)),
    .max_mr_size = 1ull << 46, .vendor_id = VENDOR_ID, .page_size_cap = 0xfffffffffffff000, .max_qp = CONTEXT_QPS_MAX,
    .max_qp_wr = QUEUE_DEPTH_MAX, .device_cap_flags = 1 << 12 | 1 << 17 | 1 << 21 | 1 << 24, .max_sge = SGE_MAX,
    .max_sge_rd = SGE_MAX, .max_cq = 65536, .max_cqe = CQ_DEPTH_MAX, .max_mr = 1 << 20, .max_pd = 1 << 20,
    .max_qp_rd_atom = RD_ATOMIC_MAX, .max_res_rd_atom = RD_ATOMIC_MAX * CONTEXT_QPS_MAX,
    .max_qp_init_rd_atom = RD_ATOMIC_MAX, .atomic_cap = ATOMIC_HCA, .max_mw = 1 << 20, .max_ah = 1 << 20,
    .max_srq = 65536, .max_srq_wr = QUEUE_DEPTH_MAX, .max_srq_sge = SGE_MAX, .max_pkeys = 1,
    .local_ca_ack_delay = 15, .phys_port_cnt = 1,
  };
  snprintf(attr->fw_ver, sizeof attr->fw_ver, "%s", FIRMWARE);
}

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr) {
  describe(context, attr);
  return 0;
}

static int query_device_ex(struct ibv_context *context, const void *input, void *attr, size_t size) {
  (void)input;
  struct ibv_device_attr_ex all = {
    .odp_caps = {ODP_SUPPORT, ODP_ALL, ODP_SEND_RECV_WRITE, ODP_SEND_RECV}, .phys_port_cnt_ex = 1,
  };
  describe(context, &all.orig_attr);
  all.device_cap_flags_ex = all.orig_attr.device_cap_flags | CAP_FLUSH_GLOBAL | CAP_ATOMIC_WRITE;
  memset(attr, 0, size);
  memcpy(attr, &all, size < sizeof all ? size : sizeof all);
  return 0;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size) {
  if (port != 1) return EINVAL;
  int mtu = mtu_code(device_of(context)->mtu);
  struct ibv_port_attr all = {
    .state = PORT_ACTIVE, .max_mtu = 5, .active_mtu = mtu, .gid_tbl_len = GID_TABLE_LENGTH,
    .port_cap_flags = 1 << 16, .max_msg_sz = 1u << 31, .pkey_tbl_len = 1, .max_vl_num = 1, .active_width = 2,
    .active_speed = 4, .phys_state = PHYS_LINK_UP, .link_layer = LINK_LAYER_ETHERNET,
  };
  memset(attr, 0, size);
  memcpy(attr, &all, size < sizeof all ? size : sizeof all);
  return 0;
}

// The exported function fills the attributes of older programs, up to and with the flags; the table's has the size.
EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr) {
  return query_port(context, port, attr, offsetof(struct ibv_port_attr, port_cap_flags2));
}

EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid) {
  if (port != 1 || index < 0 || index >= GID_TABLE_LENGTH) {
    errno = EINVAL;
    return -1;
  }
  memset(gid, 0, sizeof *gid);
  if (index == 0) *gid = device_of(context)->gid;
  return 0;
}

EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type) {
  (void)context;
  if (port != 1 || index >= GID_TABLE_LENGTH) {
    errno = EINVAL;
    return -1;
  }
  *type = 1; // RoCE v2, in the numbers of sysfs
  return 0;
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                             uint32_t flags, size_t size) {
  if (port != 1 || index >= GID_TABLE_LENGTH || flags != 0) return EINVAL;
  if (index != 0) return ENODATA;
  struct ibv_gid_entry all = {device_of(context)->gid, index, 1, GID_TYPE_ROCE_V2, device_of(context)->ifindex};
  memset(entry, 0, size);
  memcpy(entry, &all, size < sizeof all ? size : sizeof all);
  return 0;
}

EXPORT long _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max, uint32_t flags,
                                 size_t size) {
  if (flags != 0 || max == 0) return -EINVAL;
  int error = _ibv_query_gid_ex(context, 1, 0, entries, 0, size);
  return error == 0 ? 1 : -error;
}

EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, uint16_t *pkey) {
  (void)context;
  if (port != 1 || index != 0) {
    errno = EINVAL;
    return -1;
  }
  *pkey = 0xffff;
  return 0;
}

EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, uint16_t pkey) {
  (void)context;
  if (port == 1 && pkey == 0xffff) return 0;
  errno = EINVAL;
  return -1;
}

EXPORT const char *ibv_get_sysfs_path(void) { return "/sys"; }

// Attributes of a device that programs read as files.
EXPORT int ibv_read_sysfs_file(const char *folder, const char *file, char *text, size_t size) {
  if (strcmp(file, "class/misc/rdma_cm/abi_version") == 0) return snprintf(text, size, "4");
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  FILE *stream = fopen(path, "re");
  if (stream == NULL) return -1;
  size_t length = fread(text, 1, size - 1, stream);
  fclose(stream);
  while (length > 0 && text[length - 1] == '\n') length--;
  text[length] = 0;
  return (int)length;
}

static int query_rt_values(struct ibv_context *context, void *values) {
  (void)context;
  (void)values;
  return EOPNOTSUPP;
}

extern int object_advise_mr(struct ibv_pd *pd, int advice, uint32_t flags, struct ibv_sge *sges, uint32_t count);
extern struct ibv_pd *object_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);
extern struct ibv_td *object_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
extern int object_dealloc_td(struct ibv_td *td);
extern struct ibv_mw *object_alloc_mw(struct ibv_pd *pd, int type);
extern int object_dealloc_mw(struct ibv_mw *mw);
extern struct ibv_qp *object_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init);
extern struct ibv_cq_ex *object_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init);
extern struct ibv_srq *object_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init);

static void close_all(struct context *context) {
  struct ibv_context *base = &context->verbs.context;
  if (base->cmd_fd >= 0) close(base->cmd_fd);
  if (base->async_fd >= 0) close(base->async_fd);
  if (context->wake_fd >= 0) close(context->wake_fd);
  ring_free(&context->doorbells);
  free(context->qps);
  free(context);
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device) {
  struct context *context = calloc(1, sizeof *context);
  if (context == NULL) return NULL;
  struct ibv_context *base = &context->verbs.context;
  context->device = (struct device *)device;
  context->qps = calloc(CONTEXT_QPS_MAX * 2, sizeof *context->qps);
  mutex_init(&context->lock);
  mutex_init(&context->doorbell_lock);
  mutex_init(&base->mutex);
  base->device = device;
  base->num_comp_vectors = 1;
  base->abi_compat = (void *)UINTPTR_MAX;
  base->cmd_fd = base->async_fd = context->wake_fd = -1;
  base->ops.alloc_mw = object_alloc_mw;
  base->ops.dealloc_mw = object_dealloc_mw;
  base->ops.bind_mw = data_bind_mw;
  base->ops.poll_cq = data_poll;
  base->ops.req_notify_cq = data_notify;
  base->ops.post_send = data_post_send;
  base->ops.post_recv = data_post_recv;
  base->ops.post_srq_recv = data_post_srq_recv;
  context->verbs.sz = sizeof context->verbs;
  context->verbs.query_port = query_port;
  context->verbs.advise_mr = object_advise_mr;
  context->verbs.alloc_parent_domain = object_alloc_parent_domain;
  context->verbs.alloc_td = object_alloc_td;
  context->verbs.dealloc_td = object_dealloc_td;
  context->verbs.query_device_ex = query_device_ex;
  context->verbs.query_rt_values = query_rt_values;
  context->verbs.create_qp_ex = object_create_qp_ex;
  context->verbs.create_cq_ex = object_create_cq_ex;
  context->verbs.create_srq_ex = object_create_srq_ex;
  struct message answer;
  int error = context->qps == NULL ? ENOMEM : ring_make(&context->doorbells, 1024, 4);
  if (error == 0 && (base->cmd_fd = connect_nic(context->device, KIND_CONTEXT, 0, &answer)) < 0) error = errno;
  if (error == 0) {
    context->token = answer.args[0];
    admit_nic(answer.args[5]);
    if ((context->wake_fd = connect_nic(context->device, KIND_WAKE, context->token, NULL)) < 0) error = errno;
    else if ((base->async_fd = connect_nic(context->device, KIND_EVENTS, context->token, NULL)) < 0) error = errno;
  }
  if (error == 0) {
    send_memory(context);
    uint64_t args[3] = {(uint64_t)context->doorbells.fd, context->doorbells.bytes, (uint64_t)(uintptr_t)&context->token};
    error = command(context, OP_HELLO, args, 3);
    if (error == EOPNOTSUPP) fprintf(stderr, "rocev2: the NIC process cannot access the memory of this one\n");
    ring_forget_name(&context->doorbells);
  }
  if (error == 0) return base;
  close_all(context);
  errno = error;
  return NULL;
}

EXPORT int ibv_close_device(struct ibv_context *context) {
  close_all(context_of(context));
  return 0;
}

EXPORT int ibv_get_async_event(struct ibv_context *base, struct ibv_async_event *event) {
  struct context *context = context_of(base);
  for (;;) {
    struct {
      uint32_t type, id;
    } notice;
    ssize_t n = read(base->async_fd, &notice, sizeof notice);
    if (n < 0) return -1;
    if (n != sizeof notice) {
      nic_is_gone(context);
      if (atomic_exchange(&context->fatal_reported, 1)) {
        errno = ENODEV;
        return -1;
      }
      *event = (struct ibv_async_event){{.port_num = 1}, EVENT_DEVICE_FATAL};
      return 0;
    }
    event->event_type = (int)notice.type;
    if (notice.type == EVENT_CQ_ERR) {
      pthread_mutex_lock(&context->lock);
      struct cq *cq = context->cqs;
      while (cq != NULL && cq->base.handle != notice.id) cq = cq->next;
      if (cq != NULL) cq->async_events++;
      pthread_mutex_unlock(&context->lock);
      event->element.cq = &cq->base;
      if (cq != NULL) return 0;
    } else if (notice.type == EVENT_SRQ_LIMIT_REACHED) {
      pthread_mutex_lock(&context->lock);
      struct srq *srq = context->srqs;
      while (srq != NULL && srq->base.handle != notice.id) srq = srq->next;
      if (srq != NULL) srq->async_events++;
      pthread_mutex_unlock(&context->lock);
      event->element.srq = &srq->base;
      if (srq != NULL) return 0;
    } else {
      struct qp *qp = find_qp(context, notice.id);
      if (qp == NULL) continue;
      qp->async_events++;
      event->element.qp = &qp->base;
      return 0;
    }
  }
}

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed) {
  pthread_mutex_lock(mutex);
  (*completed)++;
  pthread_cond_signal(cond);
  pthread_mutex_unlock(mutex);
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event) {
  if (event->event_type == EVENT_DEVICE_FATAL) return;
  if (event->event_type == EVENT_CQ_ERR) {
    struct ibv_cq *cq = event->element.cq;
    acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed);
  } else if (event->event_type == EVENT_SRQ_LIMIT_REACHED) {
    struct ibv_srq *srq = event->element.srq;
    acknowledge(&srq->mutex, &srq->cond, &srq->events_completed);
  } else {
    struct ibv_qp *qp = event->element.qp;
    acknowledge(&qp->mutex, &qp->cond, &qp->events_completed);
  }
}

// The NIC copies from and to the memory of the program, and rings are not inherited: nothing to do.
EXPORT int ibv_fork_init(void) { return 0; }
EXPORT int ibv_is_fork_initialized(void) { return 2; }
EXPORT int ibv_dontfork_range(void *base, size_t size) { return base == NULL && size == 0 ? 0 : 0; }
EXPORT int ibv_dofork_range(void *base, size_t size) { return base == NULL && size == 0 ? 0 : 0; }

static const char *text_of(const char *const *texts, int count, int number) {
  return number >= 0 && number < count && texts[number] != NULL ? texts[number] : "unknown";
}
#define TEXT_OF(texts, number) text_of(texts, sizeof texts / sizeof *texts, number)

EXPORT const char *ibv_wc_status_str(int status) {
  static const char *const TEXTS[] = {
    "success", "local length error", "local QP operation error", "local EE context operation error",
    "local protection error", "Work Request Flushed Error", "memory bind operation error", "bad response error",
    "local access error", "remote invalid request error", "remote access error", "remote operation error",
    "transport retry counter exceeded", "RNR retry counter exceeded", "local RDD violation error",
    "remote invalid RD request", "aborted error", "invalid EE context number", "invalid EE context state",
    "fatal error", "response timeout error", "general error",
  };
  return TEXT_OF(TEXTS, status);
}

EXPORT const char *ibv_node_type_str(int type) { return type == NODE_CA ? "InfiniBand channel adapter" : "unknown"; }

EXPORT const char *ibv_port_state_str(int state) {
  static const char *const TEXTS[] = {"no state change (NOP)", "down", "init", "armed", "active", "active defer"};
  return TEXT_OF(TEXTS, state);
}

EXPORT const char *ibv_event_type_str(int type) {
  static const char *const TEXTS[] = {
    "CQ error", "local work queue catastrophic error", "invalid request local work queue error",
    "local access violation work queue error", "communication established", "send queue drained",
    "path migrated", "path migration request error", "local catastrophic error", "port active", "port error",
    "LID change", "P_Key change", "SM change", "SRQ catastrophic error", "SRQ limit reached", "last WQE reached",
  };
  return TEXT_OF(TEXTS, type);
}

// Static rates (ibv_rate): their multiples of 2.5 Gb/s, and Mb/s.
static const struct {
  int rate, multiple, mbps;
} RATES[] = {
  {2, 1, 2500}, {5, 2, 5000}, {3, 4, 10000}, {6, 8, 20000}, {4, 12, 30000}, {7, 16, 40000}, {8, 24, 60000},
  {9, 32, 80000}, {10, 48, 120000}, {11, 6, 14062}, {12, 23, 56250}, {13, 45, 112500}, {14, 68, 168750},
  {15, 10, 25781}, {16, 40, 103125}, {17, 80, 206250}, {18, 120, 309375},
};
#define RATE_COUNT (sizeof RATES / sizeof *RATES)

EXPORT int ibv_rate_to_mult(int rate) {
  for (size_t i = 0; i < RATE_COUNT; i++) if (RATES[i].rate == rate) return RATES[i].multiple;
  return -1;
}
EXPORT int mult_to_ibv_rate(int multiple) {
  for (size_t i = 0; i < RATE_COUNT; i++) if (RATES[i].multiple == multiple) return RATES[i].rate;
  return 0;
}
EXPORT int ibv_rate_to_mbps(int rate) {
  for (size_t i = 0; i < RATE_COUNT; i++) if (RATES[i].rate == rate) return RATES[i].mbps;
  return -1;
}
EXPORT int mbps_to_ibv_rate(int mbps) {
  for (size_t i = 0; i < RATE_COUNT; i++) if (RATES[i].mbps == mbps) return RATES[i].rate;
  return 0;
}
