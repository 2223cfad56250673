import { RoceError } from 'rocev2/internal/core';
import { IpAddress } from 'rocev2/internal/packet';

/** Of the memory for data of commands, for the hosts at one address. */
export const ADDRESS_PART = 1 / 2;

export interface MemoryUser {
  /** Address of the host. */
  readonly remote: string;
  /** Since when the host has not continued; Infinity: nothing of it is in flight. */
  readonly stuckSinceNs: number;
  fail(error: Error): void;
}

/**
 * How a connection joins the memory: it ends when others wait, and its host neither takes its data nor sends what was
 * asked for.
 */
export function memoryUse(user: MemoryUser) {
  const onStuck = () => user.fail(new RoceError('ERR_ROCE_LIMIT', 'the host keeps memory that others wait for'));
  return [{ stuckSinceNs: () => user.stuckSinceNs, onStuck }, IpAddress.parse(user.remote).network] as const;
}
