/*
 * Random writes to a block device or file, past the page cache, and then reads that verify every block.
 *
 * usage: rigio PATH OFFSET_BYTES LENGTH_BYTES BLOCK_BYTES THREADS ROUNDS SEED
 *
 * The range is divided among the threads. A round writes the blocks of a thread in random order, each with contents that name seed, round and
 * block; every 16th write is followed by fdatasync. After each round the thread reads all of its blocks in another order and compares.
 * The last line is "verified N blocks"; a block that differs ends the program with exit code 4, an I/O error with 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *path;
static uint64_t first_byte, blocks_of_thread, block_bytes;
static unsigned rounds;
static uint64_t seed;

static uint64_t next_random(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

static void shuffle(uint64_t *order, uint64_t count, uint64_t *state) {
  for (uint64_t i = 0; i < count; i++) order[i] = i;
  for (uint64_t i = count - 1; i > 0; i--) {
    uint64_t j = next_random(state) % (i + 1), swapped = order[i];
    order[i] = order[j];
    order[j] = swapped;
  }
}

static void fill(uint64_t *words, uint64_t block, unsigned round) {
  uint64_t state = seed ^ (block << 20) ^ round;
  for (uint64_t i = 0; i < block_bytes / 8; i++) words[i] = next_random(&state);
}

static void fail(const char *what, uint64_t block) {
  fprintf(stderr, "rigio: %s, block %llu: %s\n", what, (unsigned long long)block, strerror(errno));
  exit(1);
}

static void *work(void *argument) {
  uint64_t thread = (uint64_t)(uintptr_t)argument, state = seed + thread;
  uint64_t *order = malloc(blocks_of_thread * sizeof *order), *expected = malloc(block_bytes), *buffer;
  int file = open(path, O_RDWR | O_DIRECT);
  if (file < 0 || posix_memalign((void **)&buffer, 4096, block_bytes)) fail("open", 0);
  for (unsigned round = 0; round < rounds; round++) {
    shuffle(order, blocks_of_thread, &state);
    for (uint64_t i = 0; i < blocks_of_thread; i++) {
      uint64_t block = thread * blocks_of_thread + order[i];
      fill(buffer, block, round);
      if (pwrite(file, buffer, block_bytes, first_byte + block * block_bytes) != (ssize_t)block_bytes) fail("write", block);
      if (i % 16 == 15 && fdatasync(file)) fail("fdatasync", block);
    }
    shuffle(order, blocks_of_thread, &state);
    for (uint64_t i = 0; i < blocks_of_thread; i++) {
      uint64_t block = thread * blocks_of_thread + order[i];
      fill(expected, block, round);
      if (pread(file, buffer, block_bytes, first_byte + block * block_bytes) != (ssize_t)block_bytes) fail("read", block);
      if (memcmp(buffer, expected, block_bytes)) {
        fprintf(stderr, "rigio: block %llu differs in round %u\n", (unsigned long long)block, round);
        exit(4);
      }
    }
  }
  close(file);
  return NULL;
}

int main(int count, char **words) {
  if (count != 8) {
    fprintf(stderr, "usage: rigio PATH OFFSET_BYTES LENGTH_BYTES BLOCK_BYTES THREADS ROUNDS SEED\n");
    return 2;
  }
  path = words[1];
  first_byte = strtoull(words[2], NULL, 0);
  block_bytes = strtoull(words[4], NULL, 0);
  unsigned threads = strtoul(words[5], NULL, 0);
  rounds = strtoul(words[6], NULL, 0);
  seed = strtoull(words[7], NULL, 0);
  blocks_of_thread = strtoull(words[3], NULL, 0) / block_bytes / threads;
  if (blocks_of_thread == 0) {
    fprintf(stderr, "rigio: the range is less than one block a thread\n");
    return 2;
  }
  pthread_t *running = malloc(threads * sizeof *running);
  for (uint64_t i = 0; i < threads; i++) pthread_create(&running[i], NULL, work, (void *)(uintptr_t)i);
  for (unsigned i = 0; i < threads; i++) pthread_join(running[i], NULL);
  printf("verified %llu blocks\n", (unsigned long long)(blocks_of_thread * threads));
  return 0;
}
