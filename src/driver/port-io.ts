/** How datagrams get in and out of a UDP port, and which way is taken when nobody says. */

import { RoceError } from '../core/errors.js';
import { batchedUdpAvailable } from '../dgram-ext/batched-udp-port.js';

/** All ways by name. */
export const PORT_IOS = ['auto', 'dgram', 'mmsg', 'shm'] as const;
/**
 * `dgram`: node:dgram, everywhere. `mmsg`: sendmmsg and recvmmsg with GSO and GRO (Linux, koffi). `shm`: mmsg, and memory shared with peers of the same
 * user on this host that say shm or auto. `auto`: mmsg where it can be had, and memory shared with such a peer once an exchange has found that both ends can; not with `secure`,
 * nor with `loss`, `pcap` or `trace`, which are about the packets of a network.
 */
export type PortIo = (typeof PORT_IOS)[number];

/** The way that was taken. */
export interface ChosenIo {
  /** Never `auto`: whether memory is shared, each exchange finds. */
  readonly io: 'dgram' | 'mmsg' | 'shm';
  /** For people: why it is not mmsg although that was welcome. */
  readonly reason: string | undefined;
}

/** Throws ERR_ROCE_UNSUPPORTED when mmsg or shm is asked for and cannot be had. */
export function chooseIo(wanted: PortIo): ChosenIo {
  if (wanted === 'dgram') return { io: 'dgram', reason: undefined };
  const reason = batchedUdpAvailable();
  if (reason === undefined) return { io: wanted === 'shm' ? 'shm' : 'mmsg', reason };
  if (wanted === 'auto') return { io: 'dgram', reason };
  throw new RoceError('ERR_ROCE_UNSUPPORTED', `no batched UDP here: ${reason}`, 'say auto or dgram');
}
