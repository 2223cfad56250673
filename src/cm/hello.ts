/** All input from the peer is checked; an error names the field and its valid values. */

import { IpAddress } from '../packet/address.js';
import { PATH_MTUS } from '../packet/path-mtu.js';
import { PSN_MASK } from '../packet/psn.js';
import type { MappingOffer } from '../verbs/memory-grants.js';
import { printable } from './printable.js';

export const EXCHANGE_VERSION = 1;
/** Budgets are small numbers; a port without limit announces this. */
export const BUDGET_MAX = 0x7fffffff;
const SPI_MAX = 0x7fff_ffff;
const PID_MAX = 0x7fff_ffff;
const RKEY_MAX = 0xffff_ffff;
/** Longest message of a queue pair (IBTA vol. 1 §9.4.3). */
const MESSAGE_BYTES_MAX = 2 ** 31;
/** Weakest first. */
const CIPHERS = ['aes-128-gcm', 'aes-256-gcm'] as const;
const TRANSPORTS = ['RC', 'UC', 'UD'] as const;

/** Memory offered to the peer. */
export interface RemoteRegion {
  /** Virtual address of the first byte. */
  readonly addr: bigint;
  /** Remote key, 32 bits. */
  readonly rkey: number;
  /** Length in bytes. */
  readonly length: number;
}

export interface Hello {
  readonly transport: (typeof TRANSPORTS)[number];
  readonly gid: IpAddress;
  readonly udpPort: number;
  /** UDP source port of its packets; `flow`: it follows from both QPNs. Undefined for older peers: learned. */
  readonly sourcePort: number | 'flow' | undefined;
  /** Queue pair number, 2..0xfffffe. */
  readonly qpn: number;
  /** Start PSN of its requests, 24 bits. */
  readonly psn: number;
  /** Largest path MTU that it supports, bytes. */
  readonly mtu: number;
  readonly recovery: string;
  readonly recoveryParameters: Readonly<Record<string, number>>;
  /** The SPI of protected packets that it receives, 31 bits; undefined where packets are plain. */
  readonly spi: number | undefined;
  readonly cipher: (typeof CIPHERS)[number];
  readonly receiveBudgetPackets: number;
  readonly memoryDomain: string | undefined;
  /** Where the regions are that it lets a peer of its memory domain map. */
  readonly mapping: MappingOffer | undefined;
  readonly echoes: boolean;
  /** READs and atomics that it serves at a time, 0..128. */
  readonly maxDestRdAtomic: number;
  readonly region: RemoteRegion | undefined;
  readonly messageBytesMax: number | undefined;
  readonly purpose: Record<string, unknown>;
}

export interface PeerRefusal {
  readonly refused: string;
  readonly busy: boolean;
}

export function parseRefusal(message: unknown): PeerRefusal | undefined {
  if (!isRecord(message)) return undefined;
  const { refused, busy = false } = message;
  return typeof refused === 'string' && typeof busy === 'boolean' ? { refused, busy } : undefined;
}

export function parseHello(message: unknown): Hello | string {
  try {
    return helloFrom(fieldsOf(message, 'message'));
  } catch (error) {
    if (error instanceof FieldError) return printable(error.message);
    throw error;
  }
}

