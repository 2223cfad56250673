/** The discovery log page (NVMe base specification 2.0, figures 264 and 265). */

import type { IpAddress } from 'rocev2/internal/packet';
import type { NvmeTransport } from './target-connection.js';

/** An address at which a target listens. */
export interface NvmePort {
  /** Transport of connections to it. */
  readonly transport: NvmeTransport;
  /** IP address that hosts connect to. */
  readonly address: IpAddress;
  /** Port of RDMA_PS_TCP, or of TCP. */
  readonly port: number;
  /** Hosts have to use TLS. Absent: they cannot. */
  readonly security?: 'tls' | undefined;
}

export interface DiscoveryEntry extends NvmePort {
  /** Port ID, from 1 on. */
  readonly portId: number;
  readonly nqn: string;
}

const HEADER_BYTES = 1024;
const ENTRY_BYTES = 1024;
const TRANSPORT_TYPES = { rdma: 1, tcp: 3 } as const;
const ADMIN_QUEUE_ENTRIES = 32;
const SUBTYPE_NVM = 2;
const CONTROLLER_DYNAMIC = 0xffff;
const SECURE_CHANNEL_REQUIRED = 1;
const SECURITY_TLS_1_3 = 2;
const RDMA_ADDRESS_SUBTYPE = [1, 4, 1];

export function discoveryLog(entries: readonly DiscoveryEntry[], generation: number): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES + entries.length * ENTRY_BYTES);
  bytes.writeBigUInt64LE(BigInt(generation), 0);
  bytes.writeBigUInt64LE(BigInt(entries.length), 8);
  entries.forEach(({ transport, address, port, portId, nqn, security }, i) => {
    const entry = bytes.subarray(HEADER_BYTES + i * ENTRY_BYTES, HEADER_BYTES + (i + 1) * ENTRY_BYTES);
    entry[0] = TRANSPORT_TYPES[transport];
    entry[1] = address.family === 4 ? 1 : 2;
    entry[2] = SUBTYPE_NVM;
    entry.writeUInt16LE(portId, 4);
    entry.writeUInt16LE(CONTROLLER_DYNAMIC, 6);
    entry.writeUInt16LE(ADMIN_QUEUE_ENTRIES, 8);
    entry.write(`${port}`.padEnd(32), 32, 'latin1');
    entry.write(nqn, 256, 'utf8');
    entry.write(address.text.padEnd(256), 512, 'latin1');
    if (transport === 'rdma') entry.set(RDMA_ADDRESS_SUBTYPE, 768);
    if (security === 'tls') {
      entry[3] = SECURE_CHANNEL_REQUIRED;
      entry[768] = SECURITY_TLS_1_3;
    }
  });
  return bytes;
}

/** An entry as a host reads it: numbers that are not known stay numbers. */
export interface DiscoveredSubsystem {
  /** The name to connect with. */
  readonly nqn: string;
  /** `rdma`, `tcp`, or the number of another transport. */
  readonly transport: NvmeTransport | `type ${number}`;
  /** Address as text. */
  readonly address: string;
  /** Port as text. */
  readonly service: string;
  /** What is there: referral, NVM subsystem, the discovery subsystem itself. */
  readonly subtype: 'referral' | 'nvm' | 'discovery';
}

const SUBTYPES = ['referral', 'nvm', 'discovery'] as const;

export function discoveryLogBytes(entries: number): number {
  return HEADER_BYTES + entries * ENTRY_BYTES;
}

export function readDiscoveryHeader(page: Buffer): { readonly generation: bigint; readonly entries: number } {
  return { generation: page.readBigUInt64LE(0), entries: Number(page.readBigUInt64LE(8)) };
}

export function readDiscoveryLog(page: Buffer): DiscoveredSubsystem[] {
  const count = Math.min(readDiscoveryHeader(page).entries, Math.floor((page.length - HEADER_BYTES) / ENTRY_BYTES));
  return Array.from({ length: count }, (_, i) => {
    const entry = page.subarray(HEADER_BYTES + i * ENTRY_BYTES, HEADER_BYTES + (i + 1) * ENTRY_BYTES);
    const type = entry[0];
    return {
      nqn: fieldText(entry, 256, 256),
      transport: type === 1 ? 'rdma' : type === 3 ? 'tcp' : `type ${type}`,
      address: fieldText(entry, 512, 256),
      service: fieldText(entry, 32, 32),
      subtype: SUBTYPES[entry[2] - 1] ?? 'nvm',
    };
  });
}

export function fieldText(bytes: Buffer, at: number, length: number): string {
  const field = bytes.subarray(at, at + length);
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end < 0 ? length : end).trimEnd();
}
