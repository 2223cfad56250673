import { RoceError } from '../core/errors.js';
import type { IpAddress } from '../packet/address.js';

/** Options of all UDP ports. */
export interface UdpSocketOptions {
  /** A local address; not the wildcard, because the ICRC covers the address packets are sent to. */
  readonly address: IpAddress;
  /** UDP port. Default 4791. With 0 the system chooses; `udpPort` of the open port gives it. */
  readonly udpPort?: number | undefined;
  /** Default 4 MiB; the system may grant less. */
  readonly receiveBufferBytes?: number | undefined;
  /** Default 4 MiB; the system may grant less. */
  readonly sendBufferBytes?: number | undefined;
  /** Datagrams per batch. */
  readonly batchSlots?: number | undefined;
  /** Batches in use at the same time. The default depends on the port. */
  readonly batches?: number | undefined;
}

export function checkPortAddress(address: IpAddress): void {
  if (address.bytes.some((byte) => byte !== 0)) return;
  throw new RoceError(
    'ERR_ROCE_INVALID_ARGUMENT',
    `a RoCE port cannot be bound to the wildcard address ${address.text}`,
    'the ICRC covers the IP addresses: name the address to which peers send',
  );
}

/**
 * What the kernel charges a socket's receive buffer for one datagram of 4 KiB payload: 4124 bytes cost 8456, because
 * the data lie in an 8 KiB allocation (measured on Linux 6.18: 992 of them fill the 8 MiB that a 4 MiB buffer really
 * grants).
 */
const DATAGRAM_TRUESIZE_BYTES = 8456;
/** Senders do not stop at the byte, and ACKs share the buffer: plan with half of what fits. */
const BUDGET_SHARE = 0.5;

/**
 * 4 KiB-class datagrams that may be in flight towards a socket with `receiveBufferBytes` as the kernel reports them.
 */
export function receiveBudgetOf(receiveBufferBytes: number): number {
  return Math.floor((receiveBufferBytes * BUDGET_SHARE) / DATAGRAM_TRUESIZE_BYTES);
}
