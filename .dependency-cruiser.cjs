/**
 * The layers of ARCHITECTURE.md as rules. A folder under src/ may import itself and the folders listed for it;
 * everything else is an error. `pure` folders may not touch Node's I/O, clocks or randomness.
 */
const layers = {
  core: [],
  packet: ['core'],
  port: ['core', 'packet'],
  faults: ['core', 'packet', 'port'],
  ring: ['core', 'packet'],
  memory: ['core'],
  retransmit: ['core', 'packet'],
  dcqcn: ['core', 'packet'],
  qp: ['core', 'packet', 'port', 'ring', 'memory', 'retransmit', 'dcqcn'],
  nic: ['core', 'packet', 'port', 'ring', 'memory', 'retransmit', 'dcqcn', 'qp'],
  switch: ['core', 'packet', 'port', 'faults'],
  secure: ['core', 'packet', 'port', 'ring'],
  schema: ['core', 'packet', 'retransmit', 'dcqcn', 'switch'],
  sim: ['core', 'packet', 'port', 'faults', 'ring', 'retransmit', 'dcqcn', 'qp', 'nic', 'switch', 'schema', 'verbs'],
  fluid: ['core', 'retransmit'],
  plot: ['core'],
  capture: ['core', 'packet', 'port', 'ring'],
  audit: ['core', 'packet', 'dcqcn', 'capture'],
  'dgram-ext': ['core', 'packet', 'port'],
  'frame-port': ['core', 'packet', 'port', 'dgram-ext'],
  'shm-port': ['core', 'packet', 'port', 'dgram-ext'],
  driver: [
    'core',
    'packet',
    'port',
    'faults',
    'ring',
    'nic',
    'switch',
    'capture',
    'dgram-ext',
    'frame-port',
    'shm-port',
    'secure',
  ],
  estats: ['core', 'packet', 'ring', 'driver'],
  verbs: [
    'core',
    'packet',
    'port',
    'ring',
    'memory',
    'retransmit',
    'dcqcn',
    'qp',
    'nic',
    'faults',
    'driver',
    'estats',
    'dgram-ext',
  ],
  cm: ['core', 'packet', 'retransmit', 'dcqcn', 'verbs'],
  conform: ['core', 'packet', 'port', 'audit', 'capture', 'retransmit', 'verbs', 'cm'],
  wire: ['core', 'packet', 'port', 'faults', 'switch', 'capture', 'audit', 'dgram-ext', 'driver'],
  window: ['core', 'verbs', 'cm'],
  rpc: ['core', 'driver', 'verbs', 'cm'],
  kv: ['core', 'driver', 'verbs', 'cm', 'rpc'],
  primitives: ['core', 'driver', 'verbs', 'cm', 'rpc'],
  processes: ['core', 'packet', 'schema', 'faults', 'retransmit', 'dcqcn', 'switch', 'driver', 'verbs'],
  dashboard: [
    'core',
    'packet',
    'ring',
    'retransmit',
    'dcqcn',
    'switch',
    'capture',
    'driver',
    'estats',
    'schema',
    'sim',
    'verbs',
    'processes',
  ],
  extents: ['core', 'dgram-ext', 'driver', 'verbs', 'cm', 'rpc', 'storage-rpc'],
  'storage-rpc': ['core', 'packet', 'retransmit', 'dcqcn', 'driver', 'estats', 'verbs', 'cm'],
};

const engine = ['core', 'packet', 'port', 'faults', 'ring', 'memory', 'retransmit', 'dcqcn', 'qp', 'nic', 'switch'];
const pure = [
  ...engine,
  'schema',
  'secure',
  'sim',
  'audit',
  'conform',
  'fluid',
  'plot',
  'window',
  'storage-rpc/nbd/protocol',
  'storage-rpc/fair',
  'storage-rpc/nvme',
  'storage-rpc/link',
  'storage-rpc/pool',
  'storage-rpc/sk',
  'storage-rpc/session',
  'storage-rpc/su',
  'storage-rpc/su-stream',
  'storage-rpc/stream',
];
const allowedBuiltins = '^(zlib|module)$'; // the CRC-32 of zlib, and loading its optional faster twin

