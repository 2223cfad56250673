// The binary interface of libibverbs.so.1 (64-bit, little-endian): layouts and numbers that programs are compiled against.
// Fields have the names of the manual pages. test/abi.slow.test.ts compares sizes and offsets with an installed header.
#ifndef ROCEV2_ABI_H
#define ROCEV2_ABI_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define NAME_MAX_BYTES 64
#define PATH_MAX_BYTES 256

enum { NODE_CA = 1, TRANSPORT_IB = 0, LINK_LAYER_ETHERNET = 2, PORT_ACTIVE = 4, PHYS_LINK_UP = 5, ATOMIC_HCA = 1 };
enum { GID_TYPE_ROCE_V2_SYSFS = 2, GID_TYPE_ROCE_V2 = 2 };
enum { QPT_RC = 2, QPT_UC = 3, QPT_UD = 4 };
enum { QPS_RESET, QPS_INIT, QPS_RTR, QPS_RTS, QPS_SQD, QPS_SQE, QPS_ERR };
enum {
  WR_RDMA_WRITE, WR_RDMA_WRITE_WITH_IMM, WR_SEND, WR_SEND_WITH_IMM, WR_RDMA_READ, WR_ATOMIC_CMP_AND_SWP,
  WR_ATOMIC_FETCH_AND_ADD, WR_LOCAL_INV, WR_BIND_MW, WR_SEND_WITH_INV, WR_FLUSH = 14, WR_ATOMIC_WRITE
};
enum { SEND_FENCE = 1, SEND_SIGNALED = 2, SEND_SOLICITED = 4, SEND_INLINE = 8 };
enum { ACCESS_LOCAL_WRITE = 1, ACCESS_REMOTE_WRITE = 2, ACCESS_REMOTE_READ = 4, ACCESS_REMOTE_ATOMIC = 8,
  ACCESS_MW_BIND = 16, ACCESS_ZERO_BASED = 32, ACCESS_ON_DEMAND = 64, ACCESS_FLUSH_GLOBAL = 256,
  ACCESS_FLUSH_PERSISTENT = 512, ACCESS_OPTIONAL = 0x3ff00000, ACCESS_KNOWN = 63 | 256 | 512 };
enum { EVENT_CQ_ERR, EVENT_QP_FATAL, EVENT_QP_REQ_ERR, EVENT_QP_ACCESS_ERR, EVENT_COMM_EST, EVENT_SQ_DRAINED,
  EVENT_PATH_MIG, EVENT_PATH_MIG_ERR, EVENT_DEVICE_FATAL, EVENT_PORT_ACTIVE, EVENT_PORT_ERR, EVENT_LID_CHANGE,
  EVENT_PKEY_CHANGE, EVENT_SM_CHANGE, EVENT_SRQ_ERR, EVENT_SRQ_LIMIT_REACHED, EVENT_QP_LAST_WQE_REACHED };
enum {
  QP_STATE = 1 << 0, QP_CUR_STATE = 1 << 1, QP_EN_SQD_ASYNC_NOTIFY = 1 << 2, QP_ACCESS_FLAGS = 1 << 3,
  QP_PORT = 1 << 5, QP_QKEY = 1 << 6, QP_AV = 1 << 7, QP_PATH_MTU = 1 << 8, QP_TIMEOUT = 1 << 9, QP_RETRY_CNT = 1 << 10,
  QP_RNR_RETRY = 1 << 11, QP_RQ_PSN = 1 << 12, QP_MAX_QP_RD_ATOMIC = 1 << 13, QP_MIN_RNR_TIMER = 1 << 15,
  QP_SQ_PSN = 1 << 16, QP_MAX_DEST_RD_ATOMIC = 1 << 17, QP_CAP = 1 << 19, QP_DEST_QPN = 1 << 20
};
enum { QP_INIT_ATTR_PD = 1, QP_INIT_ATTR_CREATE_FLAGS = 1 << 2, QP_INIT_ATTR_SEND_OPS_FLAGS = 1 << 6 };
enum { REREG_TRANSLATION = 1, REREG_PD = 2, REREG_ACCESS = 4, REREG_ERR_INPUT = -1, REREG_ERR_CMD = -4 };
enum { SRQ_MAX_WR = 1, SRQ_LIMIT = 2 };

struct ibv_context;
struct ibv_td;
struct ibv_td_init_attr;
struct ibv_parent_domain_init_attr;
struct ibv_sge;
struct ibv_pd;
struct ibv_qp;
struct ibv_cq;
struct ibv_srq;
struct ibv_mr;
struct ibv_mw;
struct ibv_ah;
struct ibv_send_wr;
struct ibv_recv_wr;
struct ibv_wc;
struct ibv_mw_bind;
struct ibv_device_attr;
struct ibv_port_attr;
struct ibv_qp_init_attr_ex;
struct ibv_srq_init_attr_ex;
struct ibv_cq_init_attr_ex;
struct ibv_cq_ex;

