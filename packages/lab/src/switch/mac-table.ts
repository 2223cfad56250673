/**
 * Port by MAC address (IEEE 802.1Q §8.8). When full of active addresses, new ones are not learnt, so that a flood of
 * invented senders cannot evict real ones. Invariant: entries are in order of their last refresh.
 */

/** An entry is refreshed when this share of its life is over: often enough, and no work per frame. */
const REFRESH_SHARE = 1 / 8;

const RECENT_SLOTS = 1024;

interface Entry {
  port: number;
  seenNs: number;
}

/** Recent addresses by their low bits: most frames come from a station that was just seen on the same port. */
class Recent {
  readonly #macs = new Float64Array(RECENT_SLOTS).fill(-1);
  readonly #ports = new Int32Array(RECENT_SLOTS);
  readonly #seenNs = new Float64Array(RECENT_SLOTS);

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
  return mac & (RECENT_SLOTS - 1); // Of the last 32 bits, which is quicker than a division.
}

export class MacTable {
  readonly #entries = new Map<number, Entry>();
  readonly #entriesMax: number;
  readonly #ageNs: number;
  readonly #recent = new Recent();

  constructor(entriesMax: number, ageNs: number) {
    this.#entriesMax = entriesMax;
    this.#ageNs = ageNs;
  }

  get size(): number {
    return this.#entries.size;
  }

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

  lookup(mac: number, nowNs: number): number {
    const entry = this.#entries.get(mac);
    return entry === undefined || nowNs - entry.seenNs > this.#ageNs ? -1 : entry.port;
  }

  #dropOldest(nowNs: number): boolean {
    for (const [mac, entry] of this.#entries) {
      return nowNs - entry.seenNs > this.#ageNs && this.#entries.delete(mac);
    }
    return false;
  }
}

export function macNumber(b: Uint8Array, o: number): number {
  const high = (b[o] << 16) | (b[o + 1] << 8) | b[o + 2];
  const low = (b[o + 3] << 16) | (b[o + 4] << 8) | b[o + 5];
  return high * 0x1000000 + low;
}