function helloFrom(fields: Record<string, unknown>): Hello {
  whole('rocev2', fields['rocev2'], EXCHANGE_VERSION, EXCHANGE_VERSION);
  const { transport = 'RC', recoveryParameters = {}, sourcePort, region, messageBytesMax, memoryDomain, spi } = fields;
  const { mapping } = fields;
  const { cipher = CIPHERS[0] } = fields;
  return {
    transport: oneOf('transport', transport, TRANSPORTS),
    gid: gidOf(fields['gid']),
    udpPort: whole('udpPort', fields['udpPort'], 1, 65535),
    sourcePort:
      sourcePort === undefined || sourcePort === 'flow' ? sourcePort : whole('sourcePort', sourcePort, 0, 65535),
    qpn: whole('qpn', fields['qpn'], 2, 0xfffffe),
    psn: whole('psn', fields['psn'], 0, PSN_MASK),
    mtu: oneOf('mtu', fields['mtu'], PATH_MTUS),
    recovery: text('recovery', fields['recovery']),
    recoveryParameters: numbersOf('recoveryParameters', recoveryParameters),
    spi: spi === undefined ? undefined : whole('spi', spi, 1, SPI_MAX),
    cipher: oneOf('cipher', cipher, CIPHERS),
    receiveBudgetPackets: whole('receiveBudgetPackets', fields['receiveBudgetPackets'], 2, BUDGET_MAX),
    memoryDomain: memoryDomain === undefined ? undefined : digits32('memoryDomain', memoryDomain),
    mapping: mapping === undefined ? undefined : mappingOf(mapping),
    echoes: fields['echoes'] === true,
    maxDestRdAtomic: whole('maxDestRdAtomic', fields['maxDestRdAtomic'], 0, 128),
    region: region === undefined ? undefined : regionOf(region),
    messageBytesMax:
      messageBytesMax === undefined ? undefined : whole('messageBytesMax', messageBytesMax, 0, MESSAGE_BYTES_MAX),
    purpose: fieldsOf(fields['purpose'], 'purpose'),
  };
}

function gidOf(value: unknown): IpAddress {
  const hex = digits32('gid', value);
  const address = IpAddress.fromBytes(Buffer.from(hex, 'hex'));
  if (!address.isUnicast) throw new FieldError('gid', 'the address of a host');
  return address;
}

function regionOf(value: unknown): RemoteRegion {
  const { addr, rkey, length } = fieldsOf(value, 'region');
  return {
    addr: BigInt(hexDigits('region.addr', addr, /^0x[0-9a-f]{1,16}$/, '0x and up to 16 hexadecimal digits')),
    rkey: whole('region.rkey', rkey, 0, RKEY_MAX),
    length: whole('region.length', length, 0, Number.MAX_SAFE_INTEGER),
  };
}

function mappingOf(value: unknown): MappingOffer {
  const { pid, started, fd, slot, secret } = fieldsOf(value, 'mapping');
  const digits = hexDigits('mapping.secret', secret, /^[0-9a-f]{16}$/, '16 hexadecimal digits');
  return {
    pid: whole('mapping.pid', pid, 1, PID_MAX),
    started: whole('mapping.started', started, 0, Number.MAX_SAFE_INTEGER),
    fd: whole('mapping.fd', fd, 0, PID_MAX),
    slot: whole('mapping.slot', slot, 0, PID_MAX),
    secret: [Number.parseInt(digits.slice(0, 8), 16), Number.parseInt(digits.slice(8), 16)],
  };
}

class FieldError extends Error {
  constructor(name: string, what: string) {
    super(`the peer's ${name} must be ${what}`);
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fieldsOf(value: unknown, name: string): Record<string, unknown> {
  if (!isRecord(value)) throw new FieldError(name, 'an object');
  return value;
}

function whole(name: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw new FieldError(name, min === max ? String(min) : `a whole number from ${min} to ${max}`);
}

function oneOf<T>(name: string, value: unknown, all: readonly T[]): T {
  const place = all.indexOf(value as T);
  if (place < 0) throw new FieldError(name, `one of ${all.join(', ')}`);
  return all[place];
}

function text(name: string, value: unknown): string {
  if (typeof value !== 'string') throw new FieldError(name, 'a text');
  return value;
}

function digits32(name: string, value: unknown): string {
  return hexDigits(name, value, /^[0-9a-f]{32}$/, '32 hexadecimal digits');
}

function hexDigits(name: string, value: unknown, form: RegExp, what: string): string {
  if (typeof value !== 'string' || !form.test(value)) throw new FieldError(name, what);
  return value;
}

function numbersOf(name: string, value: unknown): Record<string, number> {
  const numbers = fieldsOf(value, name);
  for (const [key, number] of Object.entries(numbers)) {
    if (typeof number !== 'number' || !Number.isFinite(number)) throw new FieldError(`${name}.${key}`, 'a number');
  }
  return numbers as Record<string, number>;
}
