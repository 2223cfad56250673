/*
 * rocev2-agent: lends queue pairs of an RDMA NIC to the tester `rocev2 conform run HOST --via agent`.
 *
 *     cc -o rocev2-agent agent.c -libverbs
 *     ./rocev2-agent [-d DEVICE] [-g GIDINDEX] [-p PORT]      default: the first device, the GID of the tester's family, 18527
 *
 * It serves one tester at a time over TCP. Each side sends lines: a verb and NAME=VALUE pairs, numbers in decimal or with 0x. The answer to
 * each line is a line that begins with `ok` or `error`.
 *
 *     connect type=rc|ud gid=HEX qpn= psn= peer_psn= mtu= timeout= retry= rnr_retry= depth= initiator= closed=
 *             psn: the first PSN of the tester; peer_psn: that of the agent; depth, initiator: READs that this side answers and issues; closed=1: the queue pair allows no READ, WRITE or atomic
 *       -> ok qpn= depth= rnr_timer= receives= receive_bytes= open= open_key= open_bytes= read_only= read_only_key= foreign= foreign_key= flush=
 *             flush=1: the open memory may be flushed, and takes ATOMIC WRITEs
 *     post operation=SEND|RDMA_WRITE|RDMA_READ|FETCH_ADD bytes= count= address= key=       -> ok
 *     completions                       -> ok STATUS:OPCODE:BYTES:IMMEDIATE ...            those since the last time
 *     memory offset= bytes=             -> ok hex=
 *     disconnect                        -> ok
 *
 * The tester may write to the memory that is named here, which holds nothing else.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OPEN_BYTES = 65536, OTHER_BYTES = 4096, RECEIVES = 4, RECEIVE_PACKETS = 2, MTU_MAX = 4096 };
enum { RNR_TIMER = 6, ORDERS_MAX = 16, LINE_BYTES = 8192, MEMORY_BYTES_MAX = 2048, GRH_BYTES = 40 };

/* IBTA 1.5, as in rdma-core 45 and later. */
enum { ACCESS_FLUSH_GLOBAL = 1 << 8 };
#define CAP_FLUSH_GLOBAL (1ULL << 38)
#define CAP_ATOMIC_WRITE (1ULL << 40)

static const char *device_name, *port_name = "18527";
static int gid_index = -1;
static int open_rights = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

static struct ibv_context *context;
static struct ibv_pd *pd, *foreign_pd;
static struct ibv_cq *send_cq, *receive_cq;
static struct ibv_mr *open_mr, *read_only_mr, *foreign_mr, *receive_mr;
static struct ibv_qp *qp;