union ibv_gid {
  uint8_t raw[16];
  uint64_t halves[2];
};

struct ibv_device {
  void *ops[2];
  int node_type, transport_type;
  char name[NAME_MAX_BYTES], dev_name[NAME_MAX_BYTES], dev_path[PATH_MAX_BYTES], ibdev_path[PATH_MAX_BYTES];
};

struct ibv_context_ops {
  void *unused_before[7];
  struct ibv_mw *(*alloc_mw)(struct ibv_pd *, int type);
  int (*bind_mw)(struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *);
  int (*dealloc_mw)(struct ibv_mw *);
  void *create_cq;
  int (*poll_cq)(struct ibv_cq *, int, struct ibv_wc *);
  int (*req_notify_cq)(struct ibv_cq *, int);
  void *unused_middle[7];
  int (*post_srq_recv)(struct ibv_srq *, struct ibv_recv_wr *, struct ibv_recv_wr **);
  void *unused_qp[4];
  int (*post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
  int (*post_recv)(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **);
  void *unused_after[5];
};

struct ibv_context {
  struct ibv_device *device;
  struct ibv_context_ops ops;
  int cmd_fd, async_fd, num_comp_vectors;
  pthread_mutex_t mutex;
  void *abi_compat;
};

// Ends with the context and grows at its beginning, so a member that an older program does not know is before all others.
struct verbs_context {
  int (*query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *, size_t);
  int (*advise_mr)(struct ibv_pd *, int, uint32_t, struct ibv_sge *, uint32_t);
  void *unused_first[12];
  struct ibv_pd *(*alloc_parent_domain)(struct ibv_context *, struct ibv_parent_domain_init_attr *);
  int (*dealloc_td)(struct ibv_td *);
  struct ibv_td *(*alloc_td)(struct ibv_context *, struct ibv_td_init_attr *);
  void *unused_second[7];
  int (*query_rt_values)(struct ibv_context *, void *);
  struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *, struct ibv_cq_init_attr_ex *);
  void *priv;
  int (*query_device_ex)(struct ibv_context *, const void *, void *, size_t);
  void *unused_flow[4];
  void *open_qp;
  struct ibv_qp *(*create_qp_ex)(struct ibv_context *, struct ibv_qp_init_attr_ex *);
  void *get_srq_num;
  struct ibv_srq *(*create_srq_ex)(struct ibv_context *, struct ibv_srq_init_attr_ex *);
  void *open_xrcd, *close_xrcd;
  uint64_t placeholder;
  size_t sz;
  struct ibv_context context;
};

struct ibv_device_attr {
  char fw_ver[64];
  uint64_t node_guid, sys_image_guid, max_mr_size, page_size_cap;
  uint32_t vendor_id, vendor_part_id, hw_ver;
  int max_qp, max_qp_wr;
  unsigned device_cap_flags;
  int max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd, max_qp_rd_atom, max_ee_rd_atom, max_res_rd_atom;
  int max_qp_init_rd_atom, max_ee_init_rd_atom, atomic_cap, max_ee, max_rdd, max_mw, max_raw_ipv6_qp;
  int max_raw_ethy_qp, max_mcast_grp, max_mcast_qp_attach, max_total_mcast_qp_attach, max_ah, max_fmr;
  int max_map_per_fmr, max_srq, max_srq_wr, max_srq_sge;
  uint16_t max_pkeys;
  uint8_t local_ca_ack_delay, phys_port_cnt;
};

// What follows the plain attributes: of the optional features there is on-demand paging.
struct ibv_device_attr_ex {
  struct ibv_device_attr orig_attr;
  uint32_t comp_mask;
  struct {
    uint64_t general_caps;
    uint32_t rc_odp_caps, uc_odp_caps, ud_odp_caps;
  } odp_caps;
  uint64_t completion_timestamp_mask, hca_core_clock, device_cap_flags_ex;
  uint8_t features[104];
  uint32_t xrc_odp_caps, phys_port_cnt_ex;
};

struct ibv_port_attr {
  int state, max_mtu, active_mtu, gid_tbl_len;
  uint32_t port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr;
  uint16_t pkey_tbl_len, lid, sm_lid;
  uint8_t lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply, active_width, active_speed, phys_state;
  uint8_t link_layer, flags;
  uint16_t port_cap_flags2;
};

struct ibv_gid_entry {
  union ibv_gid gid;
  uint32_t gid_index, port_num, gid_type, ndev_ifindex;
};

struct ibv_pd {
  struct ibv_context *context;
  uint32_t handle;
};

struct ibv_td {
  struct ibv_context *context;
};

