/**
 * The layers of ARCHITECTURE.md as rules. A folder of the transport (src) may import itself and the folders listed for it; a package may import
 * the packages listed for it, by their entry points. Everything else is an error. `pure` folders may not touch Node's I/O, clocks or randomness.
 */
const layers = {
  core: [],
  packet: ['core'],
  memory: ['core', 'packet'],
  port: ['core', 'packet'],
  'dgram-ext': ['core', 'packet', 'port'],
  'port/faults': ['core', 'packet', 'port'],
  'port/capture': ['core', 'packet', 'port', 'memory'],
  'port/secure': ['core', 'packet', 'port', 'memory'],
  'port/frame': ['core', 'packet', 'port', 'dgram-ext'],
  'port/shm': ['core', 'packet', 'port', 'dgram-ext'],
  retransmit: ['core', 'packet'],
  dcqcn: ['core', 'packet'],
  qp: ['core', 'packet', 'port', 'memory', 'retransmit', 'dcqcn'],
  nic: ['core', 'packet', 'port', 'memory', 'retransmit', 'dcqcn', 'qp'],
  driver: ['core', 'packet', 'port', 'port/[a-z]+', 'memory', 'nic', 'dgram-ext'],
  'verbs/estats': ['core', 'packet', 'memory', 'driver'],
  verbs: [
    'core',
    'packet',
    'port',
    'port/faults',
    'memory',
    'retransmit',
    'dcqcn',
    'qp',
    'nic',
    'driver',
    'verbs/estats',
    'dgram-ext',
  ],
  cm: ['core', 'packet', 'memory', 'retransmit', 'dcqcn', 'verbs'],
  window: ['core', 'verbs', 'cm'],
  'storage-rpc': ['core', 'packet', 'retransmit', 'dcqcn', 'driver', 'verbs/estats', 'verbs', 'cm'],
  internal: ['.*'],
};

/** What a package may import besides itself and the transport. */
const packages = {
  command: [],
  rpc: [],
  kv: ['command', 'rpc'],
  ibverbs: ['command'],
  primitives: ['rpc'],
  extents: ['command', 'rpc'],
  nvme: ['command', 'extents'],
  inspect: ['command'],
  lab: ['command', 'inspect'],
  dashboard: ['command', 'inspect', 'lab'],
  page: ['command', 'dashboard', 'inspect', 'lab'],
  cli: ['command', 'dashboard', 'extents', 'ibverbs', 'inspect', 'kv', 'lab', 'nvme'],
};

/** The files of a layer: those of a folder, without the folders in it that are layers of their own. */
function filesOf(layer) {
  const inner = Object.keys(layers).filter((name) => name.startsWith(`${layer}/`));
  const without = inner.map((name) => `${name.slice(layer.length + 1)}/`).join('|');
  return `^src/${layer}/${without === '' ? '' : `(?!${without})`}`;
}

const engine = [
  'core',
  'packet',
  'port/(?!capture|shm|frame|secure)',
  'memory',
  'retransmit',
  'dcqcn',
  'qp',
  'nic',
].map((folder) => `src/${folder}`);
engine.push('packages/lab/src/switch');
const pure = [
  ...engine,
  'src/port/secure',
  'src/window',
  ...['nbd/protocol', 'fair', 'link', 'pool', 'sk', 'session', 'su', 'su-stream', 'stream'].map(
    (folder) => `src/storage-rpc/${folder}`,
  ),
  'packages/nvme/src/(?!live|commands)',
  'packages/lab/src/(schema|sim|fluid)',
  'packages/inspect/src/(audit|conform)',
  'packages/command/src/(schema|plot)',
].map((folder) => (folder.endsWith(')') ? folder : `${folder}/`));
const allowedBuiltins = '^(zlib|module|buffer)$'; // the CRC-32 of zlib, loading its optional faster twin, the largest buffer

/** DH-HMAC-CHAP of NVMe over Fabrics. */
const authentication = '^packages/nvme/src/auth/';
/** Protection of packets. */
const protection = '^src/port/secure/';

