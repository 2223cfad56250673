import { RoceError } from 'rocev2/internal/core';
import { DISCOVERY_NQN } from '../opcodes.js';
import { askController, type NvmeHostFlags } from './host.js';

export interface SubsystemFlags extends NvmeHostFlags {
  readonly nqn?: string;
}

export async function subsystemOf(name: string, flags: SubsystemFlags): Promise<string> {
  if (flags.nqn !== undefined) return flags.nqn;
  const found = await askController(name, flags, DISCOVERY_NQN, (host) => host.discover());
  const shown = found.filter(({ subtype, transport }) => subtype === 'nvm' && transport === flags.transport);
  const nqns = [...new Set(shown.map(({ nqn }) => nqn))];
  if (nqns.length === 1) return nqns[0];
  if (nqns.length > 1) {
    throw new RoceError(
      'ERR_ROCE_INVALID_ARGUMENT',
      `${name} has ${nqns.length} subsystems`,
      `give --nqn: ${nqns.join(', ')}`,
    );
  }
  throw new RoceError(
    'ERR_ROCE_NOT_FOUND',
    `${name} shows no subsystem over ${flags.transport} to this host`,
    flags.hostNqn === undefined ? 'it may show one to a host that it knows: give --host-nqn' : 'give --nqn',
  );
}
