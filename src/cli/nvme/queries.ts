/** `rocev2 nvme discover`, `list` and `id-ctrl`: what a target has. */

import { formatBytes } from '../../core/units.js';
import { DISCOVERY_NQN } from '../../storage-rpc/nvme/opcodes.js';
import type { Output } from '../output.js';
import { askController, type NvmeHostFlags } from './host.js';

/** Options of commands about one subsystem. */
export interface SubsystemFlags extends NvmeHostFlags {
  /** NQN of the subsystem. */
  readonly nqn: string;
}

/** Prints the subsystems that a target shows to this host. */
export async function runDiscover(name: string, options: NvmeHostFlags, output: Output): Promise<void> {
  const found = await askController(name, options, DISCOVERY_NQN, (host) => host.discover());
  output.table(
    ['transport', 'address', 'port', 'subtype', 'NQN'].map((title) => ({ title, align: 'left' })),
    found.map(({ transport, address, service, subtype, nqn }) => [transport, address, service, subtype, nqn]),
  );
  output.document('nvme-discover', { subsystems: found });
}

/** Prints the namespaces of a subsystem. */
export async function runList(name: string, options: SubsystemFlags, output: Output): Promise<void> {
  const found = await askController(name, options, options.nqn, (host) => host.namespaces());
  output.table(
    [
      { title: 'namespace', align: 'right' },
      { title: 'size', align: 'right' },
      { title: 'block', align: 'right' },
      { title: 'NGUID', align: 'left' },
      { title: '', align: 'left' },
    ],
    found.map(({ nsid, sizeBytes, blockBytes, nguid, readOnly }) => [
      nsid,
      formatBytes(sizeBytes),
      blockBytes,
      nguid,
      readOnly ? 'read-only' : '',
    ]),
  );
  output.document('nvme-list', { nqn: options.nqn, namespaces: found });
}

/** Prints what the controller of a subsystem says of itself. */
export async function runIdController(name: string, options: SubsystemFlags, output: Output): Promise<void> {
  const identity = await askController(name, options, options.nqn, async (host) => host.identity);
  for (const [field, value] of Object.entries(identity)) output.line(`${field.padEnd(18)} ${value}`);
  output.document('nvme-id-ctrl', identity);
}