/** DH-HMAC-CHAP of NVMe over Fabrics. */
const authentication = '^src/storage-rpc/nvme/auth/';
/** Protection of packets. */
const protection = '^src/secure/';

module.exports = {
  forbidden: [
    ...Object.entries(layers).map(([folder, below]) => ({
      name: `layer-${folder}`,
      severity: 'error',
      comment: `src/${folder} may import only: ${[folder, ...below].join(', ')}`,
      from: { path: `^src/${folder}/` },
      to: { path: '^src/', pathNot: `^src/(${[folder, ...below].join('|')})/` },
    })),
    {
      name: 'pure-engine',
      severity: 'error',
      comment: 'the engine is sans-IO: no sockets, timers, clocks, files or random sources',
      from: { path: `^src/(${pure.join('|')})/`, pathNot: `${authentication}|${protection}` },
      to: { dependencyTypes: ['core'], pathNot: allowedBuiltins },
    },
    {
      name: 'pure-extents',
      severity: 'error',
      comment:
        'the protocols of extents get files, time, randomness and the network passed in; only extents/live has them',
      from: { path: '^src/extents/((disk|coding)/)?[^/]+$' },
      to: { dependencyTypes: ['core'], pathNot: allowedBuiltins },
    },
    {
      name: 'pure-authentication',
      severity: 'error',
      comment:
        'authentication and protection take hashes, ciphers and key pairs from node:crypto, and nothing else from Node; challenges are passed in',
      from: { path: `${authentication}|${protection}` },
      to: { dependencyTypes: ['core'], pathNot: '^crypto$' },
    },
    {
      name: 'one-system-clock',
      severity: 'error',
      comment: 'driver/system-clock.ts alone reads the clock of the system (one-clock.grit says the same of globals)',
      from: { path: '^src/', pathNot: '^src/driver/system-clock\\.ts$' },
      to: { path: '^(node:)?perf_hooks$' },
    },
    {
      name: 'storage-takes-the-clock',
      severity: 'error',
      comment:
        'of the drivers the sockets of storage-rpc use the system clock and the fastest CRC-32C, and the rest of storage-rpc nothing',
      from: { path: '^src/storage-rpc/' },
      to: { path: '^src/driver/(?!system-clock\\.ts$|crc32/crc32c-choice\\.ts$)' },
    },
    {
      name: 'storage-gets-the-time',
      severity: 'error',
      comment:
        'only storage-rpc/live and the NBD server, which put protocols on sockets, know that there is a system clock',
      from: { path: '^src/storage-rpc/(?!live/|nbd/server\\.ts$)' },
      to: { path: '^src/driver/' },
    },
    {
      name: 'engine-packages',
      severity: 'error',
      comment:
        'the engine is our own code: streams of random numbers, a heap and a faster CRC are all it takes from others',
      from: { path: `^src/(${engine.join('|')})/` },
      to: { path: 'node_modules/', pathNot: 'node_modules/(pure-rand|tinyqueue|@node-rs/crc32)/' },
    },
    {
      name: 'dashboard-knows-results',
      severity: 'error',
      comment: 'of the simulator the dashboard knows what a result looks like, and nothing else',
      from: { path: '^src/dashboard/' },
      to: { path: '^src/sim/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'page-runs-in-browsers',
      severity: 'error',
      comment: 'the page loads its own modules and those of the messages; of all others it may use types',
      from: { path: '^src/dashboard/(page|messages)/' },
      to: { pathNot: '^src/dashboard/(page|messages)/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'no-unknown-folder',
      severity: 'error',
      comment: 'a new folder under src/ needs a line in the layer table',
      from: { path: `^src/(?!(${Object.keys(layers).join('|')}|cli)/|index\\.ts$)` },
      to: {},
    },
    { name: 'no-unresolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
    doNotFollow: { path: 'node_modules' },
  },
};
