/*
 * What this machine takes to carry packets of 4 KiB from one process to another when nothing but the calls and copies is left: no queue pairs, no headers, no
 * acknowledgements. `limits.js` compiles and runs it:
 *
 *   floor WAY CORES SECONDS
 *
 *   WAY    tcp          4 MiB a write, as long reads as the kernel gives, into memory of 4 MiB
 *          udp          trains of 15 packets, four in a system call (sendmmsg, UDP_SEGMENT; recvmmsg, UDP_GRO), then a copy into memory of 4 MiB
 *          udp-crc      the same with a CRC-32 of each packet at both ends
 *          scatter      as udp, but the kernel places the data of each packet in the memory (iovecs), without the receiver's copy
 *          scatter-crc  the same with a CRC-32 of each packet at both ends
 *          ring         a ring of 512 slots in shared memory, written by memcpy, with a CRC-32 at both ends, then a copy into memory of 4 MiB
 *          ring-stream  the same, written by stores past the cache
 *   CORES  one: both ends on processor 0; two: one on each of 0 and 1
 *
 * Prints one line: MB/s, and ns a packet at the sender and at the receiver. Of sockets that is processor time of the process, of rings the time of batches alone,
 * since both ends of a ring look without sleeping.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#ifndef SOL_UDP
#define SOL_UDP 17
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum {
  DATA = 4096,
  HEADER = 12,
  TRAILER = 4,
  PACKET = HEADER + DATA + TRAILER,
  REGION = 4 << 20,
  TRAIN = 15,
  TRAINS = 4,
  BATCH = TRAIN * TRAINS,
  WINDOW = 384, /* Packets on their way. */
  SLOTS = 512,
  SLOT = 4608,
  BUFFER = 65536,
  SOCKET_BUFFER = 8 << 20,
};

/* One answer of the receiver: how many packets it has, and what they cost. Also written at the end. */
struct report {
  long packets;
  double busyNs;
};

typedef uint32_t (*checksum)(uint32_t, const void *, size_t);

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static double clockNs(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}
static double nowNs(void) { return clockNs(CLOCK_MONOTONIC); }
static double cpuNs(void) { return clockNs(CLOCK_PROCESS_CPUTIME_ID); }

static void runOn(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail("sched_setaffinity");
}

/* ISA-L, else libdeflate: the fastest that the library itself takes, too. */
static checksum findChecksum(void) {
  static const char *const names[][2] = {
      {"libisal.so.2", "crc32_gzip_refl"}, {"libdeflate.so.0", "libdeflate_crc32"}};
  for (int i = 0; i < 2; i++) {
    void *library = dlopen(names[i][0], RTLD_NOW);
    void *found = library == NULL ? NULL : dlsym(library, names[i][1]);
    if (found != NULL) return (checksum)found;
  }
  fprintf(stderr, "neither libisal.so.2 nor libdeflate.so.0 is here\n");
  exit(2);
}

static char *region(void) {
  char *memory = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  memset(memory, 7, REGION);
  return memory;
}

static volatile uint32_t sink; /* Nobody needs the sums, and the compiler must not know. */

/* ---- TCP */

static void receiveStream(int fd, int reports) {
  char *memory = region();
  struct report report = {0, 0};
  double startNs = cpuNs();
  long bytes = 0, at = 0;
  for (long got; (got = recv(fd, memory + at, REGION - at, 0)) > 0;) {
    bytes += got;
    at = (at + got) % REGION;
  }
  report.packets = bytes / DATA;
  report.busyNs = cpuNs() - startNs;
  if (write(reports, &report, sizeof report) != sizeof report) fail("write");
}

static long sendStream(int fd, double untilNs) {
  char *memory = region();
  long bytes = 0;
  while (nowNs() < untilNs)
    for (long at = 0; at < REGION;) {
      long sent = send(fd, memory + at, REGION - at, 0);
      if (sent < 0) fail("send");
      at += sent;
      bytes += sent;
    }
  return bytes / DATA;
}

/* ---- UDP */

