/**
 * The messages of the connection exchange, checked as they come: a hello, or a refusal. What a peer sends may be anything; each field is refused by
 * its name, with what it must be.
 */

import { IpAddress } from '../packet/address.js';
import { PATH_MTUS } from '../packet/path-mtu.js';
import { PSN_MASK } from '../packet/psn.js';
import { printable } from './printable.js';

/** Version of the exchange; a hello says it. */
export const EXCHANGE_VERSION = 1;
/** Budgets are small numbers; a port without limit says this. */
export const BUDGET_MAX = 0x7fffffff;
const SPI_MAX = 0x7fff_ffff;
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
  /** Bytes. */
  readonly length: number;
}

/** What a peer tells of its queue pair. */
export interface Hello {
  /** Type of its queue pair; RC where it does not say. */
  readonly transport: (typeof TRANSPORTS)[number];
  /** Its IP address: unicast. */
  readonly gid: IpAddress;
  /** UDP port that it receives on. */
  readonly udpPort: number;
  /** UDP source port of what it sends; `flow`: it follows from both QPNs. Undefined for older peers: learned. */
  readonly sourcePort: number | 'flow' | undefined;
  /** Queue pair number, 2..0xfffffe. */
  readonly qpn: number;
  /** Start PSN of its requests, 24 bits. */
  readonly psn: number;
  /** Largest path MTU that it wants, bytes. */
  readonly mtu: number;
  /** Name of its recovery scheme. */
  readonly recovery: string;
  /** Those parameters of the scheme that both sides need to be the same; none where it has none. */
  readonly recoveryParameters: Readonly<Record<string, number>>;
  /** The SPI of protected packets that it receives, 31 bits; undefined where packets are plain. */
  readonly spi: number | undefined;
  /** What it wants packets encrypted with; of both ends, the stronger one is used. */
  readonly cipher: (typeof CIPHERS)[number];
  /** Packets of 4 KiB that its receive buffer holds, 2..2^31 - 1. */
  readonly receiveBudgetPackets: number;
  /** Names, in 32 hexadecimal digits, the processes that its port can share memory with: those that have the same. Undefined: none. */
  readonly memoryDomain: string | undefined;
  /** It echoes in-band telemetry (packet/int-trailer.ts). */
  readonly echoes: boolean;
  /** READs and atomics that it serves at a time, 0..128. */
  readonly maxDestRdAtomic: number;
  /** Memory that it opens. */
  readonly region: RemoteRegion | undefined;
  /** Longest message that it has receives for; undefined where tools agree on it otherwise. */
  readonly messageBytesMax: number | undefined;
  /** What the tool on the other end wants, for tools to read and check. */
  readonly purpose: Record<string, unknown>;
}

/** The answer of a server that does not want this client. */
export interface PeerRefusal {
  /** Why, for people: the peer's words. */
  readonly refused: string;
  /** Nothing is wrong with this peer: it may come again. */
  readonly busy: boolean;
}

/** The message as a refusal, or undefined for any other message. */
export function parseRefusal(message: unknown): PeerRefusal | undefined {
  if (!isRecord(message)) return undefined;
  const { refused, busy = false } = message;
  return typeof refused === 'string' && typeof busy === 'boolean' ? { refused, busy } : undefined;
}

/** The message as a hello, or a text that says which field is wrong and what it must be. */
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
