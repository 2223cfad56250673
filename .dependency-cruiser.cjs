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
  sim: ['core', 'packet', 'port', 'faults', 'ring', 'retransmit', 'dcqcn', 'nic', 'switch', 'verbs'],
  fluid: ['core'],
  capture: ['core', 'packet', 'port'],
  'dgram-ext': ['core', 'packet', 'port'],
  'frame-port': ['core', 'packet', 'port', 'dgram-ext'],
  driver: ['core', 'packet', 'port', 'faults', 'ring', 'nic', 'switch', 'capture', 'dgram-ext', 'frame-port'],
  estats: ['core', 'packet', 'ring'],
  web: ['core', 'sim'],
  verbs: ['core', 'packet', 'port', 'ring', 'memory', 'retransmit', 'dcqcn', 'qp', 'nic', 'faults', 'driver', 'estats', 'dgram-ext'],
  cm: ['core', 'packet', 'retransmit', 'dcqcn', 'verbs'],
  window: ['core', 'verbs', 'cm'],
  'storage-rpc': ['core', 'packet', 'retransmit', 'verbs', 'cm'],
};

const pure = [
  'core',
  'packet',
  'port',
  'faults',
  'ring',
  'memory',
  'retransmit',
  'dcqcn',
  'qp',
  'nic',
  'switch',
  'sim',
  'fluid',
  'window',
  'storage-rpc/nbd/protocol',
  'storage-rpc/pool',
  'storage-rpc/sk',
  'storage-rpc/session',
  'storage-rpc/su',
];
const allowedBuiltins = '^(zlib|module)$'; // the CRC-32 of zlib, and loading its optional faster twin

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
      from: { path: `^src/(${pure.join('|')})/` },
      to: { dependencyTypes: ['core'], pathNot: allowedBuiltins },
    },
    {
      name: 'web-knows-results',
      severity: 'error',
      comment: 'of the simulator the page knows what a result looks like, and nothing else',
      from: { path: '^src/web/' },
      to: { path: '^src/sim/', dependencyTypesNot: ['type-only'] },
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
