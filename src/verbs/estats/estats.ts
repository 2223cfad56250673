/** The telemetry of one device: watched queue pairs, latency by group in windows of a minute, and dumps. I/O-free. */

import { type CounterName, counterSnapshot } from '../../memory/ring/counters.js';
import type { AssociationCounts } from '../../memory/ring/protection.js';
import type { TelemetryPage } from '../../memory/ring/telemetry-page.js';
import { type AllowedRate, UNLIMITED_RATE } from './allowed-rate.js';
import {
  type ConnectionHost,
  ConnectionTelemetry,
  type QueuePairInspector,
  type Trigger,
} from './connection-telemetry.js';
import { DumpLog } from './dump-log.js';
import { packetsForPeople } from './dumped-packets.js';
import { GroupTable } from './group-table.js';
import { Histogram } from './histogram.js';
import { addTotals, type ConnectionTotals } from './totals.js';
import { type TelemetryWindow, WindowHistory } from './window-history.js';

const WINDOW_NS = 60e9;
const GROUPS_MAX = 1024;

export interface EstatsInit {
  readonly nowNs: () => number;
  readonly epochMs: number;
  readonly counters: Float64Array;
  readonly refreshCounters?: () => void;
  readonly windowNs?: number;
  readonly groupsMax?: number;
}

export interface NicFacts {
  readonly rate: AllowedRate;
  readonly keys: AssociationCounts | undefined;
}

export class Estats implements ConnectionHost {
  readonly groups: GroupTable;
  readonly history = new WindowHistory();
  readonly dumpLog = new DumpLog();
  readonly loopDelay = new Histogram();
  readonly windowNs: number;
  readonly epochMs: number;
  readonly nowNs: () => number;
  readonly startedNs: number;
  readonly #counters: Float64Array;
  readonly #refreshCounters: () => void;
  readonly #connections = new Map<number, ConnectionTelemetry>();
  readonly #totalsBefore = new Map<ConnectionTelemetry, ConnectionTotals>();
  #windowStartNs: number;
  #windowEndNs: number;
  onWindow: (window: TelemetryWindow) => void = () => {};

  constructor(init: EstatsInit) {
    this.nowNs = init.nowNs;
    this.epochMs = init.epochMs;
    this.#counters = init.counters;
    this.#refreshCounters = init.refreshCounters ?? (() => {});
    this.windowNs = init.windowNs ?? WINDOW_NS;
    this.groups = new GroupTable(init.groupsMax ?? GROUPS_MAX);
    this.startedNs = this.nowNs();
    this.#windowStartNs = this.startedNs;
    this.#windowEndNs = this.startedNs + this.windowNs;
  }

  watch(qpn: number, page: TelemetryPage, inspector: QueuePairInspector): ConnectionTelemetry {
    const connection = new ConnectionTelemetry(this, { qpn, page, inspector }, (closed) => this.#onClosed(closed));
    this.#connections.set(qpn, connection);
    return connection;
  }

  get connections(): Iterable<ConnectionTelemetry> {
    return this.#connections.values();
  }

  async askNic(): Promise<Map<number, NicFacts>> {
    const asked = [...this.#connections.values()].map(async ({ qpn, inspector, protection }) => {
      // A queue pair that has been destroyed has no limits and no keys.
      const [rate, keys] = await Promise.all([
        inspector.allowedRate().catch(() => UNLIMITED_RATE),
        protection?.counts().catch(() => undefined),
      ]);
      return [qpn, { rate, keys }] as const;
    });
    return new Map(await Promise.all(asked));
  }

  counters(): Record<CounterName, number> {
    this.#refreshCounters();
    return counterSnapshot(this.#counters);
  }

  advance(nowNs: number): void {
    if (nowNs >= this.#windowEndNs) this.#closeWindow(nowNs);
  }

  /** The program's event loop was this late until `agoNs` ago; since then it has processed what had arrived. */
  recordLoopDelay(ns: number, agoNs: number): void {
    const nowNs = this.nowNs();
    this.advance(nowNs);
    this.loopDelay.record(ns);
    for (const connection of this.#connections.values()) connection.stalled(ns, nowNs - agoNs);
  }

  currentWindow(): TelemetryWindow {
    const nowNs = this.nowNs();
    this.advance(nowNs);
    return this.#window(nowNs);
  }

  #window(endNs: number): TelemetryWindow {
    const connections = new Map<string, ConnectionTotals>();
    for (const connection of this.#connections.values()) {
      const before = this.#totalsBefore.get(connection);
      connections.set(connection.name, difference(connection.totals(endNs), before));
    }
    return {
      startNs: this.#windowStartNs,
      endNs,
      groups: this.groups.windows(),
      connections,
      loopDelay: this.loopDelay.toSparse(),
    };
  }

  /** Windows without a sample are left out: the next one begins at a multiple of the window's length. */
  #closeWindow(nowNs: number): void {
    const window = this.#window(this.#windowEndNs);
    this.history.push(window);
    this.onWindow(window);
    this.groups.startWindow();
    this.loopDelay.reset();
    for (const connection of this.#connections.values()) {
      this.#totalsBefore.set(connection, connection.totals(this.#windowEndNs));
    }
    const elapsed = Math.floor((nowNs - this.#windowStartNs) / this.windowNs);
    this.#windowStartNs += elapsed * this.windowNs;
    this.#windowEndNs = this.#windowStartNs + this.windowNs;
  }

  #onClosed(connection: ConnectionTelemetry): void {
    this.#totalsBefore.delete(connection);
    this.#connections.delete(connection.qpn);
    this.dumpLog.forget(connection.qpn);
  }

  trigger(connection: ConnectionTelemetry, trigger: Trigger): void {
    if (this.dumpLog.admit(connection.qpn, this.nowNs())) void this.#dump(connection, trigger);
  }

  async dumpAll(): Promise<void> {
    for (const connection of this.#connections.values()) await this.#dump(connection, { reason: 'asked' });
  }

  async #dump(connection: ConnectionTelemetry, why: Trigger | { readonly reason: 'asked' }): Promise<void> {
    const nowNs = this.nowNs();
    const packets = packetsForPeople(connection.page.packets(), nowNs);
    const totals = connection.totals(nowNs);
    const moved = Object.entries(this.counters()).filter(([, value]) => value !== 0);
    const qp = await connection.inspector.inspect().catch((error: Error) => ({ gone: error.message }));
    this.dumpLog.add({
      time: new Date(this.epochMs + nowNs / 1e6).toISOString(),
      ...why,
      conn: connection.name,
      qp,
      totals,
      packets,
      device: Object.fromEntries(moved),
    });
  }
}

function difference(now: ConnectionTotals, before: ConnectionTotals | undefined): ConnectionTotals {
  return before === undefined ? now : addTotals(now, before, -1);
}
