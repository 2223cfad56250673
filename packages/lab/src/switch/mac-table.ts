/**
 * Which port a MAC address was last seen on (IEEE 802.1Q §8.8). Bounded: when full of addresses that are still in use, new ones are not
 * learnt, so that a flood of invented senders cannot push out the real ones.
 *
 * Invariant: the entries stand in the order in which they were last refreshed.
 */

/** An entry is refreshed when this share of its life is over: often enough, and no work per frame. */
const REFRESH_SHARE = 1 / 8;

/** Places of {@link Recent}; a power of two. */
const RECENT_PLACES = 1024;

interface Entry {
  port: number;
  seenNs: number;
}

/** What was learnt last of addresses, by their last bits: most frames come from a station that was just heard of, on the same port, and teach nothing. */
class Recent {
  readonly #macs = new Float64Array(RECENT_PLACES).fill(-1);
  readonly #ports = new Int32Array(RECENT_PLACES);
  readonly #seenNs = new Float64Array(RECENT_PLACES);

  /** The address was learnt on this port, not before `sinceNs`. */
  has(mac: number, port: number, sinceNs: number): boolean {
    const place = recentSlotOf(mac);
    return this.#macs[place] === mac && this.#ports[place] === port && this.#seenNs[place] > sinceNs;
  }

  set(mac: number, port: number, seenNs: number): void {
    const place = recentSlotOf(mac);
    this.#macs[place] = mac;
    this.#ports[place] = port;
    this.#seenNs[place] = seenNs;
  }
}

function recentSlotOf(mac: number): number {
  return mac & (RECENT_PLACES - 1); // Of the last 32 bits, which is quicker than a division.
}

/** MAC address to port, learnt from traffic. */
export class MacTable {
  readonly #entries = new Map<number, Entry>();
  readonly #entriesMax: number;
  readonly #ageNs: number;
  readonly #recent = new Recent();

  constructor(entriesMax: number, ageNs: number) {
    this.#entriesMax = entriesMax;
    this.#ageNs = ageNs;
  }

  /** Entries, those included that are too old to be used. */
  get size(): number {
    return this.#entries.size;
  }

  /** `mac` is the address as a 48-bit number (see {@link macNumber}). */
  learn(mac: number, port: number, nowNs: number): void {
    if (this.#recent.has(mac, port, nowNs - this.#ageNs * REFRESH_SHARE)) return;
    const entry = this.#entries.get(mac);
    if (entry === undefined) {
      if (this.#entries.size < this.#entriesMax || this.#dropOldest(nowNs)) {
        this.#entries.set(mac, { port, seenNs: nowNs });
        this.#recent.set(mac, port, nowNs);
      }
      return;
    }
    entry.port = port;
    if (nowNs - entry.seenNs >= this.#ageNs * REFRESH_SHARE) {
      entry.seenNs = nowNs;
      this.#entries.delete(mac);
      this.#entries.set(mac, entry);
    }
    this.#recent.set(mac, port, entry.seenNs);
  }

  /** The port, or -1 when the address is unknown or has aged out. */
  lookup(mac: number, nowNs: number): number {
    const entry = this.#entries.get(mac);
    return entry === undefined || nowNs - entry.seenNs > this.#ageNs ? -1 : entry.port;
  }

  /** False when even the oldest entry is still alive. */
  #dropOldest(nowNs: number): boolean {
    for (const [mac, entry] of this.#entries) {
      return nowNs - entry.seenNs > this.#ageNs && this.#entries.delete(mac);
    }
    return false;
  }
}

/** The MAC address at `o` as a 48-bit number. */
export function macNumber(b: Uint8Array, o: number): number {
  const high = (b[o] << 16) | (b[o + 1] << 8) | b[o + 2];
  const low = (b[o + 3] << 16) | (b[o + 4] << 8) | b[o + 5];
  return high * 0x1000000 + low;
}