static void fail(const char *what)
{
	fprintf(stderr, "rocev2-agent: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* --- the device ------------------------------------------------------------------------------ */

static void open_device(void)
{
	int count;
	struct ibv_device **devices = ibv_get_device_list(&count);

	for (int i = 0; i < count && !context; i++)
		if (!device_name || !strcmp(ibv_get_device_name(devices[i]), device_name))
			context = ibv_open_device(devices[i]);
	if (!context)
		fail(device_name ? device_name : "no RDMA device");
}

static struct ibv_mr *register_memory(struct ibv_pd *domain, size_t bytes, int rights)
{
	void *memory;

	if (posix_memalign(&memory, 4096, bytes))
		fail("memory");
	memset(memory, 0, bytes);
	struct ibv_mr *mr = ibv_reg_mr(domain, memory, bytes, IBV_ACCESS_LOCAL_WRITE | rights);

	if (!mr)
		fail("ibv_reg_mr");
	return mr;
}

static void prepare_device(void)
{
	int all = open_rights;
	uint64_t placement = CAP_FLUSH_GLOBAL | CAP_ATOMIC_WRITE;
	struct ibv_device_attr_ex attr;

	if (!ibv_query_device_ex(context, NULL, &attr) && (attr.device_cap_flags_ex & placement) == placement)
		open_rights |= ACCESS_FLUSH_GLOBAL;
	pd = ibv_alloc_pd(context);
	foreign_pd = ibv_alloc_pd(context);
	if (!pd || !foreign_pd)
		fail("ibv_alloc_pd");
	open_mr = register_memory(pd, OPEN_BYTES, open_rights);
	read_only_mr = register_memory(pd, OTHER_BYTES, IBV_ACCESS_REMOTE_READ);
	foreign_mr = register_memory(foreign_pd, OTHER_BYTES, all);
	receive_mr = register_memory(pd, RECEIVES * (GRH_BYTES + RECEIVE_PACKETS * MTU_MAX), 0);
}

/* The first RoCE v2 entry of the tester's address family. */
static int own_gid_index(const union ibv_gid *peer)
{
	static const uint8_t V4_MAPPED[12] = { [10] = 0xff, [11] = 0xff };
	bool peer_is_v4 = !memcmp(peer->raw, V4_MAPPED, sizeof V4_MAPPED);

	if (gid_index >= 0)
		return gid_index;
	for (int i = 0; i < 256; i++) {
		struct ibv_gid_entry entry;

		if (ibv_query_gid_ex(context, 1, i, &entry, 0) || entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		bool is_v4 = !memcmp(entry.gid.raw, V4_MAPPED, sizeof V4_MAPPED);

		if (is_v4 == peer_is_v4 && (entry.gid.raw[0] == 0xfe) == (peer->raw[0] == 0xfe))
			return i;
	}
	return -1;
}

/* --- lines ----------------------------------------------------------------------------------- */

static const char *text_of(const char *line, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = line; (at = strstr(at, name)); at += length)
		if (at > line && at[-1] == ' ' && at[length] == '=')
			return at + length + 1;
	return NULL;
}

static uint64_t number_of(const char *line, const char *name)
{
	const char *text = text_of(line, name);

	return text ? strtoull(text, NULL, 0) : 0;
}

static bool is_text(const char *line, const char *name, const char *value)
{
	const char *text = text_of(line, name);

	return text && !strncmp(text, value, strlen(value)) && strchr(" \n", text[strlen(value)]);
}

/* --- queue pairs ----------------------------------------------------------------------------- */

static void close_queue_pair(void)
{
	if (qp)
		ibv_destroy_qp(qp);
	if (send_cq)
		ibv_destroy_cq(send_cq);
	if (receive_cq)
		ibv_destroy_cq(receive_cq);
	qp = NULL;
	send_cq = receive_cq = NULL;
}

static enum ibv_mtu mtu_code(uint64_t bytes)
{
	enum ibv_mtu code = IBV_MTU_256;

	while (bytes > 256) {
		bytes >>= 1;
		code++;
	}
	return code;
}

static bool post_receives(size_t bytes)
{
	for (int i = 0; i < RECEIVES; i++) {
		struct ibv_sge sge = {
			.addr = (uintptr_t)receive_mr->addr + i * (GRH_BYTES + RECEIVE_PACKETS * MTU_MAX),
			.length = bytes, .lkey = receive_mr->lkey,
		};
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		if (ibv_post_recv(qp, &wr, &bad))
			return false;
	}
	return true;
}

/* The step that failed, or NULL. */
static const char *make_queue_pair(const char *line, size_t receive_bytes)
{
	struct ibv_qp_init_attr init = {
		.qp_type = is_text(line, "type", "ud") ? IBV_QPT_UD : IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = ORDERS_MAX, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	bool is_ud = init.qp_type == IBV_QPT_UD;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = number_of(line, "qkey") };
	const char *gid = text_of(line, "gid");
	union ibv_gid peer;

	send_cq = ibv_create_cq(context, 2 * ORDERS_MAX, NULL, NULL, 0);
	receive_cq = ibv_create_cq(context, 2 * RECEIVES, NULL, NULL, 0);
	if (!send_cq || !receive_cq)
		return "ibv_create_cq";
	init.send_cq = send_cq;
	init.recv_cq = receive_cq;
	if (!(qp = ibv_create_qp(pd, &init)))
		return "ibv_create_qp";
	for (int i = 0; i < 16; i++)
		if (!gid || sscanf(gid + 2 * i, "%2hhx", &peer.raw[i]) != 1)
			return "gid";
	if (!number_of(line, "closed"))
		attr.qp_access_flags = open_rights;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)))
		return "to INIT";
	if (!post_receives(receive_bytes))
		return "ibv_post_recv";
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = mtu_code(number_of(line, "mtu")), .dest_qp_num = number_of(line, "qpn"),
		.rq_psn = number_of(line, "psn"), .max_dest_rd_atomic = number_of(line, "depth"), .min_rnr_timer = RNR_TIMER,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = peer, .hop_limit = 64 } },
	};
	int index = own_gid_index(&peer);

	if (index < 0)
		return "no GID of that address family";
	attr.ah_attr.grh.sgid_index = index;
	if (ibv_modify_qp(qp, &attr, is_ud ? IBV_QP_STATE : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
	                  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return "to RTR";
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .sq_psn = number_of(line, "peer_psn"), .timeout = number_of(line, "timeout"),
		.retry_cnt = number_of(line, "retry"), .rnr_retry = number_of(line, "rnr_retry"),
		.max_rd_atomic = number_of(line, "initiator"),
	};
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | (is_ud ? 0 : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
	                  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)))
		return "to RTS";
	return NULL;
}

static void do_connect(const char *line, FILE *peer)
{
	size_t receive_bytes = RECEIVE_PACKETS * number_of(line, "mtu");

	close_queue_pair();
	const char *failed = make_queue_pair(line, receive_bytes);

	if (failed) {
		fprintf(peer, "error %s: %s\n", failed, strerror(errno));
		close_queue_pair();
		return;
	}
	fprintf(peer, "ok qpn=%#x depth=%d rnr_timer=%d receives=%d receive_bytes=%zu", qp->qp_num,
	        (int)number_of(line, "depth"), RNR_TIMER, RECEIVES, receive_bytes);
	fprintf(peer, " open=%#llx open_key=%#x open_bytes=%d", (unsigned long long)(uintptr_t)open_mr->addr, open_mr->rkey, OPEN_BYTES);
	fprintf(peer, " read_only=%#llx read_only_key=%#x", (unsigned long long)(uintptr_t)read_only_mr->addr, read_only_mr->rkey);
	fprintf(peer, " foreign=%#llx foreign_key=%#x flush=%d\n", (unsigned long long)(uintptr_t)foreign_mr->addr, foreign_mr->rkey,
	        !!(open_rights & ACCESS_FLUSH_GLOBAL));
}