struct ibv_td_init_attr {
  uint32_t comp_mask;
};

struct ibv_parent_domain_init_attr {
  struct ibv_pd *pd;
  struct ibv_td *td;
  uint32_t comp_mask;
  void *alloc, *free, *pd_context;
};

struct ibv_mr {
  struct ibv_context *context;
  struct ibv_pd *pd;
  void *addr;
  size_t length;
  uint32_t handle, lkey, rkey;
};

struct ibv_mw {
  struct ibv_context *context;
  struct ibv_pd *pd;
  uint32_t rkey, handle;
  int type;
};

struct ibv_mw_bind_info {
  struct ibv_mr *mr;
  uint64_t addr, length;
  unsigned mw_access_flags;
};

struct ibv_mw_bind {
  uint64_t wr_id;
  unsigned send_flags;
  struct ibv_mw_bind_info bind_info;
};

struct ibv_comp_channel {
  struct ibv_context *context;
  int fd, refcnt;
};

struct ibv_cq {
  struct ibv_context *context;
  struct ibv_comp_channel *channel;
  void *cq_context;
  uint32_t handle;
  int cqe;
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  uint32_t comp_events_completed, async_events_completed;
};

struct ibv_poll_cq_attr {
  uint32_t comp_mask;
};

struct ibv_cq_ex {
  struct ibv_cq base;
  uint32_t comp_mask;
  int status;
  uint64_t wr_id;
  int (*start_poll)(struct ibv_cq_ex *, struct ibv_poll_cq_attr *);
  int (*next_poll)(struct ibv_cq_ex *);
  void (*end_poll)(struct ibv_cq_ex *);
  int (*read_opcode)(struct ibv_cq_ex *);
  uint32_t (*read_vendor_err)(struct ibv_cq_ex *);
  uint32_t (*read_byte_len)(struct ibv_cq_ex *);
  uint32_t (*read_imm_data)(struct ibv_cq_ex *);
  uint32_t (*read_qp_num)(struct ibv_cq_ex *);
  uint32_t (*read_src_qp)(struct ibv_cq_ex *);
  unsigned (*read_wc_flags)(struct ibv_cq_ex *);
  uint32_t (*read_slid)(struct ibv_cq_ex *);
  uint8_t (*read_sl)(struct ibv_cq_ex *);
  uint8_t (*read_dlid_path_bits)(struct ibv_cq_ex *);
  void *unsupported[5];
};

struct ibv_cq_init_attr_ex {
  uint32_t cqe;
  void *cq_context;
  struct ibv_comp_channel *channel;
  uint32_t comp_vector;
  uint64_t wc_flags;
  uint32_t comp_mask, flags;
  struct ibv_pd *parent_domain;
};

struct ibv_srq {
  struct ibv_context *context;
  void *srq_context;
  struct ibv_pd *pd;
  uint32_t handle;
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  uint32_t events_completed;
};

struct ibv_srq_attr {
  uint32_t max_wr, max_sge, srq_limit;
};

struct ibv_srq_init_attr {
  void *srq_context;
  struct ibv_srq_attr attr;
};

struct ibv_srq_init_attr_ex {
  void *srq_context;
  struct ibv_srq_attr attr;
  uint32_t comp_mask;
  int srq_type;
  struct ibv_pd *pd;
};

struct ibv_qp {
  struct ibv_context *context;
  void *qp_context;
  struct ibv_pd *pd;
  struct ibv_cq *send_cq, *recv_cq;
  struct ibv_srq *srq;
  uint32_t handle, qp_num;
  int state, qp_type;
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  uint32_t events_completed;
};

struct ibv_sge {
  uint64_t addr;
  uint32_t length, lkey;
};

struct ibv_data_buf {
  void *addr;
  size_t length;
};

