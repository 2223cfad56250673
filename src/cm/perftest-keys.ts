/**
 * Over TCP they are a line of hex, over a separate queue pair (`-R`) the C structure with its numbers in network
 * order.
 */

import { RoceError } from '../core/errors.js';
import { IpAddress } from '../packet/address.js';

/**
 * LID : outstanding READs : QPN : PSN : rkey : address : 16 bytes of GID : SRQ number, in hex, each with a colon, and a
 * zero byte.
 */
const KEYS =
  /^[0-9a-f]{4}:([0-9a-f]{4}):([0-9a-f]{6}):([0-9a-f]{6}):([0-9a-f]{8}):([0-9a-f]{16}):((?:[0-9a-f]{2}:){16})([0-9a-f]{8}):\0$/i;

export interface PerftestKeys {
  readonly outstandingReads: number;
  /** 24 bits. */
  readonly qpn: number;
  readonly psn: number;
  /** Of its buffer, 32 bits. */
  readonly rkey: number;
  readonly remoteAddr: bigint;
  readonly address: IpAddress;
}

function encodeKeys(keys: PerftestKeys): Uint8Array {
  const hex = (value: number | bigint, digits: number) => value.toString(16).padStart(digits, '0');
  const fields = [
    hex(0, 4),
    hex(keys.outstandingReads, 4),
    hex(keys.qpn, 6),
    hex(keys.psn, 6),
    hex(keys.rkey, 8),
    hex(keys.remoteAddr, 16),
    ...Array.from(keys.address.gid, (byte) => hex(byte, 2)),
    hex(0, 8),
  ];
  return Buffer.from(`${fields.join(':')}:\0`);
}

function parseKeys(line: Uint8Array): PerftestKeys {
  const match = KEYS.exec(Buffer.from(line).toString('latin1'));
  if (match === null) {
    throw new RoceError(
      'ERR_ROCE_MISMATCH',
      'the peer does not speak the exchange of perftest',
      'is it built with data validation, or not on RoCE?',
    );
  }
  const number = (group: number) => Number.parseInt(match[group], 16);
  return {
    outstandingReads: number(1),
    qpn: number(2),
    psn: number(3),
    rkey: number(4),
    remoteAddr: BigInt(`0x${match[5]}`),
    address: IpAddress.fromBytes(Buffer.from(match[6].replaceAll(':', ''), 'hex')),
  };
}

export interface KeyFormat {
  encode(keys: PerftestKeys): Uint8Array;
  parse(message: Uint8Array): PerftestKeys;
  /** Keys that tell nothing: both sides exchange them before they have queue pairs. */
  readonly blank: Uint8Array;
}

export const TEXT_KEYS: KeyFormat = {
  encode: encodeKeys,
  parse: parseKeys,
  blank: encodeKeys({
    outstandingReads: 0,
    qpn: 0,
    psn: 0,
    rkey: 0,
    remoteAddr: 0n,
    address: IpAddress.fromBytes(new Uint8Array(16)),
  }),
};

const STRUCT_BYTES = 56;

/**
 * `struct pingpong_dest` on a 64-bit machine: lid, out_reads, qpn, psn, rkey, 4 of padding, vaddr, gid, srqn,
 * gid_index.
 */
export const BINARY_KEYS: KeyFormat = {
  encode: (keys) => {
    const message = Buffer.alloc(STRUCT_BYTES);
    message.writeUInt32BE(keys.outstandingReads, 4);
    message.writeUInt32BE(keys.qpn, 8);
    message.writeUInt32BE(keys.psn, 12);
    message.writeUInt32BE(keys.rkey, 16);
    message.writeBigUInt64BE(keys.remoteAddr, 24);
    message.set(keys.address.gid, 32);
    return message;
  },
  parse: (bytes) => {
    const message = Buffer.from(bytes);
    return {
      outstandingReads: message.readUInt32BE(4),
      qpn: message.readUInt32BE(8),
      psn: message.readUInt32BE(12),
      rkey: message.readUInt32BE(16),
      remoteAddr: message.readBigUInt64BE(24),
      address: IpAddress.fromBytes(message.subarray(32, 48)),
    };
  },
  blank: new Uint8Array(STRUCT_BYTES),
};
