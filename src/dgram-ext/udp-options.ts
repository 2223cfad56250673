import { checkKind, checkObject, checkWhole, ifGiven } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import { IpAddress } from '../packet/address.js';

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
  /** Datagrams per batch, at most 1024. */
  readonly batchSlots?: number | undefined;
  /** Batches in use at the same time, at most 1024. The default depends on the port. */
  readonly batches?: number | undefined;
}

const BUFFER_BYTES_MAX = 2 ** 31 - 1;
const BATCH_SLOTS_MAX = 1024;

export function checkUdpOptions(options: UdpSocketOptions): void {
  checkObject('the options of a UDP port', options, 'an object: address');
  const { address, udpPort, receiveBufferBytes, sendBufferBytes, batchSlots, batches } = options;
  checkKind('address', address, address instanceof IpAddress, "an IpAddress: IpAddress.parse('127.0.0.1')");
  checkPortAddress(address);
  ifGiven(udpPort, (value) => checkWhole('udpPort', value, 0, 65_535));
  ifGiven(receiveBufferBytes, (value) => checkWhole('receiveBufferBytes', value, 1, BUFFER_BYTES_MAX));
  ifGiven(sendBufferBytes, (value) => checkWhole('sendBufferBytes', value, 1, BUFFER_BYTES_MAX));
  ifGiven(batchSlots, (value) => checkWhole('batchSlots', value, 1, BATCH_SLOTS_MAX));
  ifGiven(batches, (value) => checkWhole('batches', value, 1, BATCH_SLOTS_MAX));
}

function checkPortAddress(address: IpAddress): void {
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
  checkWhole('receiveBufferBytes', receiveBufferBytes, 0, Number.MAX_SAFE_INTEGER);
  return Math.floor((receiveBufferBytes * BUDGET_SHARE) / DATAGRAM_TRUESIZE_BYTES);
}
