/**
 * Data structures of the Identify command, 4096 bytes each (NVMe base specification 2.0 §5.17.2, NVM command set 1.0
 * §4.1.5).
 */

import { ANA_CAPABILITIES, ANA_GROUP, ANA_TRANSITION_SECONDS } from './ana.js';
import { ASYNC_EVENTS_MAX } from './async-events.js';
import { type Namespace, NSID_MAX } from './namespace.js';
import { NVME_VERSION, QUEUE_ENTRIES_MAX } from './properties.js';

export const IDENTIFY_BYTES = 4096;
export const IN_CAPSULE_BYTES = 8192;
export const KEEP_ALIVE_UNIT_MS = 1000;

/** A store in software has no temperature; these limits are those of common SSDs. */
export const WARNING_KELVIN = 343;
const CRITICAL_KELVIN = 353;
/** FRMW: one firmware slot, which is read-only. */
const FRMW = 0x03;

const MODEL = 'rocev2';
/** MDTS: 2^8 pages of 4 KiB. */
const MDTS = 8;
/** CMIC: several ports, several controllers, ANA. */
const CMIC = 0x0b;
/** OAES: namespace attribute and ANA change notices; for discovery, discovery log change notices. */
const OAES_IO = 0x900;
const OAES_DISCOVERY = 0x8000_0000;
/** Host identifiers of 128 bits; every command counts as a sign of life. */
const CTRATT = 0x41;
/** LPA: effects log, and offsets in Get Log Page. */
const LPA = 0x06;
/** ONCS: Compare, Dataset Management, Write Zeroes, Reservations, Verify. */
const ONCS = 0xad;
/** RESCAP: all six types, and IEKEY as version 1.3 has it. */
const RESCAP = 0xfe;
/** RESCAP: registrations and reservation may outlive a power loss. */
const RESCAP_PERSISTS = 0x01;
const SGLS = 0x0010_0005;

export interface ControllerFacts {
  readonly nqn: string;
  readonly serial: string;
  readonly firmware: string;
  readonly id: number;
  readonly kind: 'io' | 'discovery';
}

export function identifyController({ nqn, serial, firmware, id, kind }: ControllerFacts): Buffer {
  const isDiscovery = kind === 'discovery';
  const bytes = Buffer.alloc(IDENTIFY_BYTES);
  bytes.write(serial.padEnd(20).slice(0, 20), 4, 'latin1');
  bytes.write(MODEL.padEnd(40), 24, 'latin1');
  bytes.write(firmware.padEnd(8).slice(0, 8), 64, 'latin1');
  bytes[76] = isDiscovery ? 0 : CMIC;
  bytes[77] = MDTS;
  bytes.writeUInt16LE(id, 78);
  bytes.writeUInt32LE(NVME_VERSION, 80);
  bytes.writeUInt32LE(isDiscovery ? OAES_DISCOVERY : OAES_IO, 92);
  bytes.writeUInt32LE(CTRATT, 96);
  bytes[111] = isDiscovery ? 2 : 1;
  bytes[258] = 3; // ACL: aborts at a time, one less.
  bytes[259] = ASYNC_EVENTS_MAX - 1;
  bytes[260] = FRMW;
  bytes[261] = LPA;
  bytes.writeUInt16LE(KEEP_ALIVE_UNIT_MS / 100, 320);
  bytes.writeUInt16LE(QUEUE_ENTRIES_MAX, 514);
  bytes.writeUInt32LE(SGLS, 536);
  bytes.write(nqn, 768, 'utf8');
  if (!isDiscovery) {
    bytes.writeUInt16LE(WARNING_KELVIN, 266); // WCTEMP.
    bytes.writeUInt16LE(CRITICAL_KELVIN, 268); // CCTEMP.
    bytes[342] = ANA_TRANSITION_SECONDS;
    bytes[343] = ANA_CAPABILITIES;
    bytes.writeUInt32LE(ANA_GROUP, 344); // ANAGRPMAX.
    bytes.writeUInt32LE(1, 348); // NANAGRPID.
    bytes[512] = 0x66;
    bytes[513] = 0x44;
    bytes.writeUInt32LE(NSID_MAX, 516); // Not the present number: hosts size log pages by it.
    bytes.writeUInt32LE(NSID_MAX, 540);
    bytes.writeUInt16LE(ONCS, 520);
    bytes[525] = 1; // VWC: a write cache, which Flush empties.
  }
  bytes.writeUInt32LE((64 + (isDiscovery ? 0 : IN_CAPSULE_BYTES)) / 16, 1792);
  bytes.writeUInt32LE(1, 1796);
  bytes[1803] = 1; // MSDBD: one descriptor.
  return bytes;
}

export function identifyNamespace(ns: Namespace | undefined): Buffer {
  const bytes = Buffer.alloc(IDENTIFY_BYTES);
  if (ns === undefined) return bytes;
  const blocks = BigInt(ns.blocks);
  bytes.writeBigUInt64LE(blocks, 0);
  bytes.writeBigUInt64LE(blocks, 8);
  bytes.writeBigUInt64LE(blocks, 16);
  bytes[24] = 0x10;
  bytes[30] = 1;
  bytes[31] = rescap(ns);
  bytes[33] = 1 | (1 << 3); // Deallocated blocks read as zeros; Write Zeroes may deallocate.
  const preferred = 4096 / 2 ** ns.lbaShift - 1;
  bytes.writeUInt16LE(preferred, 64); // NPWG and NPWA: the store keeps checksums of 4 KiB.
  bytes.writeUInt16LE(preferred, 66);
  bytes.writeUInt16LE(preferred, 68);
  bytes.writeUInt16LE(preferred, 70);
  bytes.writeUInt32LE(ANA_GROUP, 92);
  bytes[99] = ns.readOnly ? 1 : 0;
  bytes.set(ns.uuid, 104);
  bytes[130] = ns.lbaShift;
  return bytes;
}

export function activeNamespaces(namespaces: readonly Namespace[], after: number): Buffer {
  const bytes = Buffer.alloc(IDENTIFY_BYTES);
  const ids = namespaces.map(({ nsid }) => nsid).filter((nsid) => nsid > after);
  ids
    .sort((a, b) => a - b)
    .slice(0, IDENTIFY_BYTES / 4)
    .forEach((nsid, i) => {
      bytes.writeUInt32LE(nsid, 4 * i);
    });
  return bytes;
}

export function namespaceDescriptors({ uuid }: Namespace): Buffer {
  const bytes = Buffer.alloc(IDENTIFY_BYTES);
  let at = 0;
  for (const [type, id] of [
    [2, uuid],
    [3, uuid],
    [4, Uint8Array.of(0)],
  ] as const) {
    bytes[at] = type;
    bytes[at + 1] = id.length;
    bytes.set(id, at + 4);
    at += 4 + id.length;
  }
  return bytes;
}

export function identifyIndependent(ns: Namespace): Buffer {
  const bytes = Buffer.alloc(IDENTIFY_BYTES);
  bytes[1] = 1;
  bytes[2] = rescap(ns);
  bytes.writeUInt32LE(ANA_GROUP, 4);
  bytes[8] = ns.readOnly ? 1 : 0;
  bytes[14] = 1; // NSTAT: ready.
  return bytes;
}

function rescap({ reservations }: Namespace): number {
  return reservations.canPersist ? RESCAP | RESCAP_PERSISTS : RESCAP;
}
