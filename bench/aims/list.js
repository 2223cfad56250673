// @ts-check
/** What this project wants to reach in speed on one machine: each aim with who is measured, beside whom, and the bar. The names are those that the benches give to their samples. */

import { NPM_CRC } from '../peers/measures.js';

/** @typedef {import('./verdict.js').Aim} Aim */

const NET = 'node:net, framed';
const BULK = ['mmsg/inline', 'mmsg/worker, spins'];
const BULK_SHM = ['shm/inline', 'shm/inline, spins', 'shm/worker, spins'];
/** Names of the two kinds of CRC, how the rows are called, and whether they need a library of the system. */
const CRCS = /** @type {const} */ ([
  ['npm packages alone', `, ${NPM_CRC}`, false],
  ['libdeflate or ISA-L', '', true],
]);

/**
 * Rates or processor time of bulk WRITEs to node:net's, for both kinds of CRC: of the first GiB, and of one in the steady state.
 * @param {string} aim @param {string[]} ways @param {{kinds: readonly [string, string], bars: Partial<Aim>[]}} judged
 */
const bulk = (aim, ways, { kinds, bars }) =>
  kinds.flatMap((kind, isSteady) =>
    CRCS.flatMap(([crc, suffix, native], i) =>
      ways.map((way) => ({
        aim: `${aim}, ${crc}${isSteady ? ', steady state' : ''}`,
        of: `bulk: rocev2 ${way}${suffix}`,
        to: `bulk: ${NET}`,
        native,
        kind,
        ...bars[i],
      })),
    ),
  );
/**
 * Rates of the first GiB behind `warmUp`, with the fastest CRC-32. @param {string} aim @param {string[]} ways @param {number} atLeast
 */
const bulkWarmedUp = (aim, ways, atLeast) =>
  ways.map((way) => ({
    aim: `${aim}, libdeflate or ISA-L, warmed up`,
    of: `bulk: rocev2 ${way}, warmed up`,
    to: `bulk: ${NET}`,
    native: true,
    atLeast,
  }));
const RATES = /** @type {const} */ (['value', 'steady']);
const CPUS = /** @type {const} */ (['cpu', 'steadyCpu']);

/** One-sided requests to node:net's round trip. @param {string} way @param {number} atMost @param {string} spins */
const oneSided = (way, atMost, spins) =>
  ['write', 'read'].map((op) => ({
    aim: `one-sided ${op.toUpperCase()} of 4 KiB relative to a round trip of node:net, ${spins}`,
    of: `${op}: rocev2 ${way}`,
    to: `${op}: node:net, a round trip`,
    atMost,
  }));

