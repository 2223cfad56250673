/**
 * The telemetry of one device: its watched queue pairs, their latency by group in windows of a minute, and dumps. I/O-free: time comes from
 * the engine's clock, and who wants to see something asks for a snapshot (`snapshot.ts`).
 */

import { type CounterName, counterSnapshot } from '../../memory/ring/counters.js';
import type { AssociationCounts } from '../../memory/ring/protection.js';
import type { TelemetryPage } from '../../memory/ring/telemetry-page.js';
import { type AllowedRate, UNLIMITED_RATE } from './allowed-rate.js';
import { type ConnectionHost, ConnectionTelemetry, type QueuePairInspector, type Trigger } from './connection.js';
import { DumpLog } from './dump-log.js';
import { packetsForPeople } from './dumped-packets.js';
import { GroupTable } from './group-table.js';
import { Histogram } from './histogram.js';
import { addTotals, type ConnectionTotals } from './totals.js';
import { type TelemetryWindow, WindowHistory } from './window-history.js';

const WINDOW_NS = 60e9;
const GROUPS_MAX = 1024;

/** Clock, counters and bounds of a device's telemetry. */
export interface EstatsInit {
  /** The engine's clock. */
  readonly nowNs: () => number;
  /** Milliseconds since 1970 at time 0 of that clock. */
  readonly epochMs: number;
  /** The NIC's counters. */
  readonly counters: Float64Array;
  /** Brings those up to date that the NIC does not keep itself. Default: there are none. */
  readonly refreshCounters?: () => void;
  /** Length of a window; default one minute. */
  readonly windowNs?: number;
  /** Groups a window may have; default 1024. What finds no place goes to the group "other". */
  readonly groupsMax?: number;
}

/** What only the NIC knows of a queue pair. */
export interface NicFacts {
  /** What rate control allows now. */
  readonly rate: AllowedRate;
  /** What has happened with its keys; undefined where its packets are plain. */
  readonly keys: AssociationCounts | undefined;
}

/** Telemetry of one device: connections, windows, dumps. All times are on the engine's clock. */
export class Estats implements ConnectionHost {
  readonly groups: GroupTable;
  /** Closed windows. */
  readonly history = new WindowHistory();
  /** The newest dumps. */
  readonly dumpLog = new DumpLog();
  /** How late the program's event loop was, in the open window. */
  readonly loopDelay = new Histogram();
  /** Length of a window. */
  readonly windowNs: number;
  /** Milliseconds since 1970 at time 0 of the engine's clock. */
  readonly epochMs: number;
  readonly nowNs: () => number;
  /** When telemetry began. */
  readonly startedNs: number;
  readonly #counters: Float64Array;
  readonly #refreshCounters: () => void;
  readonly #connections = new Map<number, ConnectionTelemetry>();
  /** Totals of each connection when the current window began. */
  readonly #totalsBefore = new Map<ConnectionTelemetry, ConnectionTotals>();
  #windowStartNs: number;
  #windowEndNs: number;
  /** Called with every window that closes. */
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

  /** Follows a queue pair whose NIC writes this page. */
  watch(qpn: number, page: TelemetryPage, inspector: QueuePairInspector): ConnectionTelemetry {
    const connection = new ConnectionTelemetry(this, { qpn, page, inspector }, (closed) => this.#onClosed(closed));
    this.#connections.set(qpn, connection);
    return connection;
  }

  /** Queue pairs that are watched now. */
  get connections(): Iterable<ConnectionTelemetry> {
    return this.#connections.values();
  }

  /** What the NIC knows of each queue pair now, by number. */
  async askNic(): Promise<Map<number, NicFacts>> {
    const asked = [...this.#connections.values()].map(async ({ qpn, inspector, protection }) => {
      // What is destroyed meanwhile has no limits, and no keys.
      const [rate, keys] = await Promise.all([
        inspector.allowedRate().catch(() => UNLIMITED_RATE),
        protection?.counts().catch(() => undefined),
      ]);
      return [qpn, { rate, keys }] as const;
    });
    return new Map(await Promise.all(asked));
  }

  /** The NIC's counters by name. */
  counters(): Record<CounterName, number> {
    this.#refreshCounters();
    return counterSnapshot(this.#counters);
  }

  advance(nowNs: number): void {
    if (nowNs >= this.#windowEndNs) this.#closeWindow(nowNs);
  }

  /** The program's event loop was this late until `agoNs` ago; since then it has heard what had arrived. */
  recordLoopDelay(ns: number, agoNs: number): void {
    const nowNs = this.nowNs();
    this.advance(nowNs);
    this.loopDelay.record(ns);
    for (const connection of this.#connections.values()) connection.stalled(ns, nowNs - agoNs);
  }

  /** The window that is open, as if it ended now. */
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

  /** Dumps every connection now, whether it was dumped shortly before or not. */
  async dumpAll(): Promise<void> {
    for (const connection of this.#connections.values()) await this.#dump(connection, { reason: 'asked' });
  }

  /** Packets, totals and counters are those of this moment; the NIC answers for the queue pair's state a little later. */
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

/** What was added since `before`; all of it when there is no before. */
function difference(now: ConnectionTotals, before: ConnectionTotals | undefined): ConnectionTotals {
  return before === undefined ? now : addTotals(now, before, -1);
}
