/**
 * One watched queue pair: puts T1 on its telemetry page at posting, reads T6 at polling, and adds the stages to the
 * histograms.
 */

import type { RegionCopies } from '../../memory/mapped/copies.js';
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

export interface ConnectionProtection {
  readonly peer: string;
  readonly cipher: string;
  readonly sendSpi: number;
  readonly receiveSpi: number;
  counts(): Promise<AssociationCounts | undefined>;
}

export interface WorkRecorder {
  posted(index: number, nowNs: number): void;
  polled(index: number, status: number, opcode: number, nowNs: number): void;
  /** A direct operation, between its post and the poll of its completion. */
  direct(opcode: number, postedNs: number, polledNs: number): void;
  connected(remote: string, destQpn: number): void;
  secured(protection: ConnectionProtection): void;
  /** Operations are copies where they can be, and are counted there. */
  mapped(copies: RegionCopies): void;
  closed(): void;
}

export const NO_RECORDER: WorkRecorder = {
  posted: () => {},
  polled: () => {},
  direct: () => {},
  connected: () => {},
  secured: () => {},
  mapped: () => {},
  closed: () => {},
};

export interface Trigger {
  readonly reason: 'slow' | 'error';
  readonly op: string;
  readonly status: string;
  readonly stagesNs: Partial<Record<StageName, number>>;
}

export interface ConnectionHost {
  nowNs(): number;
  advance(nowNs: number): void;
  readonly groups: GroupTable;
  trigger(connection: ConnectionTelemetry, trigger: Trigger): void;
}

export interface QueuePairInspector {
  inspect(): Promise<Record<string, unknown>>;
  allowedRate(): Promise<AllowedRate>;
}

export class ConnectionTelemetry implements WorkRecorder {
  readonly qpn: number;
  readonly createdNs: number;
  readonly page: TelemetryPage;
  readonly inspector: QueuePairInspector;
  #name: string;
  #remote: { readonly address: string; readonly qpn: number } | undefined;
  #protection: ConnectionProtection | undefined;
  #copies: RegionCopies | undefined;
  readonly #host: ConnectionHost;
  readonly #onClosed: (connection: ConnectionTelemetry) => void;
  #lastPosted = 0;
  #stalledUnsentNs = 0;
  #stalledUnheardNs = 0;
  #heardPackets = 0;
  readonly #successes: Array<Group | undefined> = [];
  readonly #directs: Array<Group | undefined> = [];

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

  get name(): string {
    return this.#name;
  }

  get remote(): { readonly address: string; readonly qpn: number } | undefined {
    return this.#remote;
  }

  get protection(): ConnectionProtection | undefined {
    return this.#protection;
  }

  get copies(): RegionCopies | undefined {
    return this.#copies;
  }

  mapped(copies: RegionCopies): void {
    this.#copies = copies;
  }

  secured(protection: ConnectionProtection): void {
    this.#protection = protection;
  }

  connected(remote: string, destQpn: number): void {
    this.#protection = undefined;
    this.#copies = undefined;
    this.#remote = { address: remote, qpn: destQpn };
    this.#name = `${hex(this.qpn)}>${remote}/${hex(destQpn)}`;
    this.#successes.length = 0;
    this.#directs.length = 0;
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
    if (group === undefined || group.released) group = this.#successGroup(this.#successes, opcode, '');
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

  /** The NIC takes no part, so there is nothing between T1 and T6. */
  direct(opcode: number, t1: number, t6: number): void {
    this.#host.advance(t6);
    let group = this.#directs[opcode];
    if (group === undefined || group.released) group = this.#successGroup(this.#directs, opcode, '_DIRECT');
    group.stages.recordWhole(t6 - t1);
  }

  #successGroup(groups: Array<Group | undefined>, opcode: number, suffix: string): Group {
    const group = this.#host.groups.find({
      conn: this.#name,
      op: wcOpcodeName(opcode) + suffix,
      status: statusName(STATUS_SUCCESS),
    });
    // "other" is not cached: a separate entry may become free.
    if (group.key.conn === this.#name) groups[opcode] = group;
    return group;
  }

  /** What failed may not have reached all stages: only the whole is known for certain. */
  #failed(ns: number, status: number, opcode: number): void {
    const op = wcOpcodeName(opcode);
    const name = statusName(status);
    this.#host.groups.find({ conn: this.#name, op, status: name }).stages.recordWhole(ns);
    this.#host.trigger(this, { reason: 'error', op, status: name, stagesNs: { t6_t1: ns } });
  }

  stalled(ns: number, endNs: number): void {
    const { stamps, counters } = this.page;
    const o = this.page.stampsOf(this.#lastPosted);
    const postedNs = stamps[o + STAMP_T1];
    const sentNs = stamps[o + STAMP_T2] < postedNs ? Number.POSITIVE_INFINITY : stamps[o + STAMP_T2];
    this.#stalledUnsentNs += Math.max(0, Math.min(sentNs, endNs) - Math.max(postedNs, endNs - ns));
    if (counters[RX_PACKETS] > this.#heardPackets) this.#stalledUnheardNs += ns;
    this.#heardPackets = counters[RX_PACKETS];
  }

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