const MAPPED = ['mapped/inline', 'mapped/inline, spins', 'mapped/worker'];
const MAPPED_BULK = /** @type {const} */ ([
  ['WRITE of 4 MiB relative to framed node:net', 'value', { atLeast: 3 }],
  ['WRITE of 4 MiB relative to framed node:net, steady state', 'steady', { atLeast: 5 }],
  ['processor time per GiB at both ends relative to node:net', 'cpu', { atMost: 0.2 }],
  ['processor time per GiB at both ends relative to node:net, steady state', 'steadyCpu', { atMost: 0.2 }],
]);
/** What mapped.js measures: regions of these sizes. */
const WORKING_SETS = ['4 MiB', '256 MiB', '4 GiB'];
const MAPPED_OPS = ['WRITE', 'READ'];
export const MEMCPY = 'memcpy of C';
export const KV_GET = 'mapped: kv GET of 1 KiB';
export const LOCK = 'mapped: lock and unlock';
/** Name of a sample of mapped.js. @param {string} what @param {string} bytes of the region */
export const mappedName = (what, bytes) => `mapped: ${what} of 4 MiB, region of ${bytes}`;
/** Names of the samples of mapped.js. */
export const MAPPED_SAMPLES = [
  ...WORKING_SETS.flatMap((bytes) => [...MAPPED_OPS, MEMCPY].map((what) => mappedName(what, bytes))),
  KV_GET,
  LOCK,
];
/** Copies to mapped regions. */
const mapped = [
  {
    aim: 'mapped regions: READ of 4 MiB relative to framed node:net, steady state',
    of: mappedName('READ', '4 MiB'),
    to: `bulk: ${NET}`,
    kind: 'steady',
    atLeast: 5,
  },
  ...WORKING_SETS.flatMap((bytes) =>
    MAPPED_OPS.map((op) => ({
      aim: `mapped regions: ${op} of 4 MiB relative to memcpy of C, region of ${bytes}`,
      of: mappedName(op, bytes),
      to: mappedName(MEMCPY, bytes),
      atLeast: 0.6,
    })),
  ),
  ...[KV_GET, LOCK].map((of) => ({
    aim: of.replace('mapped:', 'mapped regions:'),
    of,
    unit: 'us',
    atMost: 1,
  })),
  ...MAPPED_BULK.flatMap(([aim, kind, bar]) =>
    MAPPED.map((way) => ({
      aim: `mapped regions: ${aim}`,
      of: `bulk: rocev2 ${way}`,
      to: `bulk: ${NET}`,
      kind,
      ...bar,
    })),
  ),
  ...['write', 'read'].flatMap((op) =>
    MAPPED.map((way) => ({
      aim: `mapped regions: one-sided ${op.toUpperCase()} of 4 KiB, ${way.includes('spins') ? 'spinning' : 'not spinning'}`,
      of: `${op}: rocev2 ${way}`,
      unit: 'us',
      atMost: way.includes('spins') ? 1 : 2,
    })),
  ),
  ...MAPPED.map((way) => ({
    aim: 'mapped regions: 64 B WRITEs per second',
    of: `rate: rocev2 ${way}`,
    unit: '/s',
    atLeast: 5e6,
  })),
];

/** @type {readonly {op: string, name: string, block: string, bar: number}[]} */
const DISK = [
  { op: 'randread', name: 'read', block: '8 KiB', bar: 1 },
  { op: 'randwrite', name: 'write', block: '8 KiB', bar: 1 },
  { op: 'randread', name: 'read', block: '1 MiB', bar: 0.76 },
  { op: 'randwrite', name: 'write', block: '1 MiB', bar: 0.84 },
];

/** Beginnings of the names of the samples of `rocev2 disk bench`: the client shares memory with its server, or `--io mmsg`. */
export const DISK_KINDS = /** @type {const} */ (['disk', 'disk over UDP']);

/**
 * Name of the samples of a cell of `rocev2 disk bench`.
 * @param {typeof DISK_KINDS[number]} kind @param {string} op @param {string} block @param {number} depth @param {string} transport
 */
export const diskName = (kind, op, block, depth, transport) => `${kind}: ${op} ${block}, depth ${depth}, ${transport}`;

const disks = DISK_KINDS.flatMap((disk) => [
  ...[1, 16].flatMap((depth) =>
    DISK.map(({ op, name, block, bar }) => ({
      aim: `${disk}, ${name} of ${block}, depth ${depth}, p50 relative to our TCP transport`,
      of: diskName(disk, op, block, depth, 'rdma'),
      to: diskName(disk, op, block, depth, 'tcp'),
      atMost: bar,
    })),
  ),
  ...[1, 16].flatMap((depth) =>
    DISK.filter(({ block }) => block === '8 KiB').map(({ op, name, block }) => ({
      aim: `${disk}, ${name} of ${block}, depth ${depth}, processor time relative to our TCP transport`,
      of: diskName(disk, op, block, depth, 'rdma'),
      to: diskName(disk, op, block, depth, 'tcp'),
      kind: 'cpu',
      atMost: 1,
    })),
  ),
]);

