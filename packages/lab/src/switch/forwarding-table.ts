/**
 * Fixed routes: by destination MAC address, or by the longest matching prefix of the destination IP address, to a group
 * of ports. Frames of one flow always take the same port of a group (ECMP, RFC 2992 by modulo).
 */

import { RoceError, readU32 } from 'rocev2/internal/core';
import { IPV6_DESTINATION_OFFSET, IpAddress, parseMac } from 'rocev2/internal/packet';
import { flowHash } from './frame-classifier.js';
import { macNumber } from './mac-table.js';
import type { RouteConfig } from './switch-config.js';

type PortGroup = Uint16Array;

const IPV4_DESTINATION_OFFSET = 16;
const WORD_BITS = 32;

interface Prefix {
  readonly family: number;
  readonly bits: number;
  readonly words: Uint32Array;
  readonly masks: Uint32Array;
  readonly group: PortGroup;
}

export class ForwardingTable {
  readonly #byMac = new Map<number, PortGroup>();
  readonly #byHost = new Map<number, PortGroup>();
  readonly #prefixes: readonly Prefix[];
  readonly #hashSeed: number;

  constructor(routes: readonly RouteConfig[], portNames: readonly string[], hashSeed: number) {
    const prefixes: Prefix[] = [];
    for (const { to, ports } of routes) {
      const group = groupOf(to, ports, portNames);
      if (/^[0-9a-f]{2}([:-][0-9a-f]{2}){5}$/i.test(to)) this.#byMac.set(macNumber(parseMac(to), 0), group);
      else {
        const prefix = parsePrefix(to, group);
        if (prefix.family === 4 && prefix.bits === WORD_BITS) this.#byHost.set(prefix.words[0], group);
        else prefixes.push(prefix);
      }
    }
    this.#prefixes = prefixes.sort((a, b) => b.bits - a.bits);
    this.#hashSeed = hashSeed;
  }

  lookup(bytes: Uint8Array, offset: number, length: number, ip: number): number {
    const byMac = this.#byMac.size === 0 ? undefined : this.#byMac.get(macNumber(bytes, offset));
    const group = byMac ?? (ip === 0 ? undefined : this.#match(bytes, offset + ip));
    if (group === undefined) return -1;
    return group.length === 1 ? group[0] : group[flowHash(bytes, offset, length, ip, this.#hashSeed) % group.length];
  }

  #match(bytes: Uint8Array, at: number): PortGroup | undefined {
    const family = bytes[at] >> 4;
    const destination = at + (family === 4 ? IPV4_DESTINATION_OFFSET : IPV6_DESTINATION_OFFSET);
    const host = family === 4 ? this.#byHost.get(readU32(bytes, destination)) : undefined;
    if (host !== undefined) return host;
    for (let i = 0; i < this.#prefixes.length; i++) {
      const prefix = this.#prefixes[i];
      if (prefix.family === family && matches(prefix, bytes, destination)) return prefix.group;
    }
    return undefined;
  }
}

function matches({ words, masks }: Prefix, bytes: Uint8Array, destination: number): boolean {
  for (let i = 0; i < words.length; i++) {
    if (((readU32(bytes, destination + 4 * i) ^ words[i]) & masks[i]) !== 0) return false;
  }
  return true;
}

function groupOf(to: string, ports: readonly string[], portNames: readonly string[]): PortGroup {
  const group = Uint16Array.from(ports, (name) => {
    const port = portNames.indexOf(name);
    if (port < 0) {
      throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `the route to ${to} names port '${name}'`, 'there is no such port');
    }
    return port;
  });
  if (group.length === 0) throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', `the route to ${to} has no port`);
  return group;
}

function parsePrefix(text: string, group: PortGroup): Prefix {
  const [addressText, bitsText] = text.split('/');
  const address = IpAddress.parse(addressText);
  const addressBits = address.bytes.length * 8;
  const bits = bitsText === undefined ? addressBits : Number(bitsText);
  if (!/^[^/]+(\/\d+)?$/.test(text) || bits > addressBits) {
    throw new RoceError(
      'ERR_ROCE_MALFORMED',
      `'${text}' is not a destination`,
      'write a MAC address, an IP address, or a prefix such as 10.1.0.0/16',
    );
  }
  const words = addressBits / WORD_BITS;
  return {
    family: address.family,
    bits,
    words: Uint32Array.from({ length: words }, (_, i) => readU32(address.bytes, 4 * i)),
    masks: Uint32Array.from({ length: words }, (_, i) => wordMask(bits - i * WORD_BITS)),
    group,
  };
}

/** The first `bits` of a word, none if negative. */
function wordMask(bits: number): number {
  if (bits <= 0) return 0;
  return bits >= WORD_BITS ? 0xffffffff : (0xffffffff << (WORD_BITS - bits)) >>> 0;
}