static void receiveTrains(int fd, int reports, checksum sum) {
  char *memory = region();
  char *buffers = malloc(TRAINS * BUFFER);
  struct report report = {0, 0};
  double startNs = cpuNs();
  long at = 0;
  for (;;) {
    struct mmsghdr messages[TRAINS] = {0};
    struct iovec vectors[TRAINS];
    for (int i = 0; i < TRAINS; i++) {
      vectors[i] = (struct iovec){buffers + i * BUFFER, BUFFER};
      messages[i].msg_hdr.msg_iov = &vectors[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    int count = recvmmsg(fd, messages, TRAINS, MSG_WAITFORONE, NULL);
    if (count < 0) break; /* The time without a packet is over. */
    for (int i = 0; i < count; i++)
      for (unsigned o = 0; o + PACKET <= messages[i].msg_len; o += PACKET) {
        char *packet = buffers + i * BUFFER + o;
        if (sum != NULL) sink += sum(0, packet, HEADER + DATA);
        memcpy(memory + at, packet + HEADER, DATA);
        at = (at + DATA) % REGION;
        report.packets++;
      }
    report.busyNs = cpuNs() - startNs;
    if (write(reports, &report, sizeof report) != sizeof report) fail("write");
  }
}

/* The data of each packet goes to its place in the memory; a trailer and the next header share a piece. */
static void receiveScattered(int fd, int reports, checksum sum) {
  char *memory = region();
  struct {
    char trailer[TRAILER], header[HEADER];
  } between[TRAINS][TRAIN + 1];
  struct report report = {0, 0};
  double startNs = cpuNs();
  long at = 0;
  for (;;) {
    struct mmsghdr messages[TRAINS] = {0};
    struct iovec vectors[TRAINS][2 * TRAIN + 1];
    for (int i = 0; i < TRAINS; i++) {
      vectors[i][0] = (struct iovec){between[i][0].header, HEADER};
      for (int k = 0; k < TRAIN; k++) {
        vectors[i][2 * k + 1] = (struct iovec){memory + (at + (i * TRAIN + k) * DATA) % REGION, DATA};
        vectors[i][2 * k + 2] = (struct iovec){&between[i][k + 1], TRAILER + (k + 1 < TRAIN ? HEADER : 0)};
      }
      messages[i].msg_hdr.msg_iov = vectors[i];
      messages[i].msg_hdr.msg_iovlen = 2 * TRAIN + 1;
    }
    int count = recvmmsg(fd, messages, TRAINS, MSG_WAITFORONE, NULL);
    if (count < 0) break;
    for (int i = 0; i < count; i++) {
      if (messages[i].msg_len != TRAIN * PACKET) {
        fprintf(stderr, "a train was cut, so its data are in the wrong place\n");
        exit(1);
      }
      for (int k = 0; k < TRAIN; k++) {
        if (sum != NULL) sink += sum(sum(0, between[i][k].header, HEADER), memory + at, DATA);
        at = (at + DATA) % REGION;
      }
      report.packets += TRAIN;
    }
    report.busyNs = cpuNs() - startNs;
    if (write(reports, &report, sizeof report) != sizeof report) fail("write");
  }
}

static long sendTrains(int fd, int reports, checksum sum, double untilNs) {
  char *memory = region();
  char(*slots)[HEADER + TRAILER] = calloc(BATCH, sizeof *slots);
  struct report report = {0, 0};
  long sent = 0, at = 0;
  while (nowNs() < untilNs) {
    while (sent + BATCH - report.packets > WINDOW)
      if (read(reports, &report, sizeof report) != sizeof report) fail("read");
    struct mmsghdr messages[TRAINS] = {0};
    struct iovec vectors[BATCH * 3];
    for (int i = 0; i < BATCH; i++) {
      if (sum != NULL) {
        uint32_t crc = sum(sum(0, slots[i], HEADER), memory + at, DATA);
        memcpy(slots[i] + HEADER, &crc, sizeof crc);
      }
      vectors[3 * i] = (struct iovec){slots[i], HEADER};
      vectors[3 * i + 1] = (struct iovec){memory + at, DATA};
      vectors[3 * i + 2] = (struct iovec){slots[i] + HEADER, TRAILER};
      at = (at + DATA) % REGION;
    }
    for (int i = 0; i < TRAINS; i++) {
      messages[i].msg_hdr.msg_iov = vectors + 3 * TRAIN * i;
      messages[i].msg_hdr.msg_iovlen = 3 * TRAIN;
    }
    for (int done = 0; done < TRAINS;) {
      int count = sendmmsg(fd, messages + done, TRAINS - done, 0);
      if (count < 0 && errno != EAGAIN) fail("sendmmsg");
      if (count > 0) done += count;
    }
    sent += BATCH;
  }
  return sent;
}

/* ---- a ring in shared memory */

struct ring {
  _Atomic long head; /* Packets written, */
  _Alignas(256) _Atomic long tail; /* and read. Each in lines of its own. */
  _Atomic int isOver;
  _Alignas(64) char slots[SLOTS][SLOT];
};

static void streamCopy(char *to, const char *from) {
#ifdef __SSE2__
  for (int i = 0; i < DATA; i += 16)
    _mm_stream_si128((__m128i *)(to + i), _mm_loadu_si128((const __m128i *)(from + i)));
#else
  memcpy(to, from, DATA);
#endif
}

static void drain(void) {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

static void receiveRing(struct ring *ring, int reports, checksum sum) {
  char *memory = region();
  struct report report = {0, 0};
  long at = 0;
  while (!atomic_load(&ring->isOver)) {
    if (atomic_load(&ring->head) - report.packets < BATCH) continue;
    double startNs = nowNs();
    for (int i = 0; i < BATCH; i++, report.packets++) {
      char *slot = ring->slots[report.packets % SLOTS];
      sink += sum(0, slot + 64 - HEADER, HEADER + DATA);
      memcpy(memory + at, slot + 64, DATA);
      at = (at + DATA) % REGION;
    }
    report.busyNs += nowNs() - startNs;
    atomic_store(&ring->tail, report.packets);
  }
  if (write(reports, &report, sizeof report) != sizeof report) fail("write");
}

static struct report sendRing(struct ring *ring, checksum sum, int streams, double untilNs) {
  char *memory = region();
  struct report report = {0, 0};
  long at = 0;
  while (nowNs() < untilNs) {
    while (report.packets + BATCH - atomic_load(&ring->tail) > WINDOW)
      ;
    double startNs = nowNs();
    for (int i = 0; i < BATCH; i++, report.packets++) {
      char *slot = ring->slots[report.packets % SLOTS];
      memset(slot + 64 - HEADER, i, HEADER);
      uint32_t crc = sum(sum(0, slot + 64 - HEADER, HEADER), memory + at, DATA);
      if (streams) streamCopy(slot + 64, memory + at);
      else memcpy(slot + 64, memory + at, DATA);
      memcpy(slot + 64 + DATA, &crc, sizeof crc);
      at = (at + DATA) % REGION;
    }
    drain();
    report.busyNs += nowNs() - startNs;
    atomic_store(&ring->head, report.packets);
  }
  atomic_store(&ring->isOver, 1);
  return report;
}

/* ---- both ends */

static void setOption(int fd, int level, int name, int value) {
  if (setsockopt(fd, level, name, &value, sizeof value) != 0) fail("setsockopt");
}

int main(int count, char **arguments) {
  if (count != 4) {
    fprintf(stderr, "floor tcp|udp|udp-crc|scatter|scatter-crc|ring|ring-stream one|two SECONDS\n");
    return 2;
  }
  const char *way = arguments[1];
  int receiverOn = strcmp(arguments[2], "two") == 0;
  double seconds = atof(arguments[3]);
  int isTcp = strcmp(way, "tcp") == 0, scatters = strncmp(way, "scatter", 7) == 0;
  int isUdp = scatters || strncmp(way, "udp", 3) == 0;
  checksum sum = isTcp || strcmp(way, "udp") == 0 || strcmp(way, "scatter") == 0 ? NULL : findChecksum();

  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int listening = socket(AF_INET, isUdp ? SOCK_DGRAM : SOCK_STREAM, 0);
  if (bind(listening, (struct sockaddr *)&address, length) != 0) fail("bind");
  getsockname(listening, (struct sockaddr *)&address, &length);
  if (isUdp) {
    struct timeval patience = {0, 300000};
    /* Beyond net.core.rmem_max as root only. */
    if (setsockopt(listening, SOL_SOCKET, SO_RCVBUFFORCE, &(int){SOCKET_BUFFER}, sizeof(int)) != 0)
      setOption(listening, SOL_SOCKET, SO_RCVBUF, SOCKET_BUFFER);
    setOption(listening, SOL_UDP, UDP_GRO, 1);
    setsockopt(listening, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  } else if (listen(listening, 1) != 0) fail("listen");
  struct ring *ring = mmap(NULL, sizeof *ring, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (ring == MAP_FAILED) fail("mmap");
  int reports[2];
  if (pipe(reports) != 0) fail("pipe");

  pid_t receiver = fork();
  if (receiver == 0) {
    runOn(receiverOn);
    if (isTcp) receiveStream(accept(listening, NULL, NULL), reports[1]);
    else if (isUdp) (scatters ? receiveScattered : receiveTrains)(listening, reports[1], sum);
    else receiveRing(ring, reports[1], sum);
    _exit(0);
  }
  close(reports[1]);
  runOn(0);
  int fd = socket(AF_INET, isUdp ? SOCK_DGRAM : SOCK_STREAM, 0);
  if ((isTcp || isUdp) && connect(fd, (struct sockaddr *)&address, length) != 0) fail("connect");
  if (isUdp) setOption(fd, SOL_UDP, UDP_SEGMENT, PACKET);

  double startNs = nowNs(), startCpuNs = cpuNs(), untilNs = startNs + seconds * 1e9;
  struct report sent = {0, 0}, received = {0, 0};
  if (isTcp) sent.packets = sendStream(fd, untilNs);
  else if (isUdp) sent.packets = sendTrains(fd, reports[0], sum, untilNs);
  else sent = sendRing(ring, sum, strcmp(way, "ring-stream") == 0, untilNs);
  if (isTcp || isUdp) sent.busyNs = cpuNs() - startCpuNs;
  double tookNs = nowNs() - startNs;
  close(fd);
  while (read(reports[0], &received, sizeof received) == sizeof received)
    ;
  waitpid(receiver, NULL, 0);
  printf("{\"way\":\"%s\",\"cores\":\"%s\",\"megabytesPerSecond\":%.0f,\"senderNs\":%.0f,\"receiverNs\":%.0f}\n", way, arguments[2],
         sent.packets * (double)DATA / tookNs * 1e3, sent.busyNs / sent.packets, received.busyNs / received.packets);
  return 0;
}