static void do_post(const char *line, FILE *peer)
{
	struct ibv_sge sge = { .addr = (uintptr_t)open_mr->addr, .length = number_of(line, "bytes"), .lkey = open_mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	uint64_t count = number_of(line, "count"), address = number_of(line, "address");
	uint32_t key = number_of(line, "key");

	if (is_text(line, "operation", "FETCH_ADD")) {
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = address;
		wr.wr.atomic.rkey = key;
		wr.wr.atomic.compare_add = 1;
		sge.length = sizeof(uint64_t);
	} else {
		if (is_text(line, "operation", "RDMA_WRITE"))
			wr.opcode = IBV_WR_RDMA_WRITE;
		if (is_text(line, "operation", "RDMA_READ"))
			wr.opcode = IBV_WR_RDMA_READ;
		wr.wr.rdma.remote_addr = address;
		wr.wr.rdma.rkey = key;
	}
	for (uint64_t i = 0; i < count; i++) {
		wr.wr_id = i;
		if (!qp || ibv_post_send(qp, &wr, &bad)) {
			fprintf(peer, "error ibv_post_send: %s\n", strerror(errno));
			return;
		}
	}
	fputs("ok\n", peer);
}

static void print_completions(struct ibv_cq *cq, FILE *peer)
{
	struct ibv_wc wc;

	while (cq && ibv_poll_cq(cq, 1, &wc) > 0)
		fprintf(peer, " %d:%d:%u:%u", wc.status, wc.opcode, wc.status ? 0 : wc.byte_len,
		        !wc.status && wc.wc_flags & IBV_WC_WITH_IMM ? ntohl(wc.imm_data) : 0);
}

static void do_memory(const char *line, FILE *peer)
{
	uint64_t offset = number_of(line, "offset"), bytes = number_of(line, "bytes");

	if (bytes > MEMORY_BYTES_MAX || offset > OPEN_BYTES - bytes) {
		fputs("error outside of the memory\n", peer);
		return;
	}
	fputs("ok hex=", peer);
	for (uint64_t i = 0; i < bytes; i++)
		fprintf(peer, "%02x", ((unsigned char *)open_mr->addr)[offset + i]);
	fputc('\n', peer);
}

static bool begins_with(const char *line, const char *verb)
{
	size_t length = strlen(verb);

	return !strncmp(line, verb, length) && strchr(" \r\n", line[length]);
}

static void serve(FILE *from, FILE *peer)
{
	char line[LINE_BYTES];

	while (fgets(line, sizeof line, from)) {
		if (begins_with(line, "connect"))
			do_connect(line, peer);
		else if (begins_with(line, "post"))
			do_post(line, peer);
		else if (begins_with(line, "memory"))
			do_memory(line, peer);
		else if (begins_with(line, "completions")) {
			fputs("ok", peer);
			print_completions(send_cq, peer);
			print_completions(receive_cq, peer);
			fputc('\n', peer);
		} else if (begins_with(line, "disconnect")) {
			close_queue_pair();
			fputs("ok\n", peer);
		} else
			fputs("error unknown verb\n", peer);
		fflush(peer);
	}
	close_queue_pair();
}

static int listen_on(const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_family = AF_INET6, .ai_flags = AI_PASSIVE }, *address;
	int one = 1;

	if (getaddrinfo(NULL, port, &hints, &address))	/* [::] takes IPv4, too */
		fail("no such port");
	int listener = socket(address->ai_family, address->ai_socktype, 0);

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(listener, address->ai_addr, address->ai_addrlen) || listen(listener, 1))
		fail("listen");
	return listener;
}

int main(int argc, char **argv)
{
	int letter;

	while ((letter = getopt(argc, argv, "d:g:p:")) != -1) {
		switch (letter) {
		case 'd': device_name = optarg; break;
		case 'g': gid_index = atoi(optarg); break;
		case 'p': port_name = optarg; break;
		default:
			fputs("usage: rocev2-agent [-d DEVICE] [-g GIDINDEX] [-p PORT]\n", stderr);
			return 2;
		}
	}
	signal(SIGPIPE, SIG_IGN);
	open_device();
	prepare_device();
	int listener = listen_on(port_name);

	fprintf(stderr, "rocev2-agent: %s waits for a tester on TCP port %s\n", ibv_get_device_name(context->device), port_name);
	for (;;) {
		int s = accept(listener, NULL, NULL);

		if (s < 0)
			continue;
		/* Two streams: one for both directions needs a seek between them, which sockets do not have. */
		FILE *from = fdopen(dup(s), "r"), *to = fdopen(s, "w");

		if (!from || !to)
			fail("fdopen");
		serve(from, to);
		fclose(from);
		fclose(to);
	}
}