struct ibv_qp_ex {
  struct ibv_qp qp_base;
  uint64_t comp_mask, wr_id;
  unsigned wr_flags;
  void (*wr_atomic_cmp_swp)(struct ibv_qp_ex *, uint32_t, uint64_t, uint64_t, uint64_t);
  void (*wr_atomic_fetch_add)(struct ibv_qp_ex *, uint32_t, uint64_t, uint64_t);
  void (*wr_bind_mw)(struct ibv_qp_ex *, struct ibv_mw *, uint32_t, const struct ibv_mw_bind_info *);
  void (*wr_local_inv)(struct ibv_qp_ex *, uint32_t);
  void (*wr_rdma_read)(struct ibv_qp_ex *, uint32_t, uint64_t);
  void (*wr_rdma_write)(struct ibv_qp_ex *, uint32_t, uint64_t);
  void (*wr_rdma_write_imm)(struct ibv_qp_ex *, uint32_t, uint64_t, uint32_t);
  void (*wr_send)(struct ibv_qp_ex *);
  void (*wr_send_imm)(struct ibv_qp_ex *, uint32_t);
  void (*wr_send_inv)(struct ibv_qp_ex *, uint32_t);
  void *wr_send_tso;
  void (*wr_set_ud_addr)(struct ibv_qp_ex *, struct ibv_ah *, uint32_t, uint32_t);
  void *wr_set_xrc_srqn;
  void (*wr_set_inline_data)(struct ibv_qp_ex *, void *, size_t);
  void (*wr_set_inline_data_list)(struct ibv_qp_ex *, size_t, const struct ibv_data_buf *);
  void (*wr_set_sge)(struct ibv_qp_ex *, uint32_t, uint64_t, uint32_t);
  void (*wr_set_sge_list)(struct ibv_qp_ex *, size_t, const struct ibv_sge *);
  void (*wr_start)(struct ibv_qp_ex *);
  int (*wr_complete)(struct ibv_qp_ex *);
  void (*wr_abort)(struct ibv_qp_ex *);
  void (*wr_atomic_write)(struct ibv_qp_ex *, uint32_t, uint64_t, const void *);
  void (*wr_flush)(struct ibv_qp_ex *, uint32_t, uint64_t, size_t, uint8_t, uint8_t);
};

struct ibv_qp_cap {
  uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
};

struct ibv_qp_init_attr {
  void *qp_context;
  struct ibv_cq *send_cq, *recv_cq;
  struct ibv_srq *srq;
  struct ibv_qp_cap cap;
  int qp_type, sq_sig_all;
};

// As far as every creator of a queue pair here needs it. It begins as ibv_qp_init_attr does.
struct ibv_qp_init_attr_ex {
  void *qp_context;
  struct ibv_cq *send_cq, *recv_cq;
  struct ibv_srq *srq;
  struct ibv_qp_cap cap;
  int qp_type, sq_sig_all;
  uint32_t comp_mask;
  struct ibv_pd *pd;
  void *xrcd;
  uint32_t create_flags;
  uint16_t max_tso_header;
  void *rwq_ind_tbl;
  uint64_t rx_hash_conf[3];
  uint32_t source_qpn;
  uint64_t send_ops_flags;
};

struct ibv_global_route {
  union ibv_gid dgid;
  uint32_t flow_label;
  uint8_t sgid_index, hop_limit, traffic_class;
};

struct ibv_ah_attr {
  struct ibv_global_route grh;
  uint16_t dlid;
  uint8_t sl, src_path_bits, static_rate, is_global, port_num;
};

struct ibv_ah {
  struct ibv_context *context;
  struct ibv_pd *pd;
  uint32_t handle;
};

struct ibv_qp_attr {
  int qp_state, cur_qp_state, path_mtu, path_mig_state;
  uint32_t qkey, rq_psn, sq_psn, dest_qp_num;
  unsigned qp_access_flags;
  struct ibv_qp_cap cap;
  struct ibv_ah_attr ah_attr, alt_ah_attr;
  uint16_t pkey_index, alt_pkey_index;
  uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout;
  uint8_t retry_cnt, rnr_retry, alt_port_num, alt_timeout;
  uint32_t rate_limit;
};

struct ibv_send_wr {
  uint64_t wr_id;
  struct ibv_send_wr *next;
  struct ibv_sge *sg_list;
  int num_sge, opcode;
  unsigned send_flags;
  uint32_t imm_data; // or the key to invalidate
  union {
    struct {
      uint64_t remote_addr;
      uint32_t rkey;
    } rdma;
    struct {
      uint64_t remote_addr, compare_add, swap;
      uint32_t rkey;
    } atomic;
    struct {
      struct ibv_ah *ah;
      uint32_t remote_qpn, remote_qkey;
    } ud;
  } wr;
  uint64_t xrc;
  struct {
    struct ibv_mw *mw;
    uint32_t rkey;
    struct ibv_mw_bind_info bind_info;
  } bind_mw;
};

struct ibv_recv_wr {
  uint64_t wr_id;
  struct ibv_recv_wr *next;
  struct ibv_sge *sg_list;
  int num_sge;
};

struct ibv_wc {
  uint64_t wr_id;
  int status, opcode;
  uint32_t vendor_err, byte_len;
  uint32_t imm_data; // or the key that was invalidated
  uint32_t qp_num, src_qp;
  unsigned wc_flags;
  uint16_t pkey_index, slid;
  uint8_t sl, dlid_path_bits;
};

struct ibv_async_event {
  union {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_srq *srq;
    int port_num;
  } element;
  int event_type;
};

struct ibv_grh {
  uint32_t version_tclass_flow;
  uint16_t paylen;
  uint8_t next_hdr, hop_limit;
  union ibv_gid sgid, dgid;
};

#endif
