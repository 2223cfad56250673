/** At most one a queue pair in ten seconds. */

import type { CounterName } from '../../memory/ring/counters.js';
import type { StageName } from './stages.js';
import type { ConnectionTotals } from './totals.js';

const DUMPS_MAX = 32;
const DUMP_INTERVAL_NS = 10e9;

/** One packet header, for people. */
export interface DumpedPacket {
  /** Before the dump. */
  readonly agoNs: number;
  /** As the NIC sees it. */
  readonly direction: 'sent' | 'received';
  /** BTH opcode by name. */
  readonly opcode: string;
  /** 24 bits. */
  readonly psn: number;
  /** UDP payload. */
  readonly bytes: number;
  /** Of answers: `ACK`, `RNR NAK`, `NAK 0x60`. */
  readonly answer?: string;
}

/** One queue pair and its NIC at one moment. */
export interface Dump {
  /** ISO 8601. */
  readonly time: string;
  /** Why: a slow sample, a failed work request, or somebody asked. */
  readonly reason: 'slow' | 'error' | 'asked';
  /** Name of the connection. */
  readonly conn: string;
  /** Of the work request that caused it, by name. */
  readonly op?: string;
  /** Of the work request that caused it, by name. */
  readonly status?: string;
  /** Of the work request that caused it. */
  readonly stagesNs?: Partial<Record<StageName, number>>;
  /** Attributes and progress of the queue pair. */
  readonly qp: Readonly<Record<string, unknown>>;
  /** What it has added up since it was created. */
  readonly totals: ConnectionTotals;
  /** The newest packet headers, oldest first. */
  readonly packets: readonly DumpedPacket[];
  /** Counters of the NIC that are not zero. */
  readonly device: Partial<Record<CounterName, number>>;
}

export class DumpLog {
  readonly #dumps: Dump[] = [];
  readonly #lastNs = new Map<number, number>();
  /** Dumps that were not made because the queue pair had one shortly before. */
  suppressed = 0;

  admit(qpn: number, nowNs: number): boolean {
    const last = this.#lastNs.get(qpn);
    if (last !== undefined && nowNs - last < DUMP_INTERVAL_NS) {
      this.suppressed++;
      return false;
    }
    this.#lastNs.set(qpn, nowNs);
    return true;
  }

  /** Its dumps stay. */
  forget(qpn: number): void {
    this.#lastNs.delete(qpn);
  }

  add(dump: Dump): void {
    this.#dumps.push(dump);
    if (this.#dumps.length > DUMPS_MAX) this.#dumps.shift();
  }

  get dumps(): readonly Dump[] {
    return this.#dumps;
  }
}
