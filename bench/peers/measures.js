// @ts-check
/** What `bench:peers` measures: who takes part, with which options, and which number counts. */

const MIB = 1024 * 1024;
const KIB = 1024;

/** The fastest CRC-32 that packages of npm have: what users get without a library of the system. */
export const NPM_CRC = '@node-rs/crc32';

/** @typedef {{name: string, transport: string, options?: object, crc?: string}} Competitor */

/** @param {'inline'|'worker'} engine @param {'dgram'|'mmsg'|'shm'} io @returns {Competitor} */
const ours = (engine, io, spin = false) => ({
  name: `rocev2 ${io}/${engine}${spin ? ', spins' : ''}`,
  transport: 'rocev2',
  options: { engine, io, spin },
});
/** Copies to mapped regions. @param {'inline'|'worker'} engine @returns {Competitor} */
const mapped = (engine, spin = false) => ({
  name: `rocev2 mapped/${engine}${spin ? ', spins' : ''}`,
  transport: 'rocev2',
  options: { engine, io: 'shm', spin, maps: true },
});
const MAPPED = [mapped('inline'), mapped('inline', true), mapped('worker')];
/** The same with the CRC-32 of npm. @param {Competitor} competitor */
const withNpmCrc = (competitor) => ({ ...competitor, name: `${competitor.name}, ${NPM_CRC}`, crc: NPM_CRC });
/** The same after `warmUp`. @param {Competitor} competitor */
const warmedUp = (competitor) => ({
  ...competitor,
  name: `${competitor.name}, warmed up`,
  options: { ...competitor.options, warmUpMs: 1000 },
});
const OURS = [
  ours('inline', 'dgram'),
  ours('worker', 'dgram', true),
  ours('inline', 'mmsg'),
  ours('worker', 'mmsg', true),
  ours('inline', 'mmsg', true),
  ours('inline', 'shm'),
  ours('inline', 'shm', true),
  ours('worker', 'shm', true),
];
/** Those that carry the most, with the CRC-32 of npm and no library of the system (pairs.js); the others have the fastest one, or that of ROCEV2_CRC32. */
const OURS_BY_NPM = [
  ours('inline', 'mmsg'),
  ours('worker', 'mmsg', true),
  ours('inline', 'shm'),
  ours('inline', 'shm', true),
  ours('worker', 'shm', true),
].map(withNpmCrc);
const OURS_WARMED_UP = [
  ours('inline', 'mmsg'),
  ours('worker', 'mmsg', true),
  ours('inline', 'shm', true),
  ours('worker', 'shm', true),
].map(warmedUp);
const THEIRS = ['net', 'http2', 'ws', 'grpc', 'udx'].map((transport) => ({ name: NAMES()[transport], transport }));

function NAMES() {
  return /** @type {Record<string, string>} */ ({
    net: 'node:net, framed',
    http2: 'node:http2',
    ws: 'ws',
    grpc: '@grpc/grpc-js',
    udx: 'udx-native',
  });
}

