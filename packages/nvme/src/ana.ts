/**
 * Asymmetric namespace access (NVMe base specification 2.0 §8.1). All namespaces are one ANA group, which has one state
 * at each port.
 */

import { NvmeStatusError, STATUS } from './status.js';

/** States of a port, by the number that the log page has. */
export const ANA_STATES = {
  /** The best state. */
  optimized: 0x01,
  /** Works, but other ports are better. */
  'non-optimized': 0x02,
  /** No I/O now; hosts use other ports. */
  inaccessible: 0x03,
  /** No I/O, permanently. */
  'persistent-loss': 0x04,
  /** No I/O until the next state comes, soon. */
  change: 0x0f,
} as const;
/** Name of a state. */
export type AnaState = keyof typeof ANA_STATES;

export const ANA_GROUP = 1;
/** Seconds that a state of `change` may take, at most (ANATT). */
export const ANA_TRANSITION_SECONDS = 10;
export const ANA_CAPABILITIES = 0x5f;

const HEADER_BYTES = 16;
const GROUP_BYTES = 32;

export class AnaPort {
  /** Port ID, from 1 on. */
  readonly id: number;
  #state: AnaState = 'optimized';
  #changes = 0;

  constructor(id: number) {
    this.id = id;
  }

  get state(): AnaState {
    return this.#state;
  }

  get changes(): number {
    return this.#changes;
  }

  become(state: AnaState): boolean {
    if (state === this.#state) return false;
    this.#state = state;
    this.#changes++;
    return true;
  }

  /** Hosts try another path then. */
  check(): void {
    switch (this.#state) {
      case 'inaccessible':
        throw pathError(STATUS.ANA_INACCESSIBLE);
      case 'persistent-loss':
        throw pathError(STATUS.ANA_PERSISTENT_LOSS);
      case 'change':
        throw pathError(STATUS.ANA_TRANSITION);
    }
  }
}

/** DNR stays clear: another path may do what this one cannot. */
function pathError(status: number): Error {
  return new NvmeStatusError(status);
}

export function anaLog(port: AnaPort, nsids: readonly number[]): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES + GROUP_BYTES + 4 * nsids.length);
  bytes.writeBigUInt64LE(BigInt(port.changes), 0);
  bytes.writeUInt16LE(1, 8);
  const group = bytes.subarray(HEADER_BYTES);
  group.writeUInt32LE(ANA_GROUP, 0);
  group.writeUInt32LE(nsids.length, 4);
  group.writeBigUInt64LE(BigInt(port.changes), 8);
  group[16] = ANA_STATES[port.state];
  nsids.forEach((nsid, i) => {
    group.writeUInt32LE(nsid, GROUP_BYTES + 4 * i);
  });
  return bytes;
}
