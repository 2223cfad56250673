import { RoceError } from '../core/errors.js';
import { batchedUdpAvailable } from '../dgram-ext/batched-udp-port.js';
import { whyNoLoopPoll } from './js-runtime.js';

export const PORT_IOS = ['auto', 'dgram', 'mmsg', 'shm'] as const;
/**
 * `dgram`: node:dgram, everywhere. `mmsg`: sendmmsg and recvmmsg with GSO and GRO (Linux, koffi). `shm`: mmsg, and
 * memory shared with peers of the same user on this host that say shm or auto. `auto`: mmsg where it can be had, and
 * memory shared with such a peer once an exchange has found that both ends can; not with `secure`, nor with `loss`,
 * `pcap` or `trace`, which are about the packets of a network.
 */
export type PortIo = (typeof PORT_IOS)[number];

export interface ChosenIo {
  readonly io: 'dgram' | 'mmsg' | 'shm';
  readonly reason: string | undefined;
}

/** `driving`: a port that is `polled` does not need the event loop. */
export function chooseIo(wanted: PortIo, driving: 'itself' | 'polled' = 'itself'): ChosenIo {
  if (wanted === 'dgram') return { io: 'dgram', reason: undefined };
  const reason = batchedUdpAvailable() ?? (driving === 'itself' ? whyNoLoopPoll() : undefined);
  if (reason === undefined) return { io: wanted === 'shm' ? 'shm' : 'mmsg', reason };
  if (wanted === 'auto') return { io: 'dgram', reason };
  throw new RoceError('ERR_ROCE_UNSUPPORTED', `no batched UDP here: ${reason}`, 'use auto or dgram');
}
