/**
 * One watched queue pair: puts T1 on its telemetry page when work is posted, reads T6 when its completion is polled, and adds the stages
 * between the stamps to the histograms.
 */

import { STATUS_SUCCESS, statusName, wcOpcodeName } from '../../memory/ring/enums.js';
import type { AssociationCounts } from '../../memory/ring/protection.js';
import {
  NEVER,
  QP_COUNTER,
  QP_COUNTER_NAMES,
  type QpCounterName,
  SCALAR_ACTIVE,
  SCALAR_ACTIVE_SINCE,
  SCALAR_TIMEOUTS,
  SCALAR_WAITING,
  SCALAR_WAITING_SINCE,
  STAMP_T1,
  STAMP_T2,
  STAMP_T3,
  STAMP_T4,
  STAMP_T5,
  type TelemetryPage,
  WAIT_CAUSES,
  WAIT_NOTHING,
  type WaitCause,
} from '../../memory/ring/telemetry-page.js';
import type { AllowedRate } from './allowed-rate.js';
import type { Group, GroupTable } from './group-table.js';
import { STAGES, type StageName } from './stages.js';
import type { ConnectionTotals } from './totals.js';

const RX_PACKETS = QP_COUNTER.rx_packets;

/** What protects the packets of a connection. */
export interface ConnectionProtection {
  /** Who the peer has proven to be. */
  readonly peer: string;
  /** Name of the cipher. */
  readonly cipher: string;
  /** SPI of what is sent, and of what is received, without the phase bit. */
  readonly sendSpi: number;
  /** Of packets that this end receives. */
  readonly receiveSpi: number;
  /** Asks the port what has happened with the keys; undefined once it has forgotten them. */
  counts(): Promise<AssociationCounts | undefined>;
}

/** What a queue pair tells of its application's side. */
export interface WorkRecorder {
  /** The WQE at `index` is about to be published; it was posted at `nowNs`. */
  posted(index: number, nowNs: number): void;
  /** Its completion was polled at `nowNs`. `status` and `opcode` as in the CQE. */
  polled(index: number, status: number, opcode: number, nowNs: number): void;
  /** The queue pair is connected to this one. */
  connected(remote: string, destQpn: number): void;
  /** Its packets are protected, until it is connected again. */
  secured(protection: ConnectionProtection): void;
  /** The queue pair is destroyed: nothing more is recorded. */
  closed(): void;
}

/** Of queue pairs that nobody watches. */
export const NO_RECORDER: WorkRecorder = {
  posted: () => {},
  polled: () => {},
  connected: () => {},
  secured: () => {},
  closed: () => {},
};

/** A sample that is worth a dump. */
export interface Trigger {
  /** Far slower than its group's last window, or failed. */
  readonly reason: 'slow' | 'error';
  /** `ibv_wc_opcode` by name. */
  readonly op: string;
  /** `ibv_wc_status` by name. */
  readonly status: string;
  /** Of a success all stages, of a failure only the whole. */
  readonly stagesNs: Partial<Record<StageName, number>>;
}

/** What a connection needs of the telemetry it belongs to. */
export interface ConnectionHost {
  /** The engine's clock. */
  nowNs(): number;
  /** Called before each sample with its time: a window may have ended. */
  advance(nowNs: number): void;
  /** Where samples are added. */
  readonly groups: GroupTable;
  /** A sample is worth a dump; called on the polling path, so it must return at once. */
  trigger(connection: ConnectionTelemetry, trigger: Trigger): void;
}

/** What only the NIC knows of a queue pair. */
export interface QueuePairInspector {
  /** Its state, for dumps. */
  inspect(): Promise<Record<string, unknown>>;
  /** What rate control allows now. */
  allowedRate(): Promise<AllowedRate>;
}

/** Telemetry of one queue pair, from its creation to {@link closed}. */
export class ConnectionTelemetry implements WorkRecorder {
  /** Its queue pair number. */
  readonly qpn: number;
  /** On the engine's clock. */
  readonly createdNs: number;
  /** The page in shared memory that its NIC writes. */
  readonly page: TelemetryPage;
  /** Asks its NIC. */
  readonly inspector: QueuePairInspector;
  #name: string;
  #remote: { readonly address: string; readonly qpn: number } | undefined;
  #protection: ConnectionProtection | undefined;
  readonly #host: ConnectionHost;
  readonly #onClosed: (connection: ConnectionTelemetry) => void;
  #lastPosted = 0;
  #stalledUnsentNs = 0;
  #stalledUnheardNs = 0;
  /** Packets received until the event loop was looked at last. */
  #heardPackets = 0;
  /** Groups of successful work, by completion opcode. */
  readonly #successes: Array<Group | undefined> = [];

  constructor(
    host: ConnectionHost,
    init: { qpn: number; page: TelemetryPage; inspector: QueuePairInspector },
    onClosed: (connection: ConnectionTelemetry) => void,
  ) {
    this.#host = host;
    this.createdNs = host.nowNs();
    this.qpn = init.qpn;
    this.page = init.page;
    this.inspector = init.inspector;
    this.#name = hex(init.qpn);
    this.#onClosed = onClosed;
  }

