import type { LiveSwitchPortCounters } from '@rocev2/lab/internal';
import { NS_PER_S } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import type { CounterName } from 'rocev2/internal/memory';
import { appendBounded, withCount } from '../bounded-list.js';
import type { LabEvent, LabLatency, LabSample, LabSettings, LabState, LabTotals } from '../messages/lab-messages.js';
import type { LabEndpointSample } from './lab-endpoint.js';

const SAMPLES_KEPT = 960;
const EVENTS_KEPT = 100;
/** Losses are reported together, so that the list can be read: once in two seconds. */
const SAMPLES_PER_EVENT = 8;

const SAMPLES_PER_RATE = 4;
/** Before the first sample there is nothing to compare it with: its rates are 0, over any time. */
const FIRST_INTERVAL_NS = 1e9;

type LabPlan = Pick<LabState, 'messageBytes' | 'mtu' | 'queuePairs' | 'choices'>;

export interface LabReading {
  readonly settings: LabSettings;
  readonly a: LabEndpointSample;
  readonly b: LabEndpointSample;
  readonly ports: Readonly<Record<string, LiveSwitchPortCounters>>;
  readonly queues: Readonly<Record<string, number>>;
}

const EVENT_COUNTERS: ReadonlyArray<readonly [CounterName, LabEvent['kind'], string]> = [
  ['packet_seq_err', 'loss', 'NAK: PSN sequence error'],
  ['implied_nak_seq_err', 'loss', 'an acknowledgement that jumped past an unanswered READ'],
  ['read_response_gaps', 'loss', 'a gap in READ responses'],
  ['local_ack_timeout_err', 'timeout', 'acknowledgement timeout'],
];

export class LabHistory {
  readonly #plan: LabPlan;
  readonly #startNs = nowNs();
  readonly #samples: LabSample[] = [];
  readonly #events: LabEvent[] = [];
  #sampleNumber = 0;
  #eventNumber = 0;
  #qpns: readonly number[] = [];
  #readings: Array<{ readonly timeNs: number; readonly reading: LabReading }> = [];
  #told: LabReading | undefined;

  constructor(plan: LabPlan) {
    this.#plan = plan;
  }

  get state(): LabState {
    return { kind: 'lab', ...this.#plan, samples: this.#samples, events: this.#events };
  }

  reconnected(qpns: readonly number[]): void {
    this.#qpns = qpns;
  }

  restarted(): void {
    this.#readings = [];
    this.#told = undefined;
  }

  note(kind: LabEvent['kind'], text: string): LabEvent {
    const event = { number: ++this.#eventNumber, timeNs: this.#nowNs(), kind, text };
    appendBounded(this.#events, event, EVENTS_KEPT);
    return event;
  }

  add(reading: LabReading): { sample: LabSample; events: LabEvent[] } {
    const timeNs = this.#nowNs();
    const before = this.#readings[0] ?? { timeNs: timeNs - FIRST_INTERVAL_NS, reading };
    appendBounded(this.#readings, { timeNs, reading }, SAMPLES_PER_RATE);
    const events = this.#eventsOf(reading);
    const sample = this.#sampleBetween(before, timeNs, reading);
    const previous = this.#samples.pop();
    if (previous !== undefined) this.#samples.push({ ...previous, latency: { ...previous.latency, buckets: [] } });
    appendBounded(this.#samples, sample, SAMPLES_KEPT);
    return { sample, events };
  }

  #sampleBetween(
    before: { readonly timeNs: number; readonly reading: LabReading },
    timeNs: number,
    reading: LabReading,
  ): LabSample {
    const seconds = (timeNs - before.timeNs) / NS_PER_S;
    const { settings, a, b, ports } = reading;
    const old = before.reading;
    const moved = (name: CounterName) => a.counters[name] - old.a.counters[name];
    const [poster, oldPoster] = settings.op === 'read' ? [b, old.b] : [a, old.a];
    const queuePairs = this.#qpns.map((qpn, i) => ({
      qpn,
      goodputBps:
        (Math.max(0, (poster.messagesCompleted[i] ?? 0) - (oldPoster.messagesCompleted[i] ?? 0)) *
          this.#plan.messageBytes *
          8) /
        seconds,
      rateBps: a.rates[i]?.rateBps ?? null,
      alpha: a.rates[i]?.alpha ?? null,
    }));
    return {
      number: ++this.#sampleNumber,
      timeNs,
      settings,
      goodputBps: queuePairs.reduce((sum, { goodputBps }) => sum + goodputBps, 0),
      linkBps: (moved('tx_data_packets') * this.#plan.mtu * 8) / seconds,
      retransmittedPerSecond: moved('tx_retransmitted') / seconds,
      droppedPerSecond: (ports['b'].tx_dropped_fault - old.ports['b'].tx_dropped_fault) / seconds,
      queueBytes: reading.queues['b'],
      queuePairs,
      ports: Object.entries(ports).map(([name, counters]) => ({
        name,
        packetsPerSecond: (counters.rx_packets - old.ports[name].rx_packets) / seconds,
      })),
      latency: latencyOf(poster),
      totals: totalsOf(reading),
    };
  }

  #eventsOf(reading: LabReading): LabEvent[] {
    const events: LabEvent[] = [];
    const { a, b, settings } = reading;
    const old = this.#told ?? reading;
    if (this.#sampleNumber % SAMPLES_PER_EVENT === 0) {
      for (const [name, kind, text] of EVENT_COUNTERS) {
        const count = a.counters[name] + b.counters[name] - old.a.counters[name] - old.b.counters[name];
        if (count > 0) events.push(this.note(kind, withCount(text, count)));
      }
      this.#told = reading;
    }
    const poster = settings.op === 'read' ? b : a;
    for (const status of poster.failures) {
      events.push(this.note('failure', `a queue pair gave up with ${status}; it is connected again`));
    }
    return events;
  }

  #nowNs(): number {
    return nowNs() - this.#startNs;
  }
}

function totalsOf({ a, b, ports }: LabReading): LabTotals {
  const sum = (name: CounterName) => a.counters[name] + b.counters[name];
  return {
    messages: [...a.messagesCompleted, ...b.messagesCompleted].reduce((total, count) => total + count, 0),
    packetsSent: a.counters.tx_data_packets,
    packetsDropped: ports['b'].tx_dropped_fault,
    packetsRetransmitted: a.counters.tx_retransmitted,
    naks: sum('packet_seq_err'),
    timeouts: sum('local_ack_timeout_err'),
    marks: ports['b'].tx_ecn_marked,
    cnps: a.counters.rp_cnp_handled + a.counters.rp_cnp_ignored,
    pauses: ports['a'].tx_pfc_packets,
  };
}

function latencyOf({ latency, bars }: LabEndpointSample): LabLatency {
  return { ...latency, buckets: bars };
}
