/** It works on the first bytes alone and on any bytes: what it does not understand has priority 0 and no IP header. */

import { readU16, readU32 } from 'rocev2/internal/core';
import {
  ETHERNET_BYTES,
  ETHERTYPE_IPV4,
  ETHERTYPE_IPV6,
  ETHERTYPE_VLAN,
  IP_PROTOCOL_UDP,
  IPV4_BYTES,
  IPV6_BYTES,
  IPV6_SOURCE_OFFSET,
  prioritiesOfDscps,
  VLAN_TAG_BYTES,
} from 'rocev2/internal/packet';
import type { ClassificationConfig } from './switch-config.js';

const IP_PROTOCOL_TCP = 6;
const PORTS_BYTES = 4;

/** The priority of each DSCP; of all 0 where only the 802.1Q tag counts. */
export function prioritiesOf({ trust, dscpToPriority }: ClassificationConfig): Uint8Array {
  const priorities = prioritiesOfDscps(dscpToPriority);
  return trust === 'pcp' ? priorities.fill(0) : priorities;
}

export class FrameClassifier {
  priority = 0;
  ipOffset = 0;
  readonly #trustDscp: boolean;
  readonly #priorityOfDscp: Uint8Array;

  constructor(config: ClassificationConfig) {
    this.#trustDscp = config.trust !== 'pcp';
    this.#priorityOfDscp = prioritiesOf(config);
  }

  read(bytes: Uint8Array, offset: number, length: number): void {
    let ethertype = readU16(bytes, offset + 12);
    let ip = ETHERNET_BYTES;
    this.priority = 0;
    this.ipOffset = 0;
    if (ethertype === ETHERTYPE_VLAN && length >= ETHERNET_BYTES + VLAN_TAG_BYTES) {
      this.priority = bytes[offset + ETHERNET_BYTES] >> 5;
      ethertype = readU16(bytes, offset + ETHERNET_BYTES + 2);
      ip += VLAN_TAG_BYTES;
    }
    const at = offset + ip;
    const version = length > ip ? bytes[at] >> 4 : 0;
    if (ethertype === ETHERTYPE_IPV4 && version === 4 && length >= ip + IPV4_BYTES) {
      this.ipOffset = ip;
      if (this.#trustDscp) this.priority = this.#priorityOfDscp[bytes[at + 1] >> 2];
    } else if (ethertype === ETHERTYPE_IPV6 && version === 6 && length >= ip + IPV6_BYTES) {
      this.ipOffset = ip;
      if (this.#trustDscp) this.priority = this.#priorityOfDscp[(readU16(bytes, at) >> 6) & 0x3f];
    }
  }
}

/** RoCEv2 distinguishes flows by the UDP source port. */
export function flowHash(bytes: Uint8Array, offset: number, length: number, ip: number, seed: number): number {
  if (ip === 0) return finish(mixRange(seed, bytes, offset, 12));
  const at = offset + ip;
  const isV4 = bytes[at] >> 4 === 4;
  const addresses = isV4 ? mixRange(seed, bytes, at + 12, 8) : mixRange(seed, bytes, at + IPV6_SOURCE_OFFSET, 32);
  const protocol = isV4 ? bytes[at + 9] : bytes[at + 6];
  const upper = isV4 ? ip + (bytes[at] & 0xf) * 4 : ip + IPV6_BYTES;
  // Only the first fragment has ports; a flow must not be spread by that.
  const isFragment = isV4 && (readU16(bytes, at + 6) & 0x3fff) !== 0;
  const hasPorts =
    (protocol === IP_PROTOCOL_UDP || protocol === IP_PROTOCOL_TCP) && !isFragment && length >= upper + PORTS_BYTES;
  return finish(mix(addresses, hasPorts ? mix(protocol, readU32(bytes, offset + upper)) : protocol));
}

function mixRange(seed: number, bytes: Uint8Array, offset: number, length: number): number {
  let hash = seed;
  for (let i = 0; i < length; i += 4) hash = mix(hash, readU32(bytes, offset + i));
  return hash;
}

function mix(hash: number, word: number): number {
  const scrambled = Math.imul(word, 0xcc9e2d51);
  const h = hash ^ Math.imul((scrambled << 15) | (scrambled >>> 17), 0x1b873593);
  return Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64;
}

/** MurmurHash3's finalizer: every bit of the flow reaches the low bits, which choose the port. */
function finish(hash: number): number {
  let h = hash ^ (hash >>> 16);
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