  /** `0x11>192.0.2.2/0x22`: this queue pair, and the one it is connected to. */
  get name(): string {
    return this.#name;
  }

  /** The peer; undefined before it is connected. */
  get remote(): { readonly address: string; readonly qpn: number } | undefined {
    return this.#remote;
  }

  /** Undefined while its packets are plain. */
  get protection(): ConnectionProtection | undefined {
    return this.#protection;
  }

  secured(protection: ConnectionProtection): void {
    this.#protection = protection;
  }

  connected(remote: string, destQpn: number): void {
    this.#protection = undefined;
    this.#remote = { address: remote, qpn: destQpn };
    this.#name = `${hex(this.qpn)}>${remote}/${hex(destQpn)}`;
    this.#successes.length = 0;
  }

  closed(): void {
    this.#onClosed(this);
  }

  posted(index: number, nowNs: number): void {
    const { page } = this;
    page.stamps[page.stampsOf(index) + STAMP_T1] = nowNs;
    this.#lastPosted = index;
  }

  polled(index: number, status: number, opcode: number, t6: number): void {
    const host = this.#host;
    const { stamps } = this.page;
    const o = this.page.stampsOf(index);
    host.advance(t6);
    const t1 = stamps[o + STAMP_T1];
    if (status !== STATUS_SUCCESS) {
      this.#failed(t6 - t1, status, opcode);
      return;
    }
    const t2 = stamps[o + STAMP_T2];
    const t3 = stamps[o + STAMP_T3];
    const t4 = stamps[o + STAMP_T4];
    const t5 = stamps[o + STAMP_T5];
    let group = this.#successes[opcode];
    if (group === undefined || group.released) group = this.#successGroup(opcode);
    group.stages.record(t1, t2, t3, t4, t5, t6);
    if (t6 - t1 < group.slowNs) return;
    const durations = [t2 - t1, t3 - t2, t4 - t3, t5 - t4, t6 - t5, t5 - t1, t6 - t1];
    host.trigger(this, {
      reason: 'slow',
      op: group.key.op,
      status: group.key.status,
      stagesNs: Object.fromEntries(STAGES.map((stage, i) => [stage, durations[i]])),
    });
  }

  #successGroup(opcode: number): Group {
    const group = this.#host.groups.find({
      conn: this.#name,
      op: wcOpcodeName(opcode),
      status: statusName(STATUS_SUCCESS),
    });
    // "other" is not remembered: a place of its own may come free.
    if (group.key.conn === this.#name) this.#successes[opcode] = group;
    return group;
  }

  /** What failed may not have reached all stages: only the whole is known for certain. */
  #failed(ns: number, status: number, opcode: number): void {
    const op = wcOpcodeName(opcode);
    const name = statusName(status);
    this.#host.groups.find({ conn: this.#name, op, status: name }).stages.recordWhole(ns);
    this.#host.trigger(this, { reason: 'error', op, status: name, stagesNs: { t6_t1: ns } });
  }

  /** The program's event loop stood still for `ns` until `endNs`; what had arrived meanwhile has been heard since. */
  stalled(ns: number, endNs: number): void {
    const { stamps, counters } = this.page;
    const o = this.page.stampsOf(this.#lastPosted);
    const postedNs = stamps[o + STAMP_T1];
    const sentNs = stamps[o + STAMP_T2] < postedNs ? Number.POSITIVE_INFINITY : stamps[o + STAMP_T2];
    this.#stalledUnsentNs += Math.max(0, Math.min(sentNs, endNs) - Math.max(postedNs, endNs - ns));
    if (counters[RX_PACKETS] > this.#heardPackets) this.#stalledUnheardNs += ns;
    this.#heardPackets = counters[RX_PACKETS];
  }

  /** Totals at this moment, with what goes on at it. */
  totals(nowNs: number): ConnectionTotals {
    const { scalars, waits, counters } = this.page;
    const waiting = scalars[SCALAR_WAITING];
    // A window may be closed a little after its end: what began in between belongs to the next one.
    const goingOnNs = waiting === WAIT_NOTHING ? 0 : Math.max(0, nowNs - scalars[SCALAR_WAITING_SINCE]);
    const activeSince = scalars[SCALAR_ACTIVE_SINCE];
    return {
      waitsNs: Object.fromEntries(
        WAIT_CAUSES.map((cause, i) => [cause, waits[i] + (i === waiting ? goingOnNs : 0)]),
      ) as Record<WaitCause, number>,
      activeNs: scalars[SCALAR_ACTIVE] + (activeSince === NEVER ? 0 : Math.max(0, nowNs - activeSince)),
      timeoutsNs: scalars[SCALAR_TIMEOUTS],
      stalledUnsentNs: this.#stalledUnsentNs,
      stalledUnheardNs: this.#stalledUnheardNs,
      counters: Object.fromEntries(QP_COUNTER_NAMES.map((name, i) => [name, counters[i]])) as Record<
        QpCounterName,
        number
      >,
    };
  }
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}