module.exports = {
  forbidden: [
    ...Object.entries(layers).map(([folder, below]) => ({
      name: `layer-${folder}`,
      severity: 'error',
      comment: `src/${folder} may import only: ${[folder, ...below].join(', ')}`,
      from: { path: filesOf(folder) },
      to: { path: '^src/', pathNot: [folder, ...below].map((name) => (name === '.*' ? '^src/' : filesOf(name))) },
    })),
    {
      name: 'transport-imports-no-package',
      severity: 'error',
      comment: 'packages use the transport, never the other way round',
      from: { path: '^src/' },
      to: { path: '^packages/' },
    },
    ...Object.entries(packages).map(([name, below]) => ({
      name: `package-${name}`,
      severity: 'error',
      comment: `packages/${name} may import only: ${['the transport', ...below].join(', ')}`,
      from: { path: `^packages/${name}/src/` },
      to: { path: '^packages/', pathNot: `^packages/(${[name, ...below].join('|')})/` },
    })),
    {
      name: 'entry-points-of-packages',
      severity: 'error',
      comment: 'a package imports another by its name, and the transport by rocev2 or rocev2/internal',
      from: { path: '^packages/([^/]+)/src/' },
      to: { path: '^(src|packages)/', pathNot: '^packages/$1/', dependencyTypes: ['local'] },
    },
    {
      name: 'pure-engine',
      severity: 'error',
      comment: 'the engine is sans-IO: no sockets, timers, clocks, files or random sources',
      from: { path: `^(${pure.join('|')})`, pathNot: `${authentication}|${protection}` },
      to: { dependencyTypes: ['core'], pathNot: allowedBuiltins },
    },
    {
      name: 'pure-extents',
      severity: 'error',
      comment:
        'the protocols of extents get files, time, randomness and the network passed in; only extents/live has them',
      from: { path: '^packages/extents/src/((disk|coding)/)?[^/]+$' },
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
      from: { path: '^(src|packages/[^/]+/src)/', pathNot: '^src/driver/system-clock\\.ts$' },
      to: { path: '^(node:)?perf_hooks$' },
    },
    {
      name: 'storage-takes-the-clock',
      severity: 'error',
      comment:
        'of the drivers the sockets of storage-rpc use the system clock and the fastest CRC-32C, NBD over TLS reads files with keys, disks use file calls that Node lacks, and the rest of storage-rpc uses nothing',
      from: { path: '^src/storage-rpc/' },
      to: { path: '^src/driver/(?!system-clock\\.ts$|private-file\\.ts$|file-calls\\.ts$|crc32/crc32c-choice\\.ts$)' },
    },
    {
      name: 'storage-gets-the-time',
      severity: 'error',
      comment:
        'only storage-rpc/live and the NBD server, which put protocols on sockets, know that there is a system clock',
      from: { path: '^src/storage-rpc/(?!live/|nbd/server\\.ts$)' },
      to: { path: '^src/driver/(?!private-file\\.ts$|file-calls\\.ts$)' },
    },
    {
      name: 'engine-packages',
      severity: 'error',
      comment:
        'the engine is our own code: streams of random numbers, a heap and a faster CRC are all it takes from others',
      from: { path: `^(${engine.join('|')})` },
      to: { path: 'node_modules/', pathNot: 'node_modules/(pure-rand|tinyqueue|@node-rs/crc32)/' },
    },
    {
      name: 'dashboard-knows-results',
      severity: 'error',
      comment: 'of the simulator the dashboard knows what a result looks like, and nothing else',
      from: { path: '^packages/dashboard/src/' },
      to: { path: '^packages/lab/src/sim/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'page-runs-in-browsers',
      severity: 'error',
      comment: 'the page loads its own modules, those of the messages, and what draws; of all others it may use types',
      from: { path: '^packages/dashboard/src/(page|messages)/' },
      to: {
        pathNot: '^packages/(dashboard/src/(page|messages)|command/src/plot)/',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'no-cycles',
      severity: 'error',
      comment:
        'type-only imports count; only in src/verbs may they close a cycle, because public objects know their owners',
      from: {},
      to: { circular: true, via: { pathNot: '^src/verbs/' } },
    },
    {
      name: 'no-cycles-of-values',
      severity: 'error',
      comment:
        'in each cycle of src/verbs an import is type-only: no module needs, when it is loaded, one that needs it',
      from: { path: '^src/verbs/' },
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'no-unknown-folder',
      severity: 'error',
      comment: 'a new folder under src/ needs a line in the layer table',
      from: { path: `^src/(?!(${Object.keys(layers).join('|')})/|index\\.ts$)` },
      to: {},
    },
    { name: 'no-unresolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['@rocev2/source', 'import', 'require', 'node', 'default', 'types'],
    },
    doNotFollow: { path: 'node_modules' },
  },
};
