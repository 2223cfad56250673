/**
 * The livelock experiment of "RDMA over Commodity Ethernet at Scale" (Guo et al., SIGCOMM 2016, §4.1), live: endpoint
 * A, endpoint B and the switch are processes joined by Ethernet frames in UDP datagrams, so that the switch sees real
 * IP identifications. In every operation the data goes from A to B.
 */

import { ChildService, whileAlive } from '@rocev2/command';
import type { RecoveryName } from 'rocev2/internal/retransmit';
import { type MeasuredTheory, measuredTheory } from '../../live/measured-theory.js';
import { SWITCH_PROGRAM, type SwitchService } from '../../live/switch-program.js';
import type { LivelockEndpointService } from './livelock-endpoint-process.js';
import type { LivelockOp } from './ops.js';

/** Addresses from the range for benchmarks (RFC 2544). */
const ADDRESS_A = '198.18.0.1';
const ADDRESS_B = '198.18.0.2';
const STATUS_INTERVAL_MS = 250;
const ENDPOINT_PROGRAM = new URL('./livelock-endpoint-process.js', import.meta.url);

export interface LivelockSettings {
  readonly op: LivelockOp;
  readonly scheme: RecoveryName;
  readonly lossRule: string | undefined;
  readonly seed: number;
  readonly messageBytes: number;
  /** Path MTU in bytes. */
  readonly mtu: number;
  readonly seconds: number;
  readonly windowPackets: number;
  readonly trace: string | undefined;
}

/** Result of one run. */
export interface LivelockMeasurement extends MeasuredTheory {
  /** Operation of the run. */
  readonly op: LivelockOp;
  /** Recovery scheme of both ends. */
  readonly scheme: RecoveryName;
  /** Fault rules of the switch; `none` without rules. */
  readonly lossRule: string;
  /** Seed of random fault rules. */
  readonly seed: number;
  /** Size of a message. */
  readonly messageBytes: number;
  /** Path MTU in bytes. */
  readonly mtu: number;
  /** Time from the first message posted to the last one completed, or to the end of the run if none was. */
  readonly seconds: number;
  /** Number of messages with a successful completion. */
  readonly messagesCompleted: number;
  /** Payload of completed messages. */
  readonly goodputBps: number;
  /** Packets with payload that A sent, retransmissions included. */
  readonly packetsSent: number;
  /** Packets with payload that the fault rule dropped. */
  readonly packetsDropped: number;
  /** Packets with payload that A retransmitted. */
  readonly packetsRetransmitted: number;
  /** Packets with payload that A sent per second. */
  readonly packetsPerSecond: number;
  /** Acknowledgements, NAKs and READ requests from B that the fault rule dropped. */
  readonly reverseDropped: number;
  /** Of both ends. */
  readonly ackTimeouts: number;
  /** Packets that may be in flight. */
  readonly windowPackets: number;
  /** Packets of completed messages / packets sent. */
  readonly efficiency: number;
  /** Whether B holds exactly the data of A; null if no message arrived. */
  readonly verified: boolean | null;
  /** The completion status that ended the run early, when all retries had failed; else null. */
  readonly failure: string | null;
}

interface LivelockStatus {
  readonly messagesCompleted: number;
  readonly packetsSent: number;
}

export class LivelockRig implements AsyncDisposable {
  readonly #switch = new ChildService<SwitchService>('the switch', SWITCH_PROGRAM);
  readonly #a = new ChildService<LivelockEndpointService>('endpoint a', ENDPOINT_PROGRAM);
  readonly #b = new ChildService<LivelockEndpointService>('endpoint b', ENDPOINT_PROGRAM);

  run(settings: LivelockSettings, onStatus: (status: LivelockStatus) => void): Promise<LivelockMeasurement> {
    return whileAlive([this.#switch, this.#a, this.#b], this.#run(settings, onStatus));
  }

  async close(): Promise<void> {
    await Promise.all([this.#a.stop(), this.#b.stop(), this.#switch.stop()]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #run(settings: LivelockSettings, onStatus: (status: LivelockStatus) => void): Promise<LivelockMeasurement> {
    const { op, seconds, lossRule, seed, messageBytes, mtu, windowPackets, trace, scheme: recovery } = settings;
    const ports = await this.#switch.call('open', { ports: ['a', 'b'], loss: lossRule, seed });
    const queuePair = { messageBytes, recovery };
    const [a, b] = await Promise.all([
      this.#a.call('open', { address: ADDRESS_A, switchPort: ports['a'], isSource: true, trace, ...queuePair }),
      this.#b.call('open', { address: ADDRESS_B, switchPort: ports['b'], isSource: false, ...queuePair }),
    ]);
    const path = { mtu, windowPackets };
    await Promise.all([
      this.#a.call('connect', { ...path, peerAddress: ADDRESS_B, peerQpn: b.qpn, peerPsn: b.psn, receives: false }),
      this.#b.call('connect', {
        ...path,
        peerAddress: ADDRESS_A,
        peerQpn: a.qpn,
        peerPsn: a.psn,
        receives: op === 'send',
      }),
    ]);
    const requester = op === 'read' ? this.#b : this.#a;
    const target = op === 'read' ? a : b;
    const timer = setInterval(() => void this.#report(requester, onStatus), STATUS_INTERVAL_MS);
    const { remoteAddr, rkey } = target;
    const transfer = await requester
      .call('transfer', { op, seconds, remoteAddr, rkey })
      .finally(() => clearInterval(timer));
    const measurement = await this.#measure(settings, transfer);
    await Promise.all([this.#a.call('close', {}), this.#b.call('close', {})]);
    await this.#switch.call('close', {});
    return measurement;
  }

  async #report(
    requester: ChildService<LivelockEndpointService>,
    onStatus: (status: LivelockStatus) => void,
  ): Promise<void> {
    try {
      const [{ messagesCompleted }, { counters }] = await Promise.all([
        requester.call('status', {}),
        this.#a.call('status', {}),
      ]);
      onStatus({ messagesCompleted, packetsSent: counters.tx_data_packets });
    } catch {}
  }

  async #measure(
    settings: LivelockSettings,
    transfer: { messagesCompleted: number; seconds: number; failure: string | null },
  ): Promise<LivelockMeasurement> {
    const { op, scheme, lossRule, seed, messageBytes, mtu, windowPackets } = settings;
    const { messagesCompleted, seconds, failure } = transfer;
    const [{ counters }, { counters: countersOfB }, switchCounters] = await Promise.all([
      this.#a.call('status', {}),
      this.#b.call('status', {}),
      this.#switch.call('counters', {}),
    ]);
    const messagePackets = Math.ceil(messageBytes / mtu);
    const packetsSent = counters.tx_data_packets;
    return {
      op,
      scheme,
      lossRule: lossRule ?? 'none',
      seed,
      messageBytes,
      mtu,
      seconds,
      messagesCompleted,
      goodputBps: (messagesCompleted * messageBytes * 8) / seconds,
      packetsSent,
      packetsDropped: switchCounters['b'].tx_dropped_fault,
      packetsRetransmitted: counters.tx_retransmitted,
      packetsPerSecond: packetsSent / seconds,
      reverseDropped: switchCounters['a'].tx_dropped_fault,
      ackTimeouts: counters.local_ack_timeout_err + countersOfB.local_ack_timeout_err,
      windowPackets,
      efficiency: packetsSent === 0 ? 0 : (messagesCompleted * messagePackets) / packetsSent,
      ...measuredTheory(scheme, lossRule, messagePackets, counters),
      verified: messagesCompleted === 0 ? null : await this.#b.call('hasData', {}),
      failure,
    };
  }
}
