/**
 * IP addresses as the engine holds them: parsed once, then compared by identity or by bytes. A GID on RoCEv2 is the
 * IPv6 address, or the IPv4 address mapped to `::ffff:a.b.c.d` (annex A17.4.5.2).
 */

import { checkKind, shown } from '../core/arguments.js';
import { equalBytes, toHex } from '../core/bytes.js';
import { RoceError } from '../core/errors.js';

const NETWORK_HEX_DIGITS = 16;

/** An immutable IPv4 or IPv6 address. Make it by {@link IpAddress.parse} or {@link IpAddress.fromBytes}. */
export class IpAddress {
  /** 4 or 6. It is 4 also if the text was `::ffff:a.b.c.d`. */
  readonly family: 4 | 6;
  /** 4 or 16 bytes in network order. */
  readonly bytes: Uint8Array;
  /** 16 bytes in network order. */
  readonly gid: Uint8Array;
  /** Text form: `127.0.0.1`, `fd77::1`. */
  readonly text: string;

  private constructor(family: 4 | 6, bytes: Uint8Array, text: string) {
    this.family = family;
    this.bytes = bytes;
    this.text = text;
    if (family === 6) this.gid = bytes;
    else {
      this.gid = new Uint8Array(16);
      this.gid[10] = 0xff;
      this.gid[11] = 0xff;
      this.gid.set(bytes, 12);
    }
  }

  /**
   * Accepts dotted IPv4, IPv6 in any RFC 4291 form, and v4-mapped IPv6, which becomes IPv4. Throws ERR_ROCE_MALFORMED.
   */
  static parse(text: string): IpAddress {
    const bytes = typeof text !== 'string' ? undefined : text.includes(':') ? parseIpv6(text) : parseIpv4(text);
    if (bytes === undefined) {
      throw new RoceError(
        'ERR_ROCE_MALFORMED',
        `${shown(text)} is not an IP address`,
        'give a literal address such as 127.0.0.1 or ::1',
      );
    }
    return IpAddress.fromBytes(bytes);
  }

  /** From 4 or 16 bytes in network order (copied). */
  static fromBytes(bytes: Uint8Array): IpAddress {
    checkKind('the address', bytes, bytes instanceof Uint8Array, '4 or 16 bytes');
    if (bytes.length === 16 && isMapped(bytes)) return IpAddress.fromBytes(bytes.subarray(12));
    const copy = Uint8Array.from(bytes);
    if (copy.length === 4) return new IpAddress(4, copy, copy.join('.'));
    if (copy.length === 16) return new IpAddress(6, copy, formatIpv6(copy));
    throw new RoceError('ERR_ROCE_MALFORMED', `an IP address has 4 or 16 bytes, not ${bytes.length}`);
  }

  /** Whether both are the same address. */
  equals(other: IpAddress): boolean {
    return this === other || equalBytes(this.bytes, other.bytes);
  }

  /**
   * Whether a single host can have the address: not the unspecified address, multicast, or IPv4's 255.255.255.255 and
   * reserved 240/4.
   */
  get isUnicast(): boolean {
    const { family, bytes } = this;
    return family === 4 ? bytes[0] !== 0 && bytes[0] < 224 : bytes[0] !== 0xff && bytes.some((byte) => byte !== 0);
  }

  /** The GID as 32 hex digits, the form of the pingpong exchange. */
  get gidHex(): string {
    return toHex(this.gid);
  }

  /**
   * The key by which limits count an address. For IPv6 it is the network of 64 bits, because one host may have all of
   * its addresses.
   */
  get network(): string {
    return this.family === 4 ? this.text : this.gidHex.slice(0, NETWORK_HEX_DIGITS);
  }

  /** The same as `text`. */
  toString(): string {
    return this.text;
  }
}

function isMapped(gid: Uint8Array): boolean {
  for (let i = 0; i < 10; i++) if (gid[i] !== 0) return false;
  return gid[10] === 0xff && gid[11] === 0xff;
}

function parseIpv4(text: string): Uint8Array | undefined {
  const parts = text.split('.');
  if (parts.length !== 4 || parts.some((part) => !/^(0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255))
    return undefined;
  return Uint8Array.from(parts, Number);
}

function parseIpv6(text: string): Uint8Array | undefined {
  // A dotted tail (`::ffff:1.2.3.4`) replaces the last two groups.
  let groupsText = text;
  const tailStart = text.lastIndexOf(':') + 1;
  if (text.includes('.')) {
    const tail = parseIpv4(text.slice(tailStart));
    if (tail === undefined) return undefined;
    const group = (i: number) => ((tail[i] << 8) | tail[i + 1]).toString(16);
    groupsText = `${text.slice(0, tailStart)}${group(0)}:${group(2)}`;
  }
  const halves = groupsText.split('::');
  if (halves.length > 2) return undefined;
  const split = (half: string) => (half === '' ? [] : half.split(':'));
  const head = split(halves[0]);
  const tail = halves.length === 2 ? split(halves[1]) : [];
  const missing = 8 - head.length - tail.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  const groups = [...head, ...Array<string>(missing).fill('0'), ...tail];
  if (groups.some((group) => !/^[0-9a-fA-F]{1,4}$/.test(group))) return undefined;
  const bytes = new Uint8Array(16);
  groups.forEach((group, i) => {
    const value = Number.parseInt(group, 16);
    bytes[2 * i] = value >> 8;
    bytes[2 * i + 1] = value & 0xff;
  });
  return bytes;
}

/** RFC 5952: lower case, the longest run of two or more zero groups shortened. */
function formatIpv6(bytes: Uint8Array): string {
  const groups = Array.from({ length: 8 }, (_, i) => (bytes[2 * i] << 8) | bytes[2 * i + 1]);
  let bestStart = -1;
  let bestLength = 1;
  for (let start = 0; start < 8; start++) {
    let length = 0;
    while (start + length < 8 && groups[start + length] === 0) length++;
    if (length > bestLength) {
      bestStart = start;
      bestLength = length;
    }
  }
  const hex = groups.map((group) => group.toString(16));
  if (bestStart < 0) return hex.join(':');
  return `${hex.slice(0, bestStart).join(':')}::${hex.slice(bestStart + bestLength).join(':')}`;
}