/** All measurements by name. @param {{bulkBytes: number, seconds: number}} options bytes of a bulk transfer; seconds of what runs for a time */
export function measures({ bulkBytes, seconds }) {
  // Code is compiled while it runs: without a warm-up the compiler is measured as well. What runs once a batch is compiled until some 1.5 GiB have gone.
  const bulk = { messageBytes: 4 * MIB, messages: Math.max(1, Math.round(bulkBytes / (4 * MIB))), warmUp: 48 };
  const bulkThenSteady = { ...bulk, settling: 96 };
  const slow = { ...bulk, messages: Math.ceil(bulk.messages / 4), warmUp: 12 };
  const many = { messages: 5000, warmUp: 5000 };
  const few = { messages: 200, warmUp: 20 };
  // Half a second of warm-up for all: what moves a million short messages a second is still being compiled after the first 100,000.
  const pipelined = (/** @type {Competitor} */ { transport, options }) => {
    if (transport === 'grpc') return { messages: 50_000, warmUp: 50_000 };
    const isSlow = transport === 'net' || transport === 'ws' || /** @type {any} */ (options)?.io === 'dgram';
    return isSlow ? { messages: 300_000, warmUp: 50_000 } : { messages: 1_000_000, warmUp: 500_000 };
  };
  const roundTrip = (/** @type {number} */ messageBytes) => ({
    title: `${sizeText(messageBytes)} round trip`,
    unit: 'us',
    better: 'less',
    runs: [
      ...[...OURS, ours('worker', 'mmsg'), ours('worker', 'shm'), ...THEIRS].map((c) => ({
        ...c,
        measure: 'roundTrip',
      })),
      { name: 'bare datagrams', transport: 'dgram', measure: 'roundTrip' },
    ].map((run) => ({ ...run, with: { messageBytes, ...(run.transport === 'udx' ? few : many) } })),
    value: latencyP50,
  });
  const oneSided = (/** @type {'write' | 'read'} */ measure) => ({
    title: `one-sided ${measure.toUpperCase()} of 4 KiB`,
    unit: 'us',
    better: 'less',
    runs: [
      ...[...OURS, ...MAPPED, ours('worker', 'mmsg'), ours('worker', 'shm')].map((c) => ({ ...c, measure })),
      { ...THEIRS[0], name: 'node:net, a round trip', measure: 'roundTrip' },
    ].map((run) => ({ ...run, with: { messageBytes: 4 * KIB, ...many } })),
    value: latencyP50,
  });
  const manyPairs = (/** @type {number} */ qps, /** @type {Competitor} */ who, /** @type {string} */ suffix) => ({
    ...who,
    name: `${pairsText(qps)}${suffix}`,
    measure: 'fair',
    with: { messageBytes: 16 * KIB, seconds, qps },
  });
  return {
    bulk: {
      title: `${sizeText(bulkBytes)} in messages of 4 MiB`,
      unit: 'MB/s',
      better: 'more',
      runs: [
        ...[...OURS, ...MAPPED, ...OURS_BY_NPM, ...THEIRS].map((c) => ({
          ...c,
          measure: 'oneWay',
          with: ['udx', 'grpc', 'ws'].includes(c.transport) ? slow : bulkThenSteady,
        })),
        ...OURS_WARMED_UP.map((c) => ({ ...c, measure: 'oneWay', with: bulk })),
        {
          name: 'bare datagrams, what arrived',
          transport: 'dgram',
          measure: 'blast',
          with: { messageBytes: 4112, messages: Number.MAX_SAFE_INTEGER, seconds },
        },
      ],
      value: (/** @type {any} */ { client, server }) =>
        client.messages === undefined
          ? server.bytes / server.seconds / 1e6
          : (client.messages * client.messageBytes) / client.phases.counted.seconds / 1e6,
    },
    rtt64: roundTrip(64),
    rtt4k: roundTrip(4 * KIB),
    rtt8k: roundTrip(8 * KIB),
    write: oneSided('write'),
    read: oneSided('read'),
    rate: {
      title: 'messages of 64 B, pipelined',
      unit: 'messages/s',
      better: 'more',
      runs: [...OURS, ...MAPPED, ...THEIRS].map((c) => ({
        ...c,
        measure: 'oneWay',
        with: { messageBytes: 64, ...pipelined(c) },
      })),
      value: (/** @type {any} */ { client }) => client.messages / client.phases.counted.seconds,
    },
    qps: {
      title: 'WRITEs of 256 KiB on many queue pairs at once',
      unit: 'MB/s',
      better: 'more',
      runs: [1, 4, 16, 64].map((qps) => ({
        ...ours('worker', 'mmsg', true),
        name: pairsText(qps),
        measure: 'fair',
        with: { messageBytes: 256 * KIB, seconds, qps },
      })),
      value: (/** @type {any} */ { client }) => (client.messages * client.messageBytes) / client.seconds / 1e6,
      extra: (/** @type {any} */ { client }) => ({ jain: client.jain }),
    },
    connections: {
      title: 'WRITEs of 16 KiB on up to a thousand queue pairs at once',
      unit: 'MB/s',
      better: 'more',
      runs: [
        ...[1, 10, 100, 1000].map((qps) => manyPairs(qps, ours('worker', 'mmsg', true), '')),
        ...[10, 1000].map((qps) => manyPairs(qps, ours('inline', 'mmsg'), ', mmsg/inline')),
      ],
      value: (/** @type {any} */ { client }) => (client.messages * client.messageBytes) / client.seconds / 1e6,
      extra: (/** @type {any} */ { client }) => ({ jain: client.jain }),
    },
    loss: {
      title: 'WRITEs of 4 MiB while 0.1 % of all packets are lost',
      unit: 'MB/s',
      better: 'more',
      runs: [
        ['no packet lost', 'go-back-n', 'random=0'],
        ['go-back-N', 'go-back-n', 'random=0.001'],
        ['selective repeat', 'selective-repeat', 'random=0.001'],
      ].map(([name, recovery, loss]) => ({
        ...ours('worker', 'mmsg', true),
        name,
        measure: 'lossy',
        with: { ...bulk, recovery, loss },
      })),
      value: (/** @type {any} */ { client }) =>
        (client.messages * client.messageBytes) / client.phases.counted.seconds / 1e6,
    },
  };
}

function pairsText(/** @type {number} */ qps) {
  return `${qps} queue pair${qps === 1 ? '' : 's'}`;
}

function latencyP50(/** @type {any} */ { client }) {
  return client.latencyUs.p50;
}

function sizeText(/** @type {number} */ bytes) {
  if (bytes >= 1024 * MIB) return `${bytes / 1024 / MIB} GiB`;
  if (bytes >= MIB) return `${bytes / MIB} MiB`;
  return bytes >= KIB ? `${bytes / KIB} KiB` : `${bytes} B`;
}
