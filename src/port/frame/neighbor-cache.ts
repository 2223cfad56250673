/**
 * IP address -> MAC address (RFC 826, RFC 4861 §7). An entry is valid, then stale and probed, then removed. Requests
 * are rate-limited, and only solicited addresses or those that address us are learnt, so that the table cannot be
 * flooded.
 */

import type { IpAddress } from '../../packet/address.js';

const ENTRIES_MAX = 1024;
const FRESH_NS = 30e9;
const FORGET_NS = 120e9;
const ASK_INTERVAL_NS = 100e6;

interface Neighbor {
  mac: Uint8Array | undefined;
  confirmedNs: number;
  askedNs: number;
}

/** At most 1,024 entries: fresh for 30 s, usable for 120 s, asked for at most ten times a second. */
export class NeighborCache {
  readonly #entries = new Map<string, Neighbor>();

  get size(): number {
    return this.#entries.size;
  }

  lookup(address: IpAddress, nowNs: number): Uint8Array | undefined {
    const entry = this.#entries.get(address.text);
    if (entry === undefined || nowNs - entry.confirmedNs > FORGET_NS) return undefined;
    return entry.mac;
  }

  shouldAsk(address: IpAddress, nowNs: number): boolean {
    let entry = this.#entries.get(address.text);
    if (entry === undefined) {
      entry = this.#add(address, { mac: undefined, confirmedNs: -Infinity, askedNs: -Infinity });
    }
    if (nowNs - entry.confirmedNs <= FRESH_NS || nowNs - entry.askedNs < ASK_INTERVAL_NS) return false;
    entry.askedNs = nowNs;
    return true;
  }

  /** An answer, or an announcement: accepted for addresses that were queried here. */
  answer(address: IpAddress, mac: Uint8Array, nowNs: number): void {
    if (this.#entries.has(address.text)) this.add(address, mac, nowNs);
  }

  /** `confirmedNs` Infinity makes a static entry. */
  add(address: IpAddress, mac: Uint8Array, confirmedNs: number): void {
    const entry = this.#entries.get(address.text);
    if (entry === undefined) this.#add(address, { mac, confirmedNs, askedNs: -Infinity });
    else if (entry.confirmedNs !== Infinity) {
      entry.mac = mac;
      entry.confirmedNs = confirmedNs;
    }
  }

  #add(address: IpAddress, entry: Neighbor): Neighbor {
    if (this.#entries.size >= ENTRIES_MAX) {
      for (const [oldest, { confirmedNs }] of this.#entries) {
        if (confirmedNs === Infinity) continue;
        this.#entries.delete(oldest);
        break;
      }
    }
    this.#entries.set(address.text, entry);
    return entry;
  }
}
