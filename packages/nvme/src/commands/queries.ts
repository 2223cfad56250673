import { defineDocument, type Output } from '@rocev2/command';
import { formatBytes } from 'rocev2/internal/core';
import type { DiscoveredSubsystem } from '../discovery.js';
import type { ControllerIdentity, NamespaceIdentity } from '../host/nvme-host.js';
import { DISCOVERY_NQN } from '../opcodes.js';
import { controllerLines } from './controller-lines.js';
import { askController, type NvmeHostFlags } from './host.js';
import { type SubsystemFlags, subsystemOf } from './only-subsystem.js';

/** The fields of `nvme discover --json`. */
interface NvmeDiscoverResult {
  /** In the order of the discovery log page. */
  readonly subsystems: readonly DiscoveredSubsystem[];
}

/** The fields of `nvme list --json`. */
interface NvmeListResult {
  /** NQN of the subsystem. */
  readonly nqn: string;
  /** Ascending by ID. */
  readonly namespaces: readonly NamespaceIdentity[];
}

const NVME_DISCOVER_DOCUMENT = defineDocument<NvmeDiscoverResult>('nvme-discover');
const NVME_LIST_DOCUMENT = defineDocument<NvmeListResult>('nvme-list');
const NVME_ID_CTRL_DOCUMENT = defineDocument<ControllerIdentity>('nvme-id-ctrl');

export async function runDiscover(name: string, options: NvmeHostFlags, output: Output): Promise<void> {
  const found = await askController(name, options, DISCOVERY_NQN, (host) => host.discover());
  output.table(
    ['transport', 'address', 'port', 'subtype', 'NQN'].map((title) => ({ title, align: 'left' })),
    found.map(({ transport, address, service, subtype, nqn }) => [transport, address, service, subtype, nqn]),
  );
  output.document(NVME_DISCOVER_DOCUMENT, { subsystems: found });
}

export async function runList(name: string, options: SubsystemFlags, output: Output): Promise<void> {
  const nqn = await subsystemOf(name, options);
  const found = await askController(name, options, nqn, (host) => host.namespaces());
  if (options.nqn === undefined) output.line(nqn);
  output.table(
    [
      { title: 'namespace', align: 'right' },
      { title: 'size', align: 'right' },
      { title: 'bytes', align: 'right' },
      { title: 'blocks', align: 'right' },
      { title: 'of bytes', align: 'right' },
      { title: 'NGUID', align: 'left' },
      { title: '', align: 'left' },
    ],
    found.map(({ nsid, sizeBytes, blockBytes, nguid, readOnly }) => [
      nsid,
      formatBytes(sizeBytes),
      sizeBytes,
      sizeBytes / blockBytes,
      blockBytes,
      nguid,
      readOnly ? 'read-only' : '',
    ]),
  );
  output.document(NVME_LIST_DOCUMENT, { nqn, namespaces: found });
}

export async function runIdController(name: string, options: SubsystemFlags, output: Output): Promise<void> {
  const nqn = await subsystemOf(name, options);
  const identity = await askController(name, options, nqn, async (host) => host.identity);
  for (const line of controllerLines(identity)) output.line(line);
  output.document(NVME_ID_CTRL_DOCUMENT, identity);
}
