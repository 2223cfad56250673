/**
 * Takes queue pairs of each transport to RTS after an exchange over TCP. Attributes are those of IBTA vol. 1 table 91:
 * UC has no timers and answers no READs; UD has no peer, so messages name their destination.
 */

import type { RateControlOptions } from '../dcqcn/rate-controls.js';
import type { IpAddress } from '../packet/address.js';
import { Access } from '../verbs/access.js';
import type { AddressHandle } from '../verbs/address-handle.js';
import type { QpAttr } from '../verbs/qp-attributes.js';
import type { QueuePair } from '../verbs/queue-pair.js';

/** The transports of the tools, as perftest's `-c` has them in capitals. */
export const TRANSPORTS = ['rc', 'uc', 'ud'] as const;
/** Reliable connection, unreliable connection or unreliable datagram. */
export type TransportName = (typeof TRANSPORTS)[number];

const QP_TYPES: Readonly<Record<TransportName, QueuePair['type']>> = { rc: 'RC', uc: 'UC', ud: 'UD' };

export function qpTypeOf(transport: TransportName): QueuePair['type'] {
  return QP_TYPES[transport];
}

/** Q_Key of perftest and of ibv_ud_pingpong, and so of our tools. */
export const TOOLS_QKEY = 0x11111111;

export interface RemoteQueuePair {
  readonly address: IpAddress;
  readonly udpPort?: number;
  readonly sourcePort?: number | 'flow';
  /** 24 bits. */
  readonly qpn: number;
  /** First PSN it sends, 24 bits; UD ignores it. */
  readonly psn: number;
}

export interface OwnTerms {
  /** First PSN it sends, 24 bits. */
  readonly psn: number;
  readonly pathMtu: number;
  readonly rateControl?: RateControlOptions;
  readonly dscp?: number;
  readonly reliable: { readonly toRtr: QpAttr; readonly toRts: QpAttr };
}

/** Destination of a datagram; nothing on a connected queue pair. */
export interface Destination {
  /** Where the receiver is. */
  readonly ah?: AddressHandle;
  /** QPN of the receiver, 24 bits. */
  readonly remoteQpn?: number;
  /** Q_Key of the receiver, 32 bits. */
  readonly remoteQkey?: number;
}

/** A connected peer has the access that the regions allow. */
export async function initializeQueuePair(qp: QueuePair): Promise<void> {
  const attributes = { state: 'INIT', pkeyIndex: 0, port: 1 } as const;
  await qp.modify(
    qp.type === 'UD' ? { ...attributes, qkey: TOOLS_QKEY } : { ...attributes, accessFlags: Access.REMOTE_ALL },
  );
}

export async function connectQueuePair(qp: QueuePair, own: OwnTerms, remote: RemoteQueuePair): Promise<Destination> {
  const { address, udpPort, sourcePort, qpn } = remote;
  if (qp.type === 'UD') {
    await qp.modify({ state: 'RTR' });
    await qp.modify({ state: 'RTS', sqPsn: own.psn });
    const { dscp } = own;
    const ah = await qp.pd.createAh(address, {
      ...(udpPort !== undefined && { udpPort }),
      ...(dscp !== undefined && { dscp }),
    });
    return { ah, remoteQpn: qpn, remoteQkey: TOOLS_QKEY };
  }
  const { toRtr, toRts } = qp.type === 'RC' ? own.reliable : { toRtr: {}, toRts: {} };
  await qp.modify({
    state: 'RTR',
    av: { address, ...(udpPort !== undefined && { udpPort }), ...(own.dscp !== undefined && { dscp: own.dscp }) },
    pathMtu: own.pathMtu,
    destQpn: qpn,
    rqPsn: remote.psn,
    ...(sourcePort !== undefined && { remoteSourcePort: sourcePort }),
    ...toRtr,
    ...(own.rateControl !== undefined && { rateControl: own.rateControl }),
  });
  await qp.modify({ state: 'RTS', sqPsn: own.psn, ...toRts });
  return {};
}