/** All aims, in the order in which they are printed. @type {readonly Aim[]} */
export const AIMS = [
  ...bulk('WRITE of 4 MiB relative to framed node:net', BULK, {
    kinds: RATES,
    bars: [{ atLeast: 1 }, { atLeast: 1.2 }],
  }),
  ...bulkWarmedUp('WRITE of 4 MiB relative to framed node:net', BULK, 1.2),
  ...bulk('processor time per GiB at both ends relative to node:net', BULK, {
    kinds: CPUS,
    bars: [{ atMost: 1 }, { atMost: 0.8 }],
  }),
  ...['code cold', 'code warm', 'code warmed up'].flatMap((code) =>
    ['mmsg/inline', 'mmsg/worker'].map((way) => ({
      aim: `rate of the first 256 MiB relative to the steady rate, ${code}`,
      of: `first touch: ${way}, ${code}`,
      atLeast: 0.8,
    })),
  ),
  {
    aim: 'dgram/inline relative to a raw one-way blast',
    of: 'bulk: rocev2 dgram/inline',
    to: 'bulk: bare datagrams, what arrived',
    atLeast: 0.75,
  },
  {
    aim: '64 B SEND round trip relative to node:net, spinning',
    of: 'rtt64: rocev2 mmsg/inline, spins',
    to: `rtt64: ${NET}`,
    atMost: 1,
  },
  {
    aim: '64 B SEND round trip relative to node:net, not spinning',
    of: 'rtt64: rocev2 mmsg/inline',
    to: `rtt64: ${NET}`,
    atMost: 1.3,
  },
  ...oneSided('mmsg/inline, spins', 0.5, 'spinning'),
  ...oneSided('mmsg/inline', 1, 'not spinning'),
  ...bulk('shared memory: WRITE of 4 MiB relative to framed node:net', BULK_SHM, {
    kinds: RATES,
    bars: [{ atLeast: 1.6 }, { atLeast: 2.5 }],
  }),
  ...bulkWarmedUp(
    'shared memory: WRITE of 4 MiB relative to framed node:net',
    ['shm/inline, spins', 'shm/worker, spins'],
    2.5,
  ),
  ...['write', 'read'].map((op) => ({
    aim: `shared memory: one-sided ${op.toUpperCase()} of 4 KiB, spinning`,
    of: `${op}: rocev2 shm/inline, spins`,
    unit: 'us',
    atMost: 2,
  })),
  {
    aim: 'shared memory: 64 B SEND round trip relative to node:net, spinning',
    of: 'rtt64: rocev2 shm/inline, spins',
    to: `rtt64: ${NET}`,
    atMost: 0.1,
  },
  {
    aim: 'shared memory: 64 B SEND round trip relative to node:net, not spinning',
    of: 'rtt64: rocev2 shm/inline',
    to: `rtt64: ${NET}`,
    atMost: 0.7,
  },
  ...['shm/inline', 'shm/inline, spins'].map((way) => ({
    aim: 'shared memory: 64 B WRITEs per second',
    of: `rate: rocev2 ${way}`,
    unit: '/s',
    atLeast: 3e6,
  })),
  ...mapped,
  { aim: '64 B WRITEs per second, pipelined', of: 'rate: rocev2 mmsg/inline', unit: '/s', atLeast: 1e6 },
  ...['', ', mmsg/inline'].map((way) => ({
    aim: '1,000 queue pairs of 16 KiB relative to 10',
    of: `connections: 1000 queue pairs${way}`,
    to: `connections: 10 queue pairs${way}`,
    atLeast: 0.95,
  })),
  {
    aim: 'selective repeat at 0.1 % loss relative to no loss',
    of: 'loss: selective repeat',
    to: 'loss: no packet lost',
    atLeast: 0.95,
  },
  ...disks,
  ...['randread', 'randwrite'].map((op) => ({
    aim: `NBD gateway over RDMA relative to nbdkit, ${op} of 8 KiB, depth 16, IOPS`,
    of: `gateway: ${op}, RDMA`,
    to: `gateway: ${op}, nbdkit`,
    atLeast: 0.7,
  })),
  ...['device, mmsg/inline', 'device, mmsg/worker', 'device, shm/worker', 'dashboard', 'dashboard --attach'].map(
    (what) => ({
      aim: 'processor time of an idle program',
      of: `idle: ${what}`,
      unit: '% of a core',
      atMost: 1,
    }),
  ),
];
