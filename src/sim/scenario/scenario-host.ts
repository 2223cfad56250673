/** The application of a simulated host: its device, one completion queue and one buffer for all flows, and what its packets tell. */

import { readU24 } from '../../core/bytes.js';
import { CNP, OPCODES, RC_READ_REQUEST, RC_READ_RESPONSE_ONLY } from '../../packet/opcode.js';
import { psnAdd, psnDiff } from '../../packet/psn.js';
import { BTH_BYTES, BTH_PAD_SHIFT, ICRC_BYTES } from '../../packet/roce.js';
import { Access } from '../../verbs/access.js';
import type { CompletionQueue } from '../../verbs/completion-queue.js';
import { RdmaDevice } from '../../verbs/device.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';
import type { ProtectionDomain } from '../../verbs/protection-domain.js';
import type { SimStation } from '../sim-station.js';
import type { Flow } from './flow.js';
import type { TraceHash } from './trace-hash.js';

/** What is no payload in a packet, padding apart, by opcode. */
const OVERHEAD_BYTES = Uint8Array.from(OPCODES, (info) => BTH_BYTES + (info?.extBytes ?? 0) + ICRC_BYTES);

/** One end of a flow, as packets name it. */
interface Track {
  readonly flow: Flow;
  /** The PSN behind the newest data packet; -1 before the first. */
  nextPsn: number;
}

/** One host of a scenario and the flows that end there. */
export class ScenarioHost {
  /** Its NIC on the cable. */
  readonly station: SimStation;
  /** Of all its queue pairs. */
  readonly pd: ProtectionDomain;
  /** Of all its queue pairs. */
  readonly cq: CompletionQueue;
  /** One buffer for all flows. */
  readonly memory: MemoryRegion;
  readonly #flows = new Map<number, Flow>();
  /** Flows whose data leaves here, by the QPN it is sent to. */
  readonly #sending = new Map<number, Track>();

  private constructor(
    /** Its NIC on the cable. */
    station: SimStation,
    /** Of all its queue pairs. */
    pd: ProtectionDomain,
    /** Of all its queue pairs. */
    cq: CompletionQueue,
    /** One buffer for all flows. */
    memory: MemoryRegion,
  ) {
    this.station = station;
    this.pd = pd;
    this.cq = cq;
    this.memory = memory;
  }

  /** Opens the verbs device of `station`; `trace` hears of every packet. */
  static async create(
    station: SimStation,
    memoryBytes: number,
    cqDepth: number,
    trace: TraceHash,
  ): Promise<ScenarioHost> {
    const device = await RdmaDevice.over(station.host);
    const pd = await device.createPd();
    const host = new ScenarioHost(
      station,
      pd,
      await device.createCq(cqDepth),
      await pd.regMr(memoryBytes, Access.REMOTE_ALL),
    );
    station.onPacket = (isSent, bytes, offset, length, ecn) => {
      trace.add(isSent, bytes, offset, length, ecn);
      if (isSent) host.#onSent(bytes, offset, length);
      else if (bytes[offset] === CNP) host.#onCnp(readU24(bytes, offset + 5));
    };
    return host;
  }

  /** The flow has a queue pair here. */
  add(flow: Flow): void {
    const own = flow.source === this ? flow.sourceQp : flow.sinkQp;
    const peer = flow.source === this ? flow.sinkQp : flow.sourceQp;
    this.#flows.set(own.qpn, flow);
    if (flow.source === this) this.#sending.set(peer.qpn, { flow, nextPsn: -1 });
  }

  /** Hands completions to their flows. */
  poll(nowNs: number): void {
    for (let wc = this.cq.pollOne(); wc !== undefined; wc = this.cq.pollOne()) {
      this.#flows.get(wc.qpn)!.onCompletion(wc, nowNs);
    }
  }

  /** Tells first transmissions of data from repetitions, by PSN. */
  #onSent(bytes: Uint8Array, offset: number, length: number): void {
    const opcode = bytes[offset];
    if (opcode > RC_READ_RESPONSE_ONLY || opcode === RC_READ_REQUEST) return; // Not data.
    const track = this.#sending.get(readU24(bytes, offset + 5));
    if (track === undefined) return;
    const { flow } = track;
    const psn = readU24(bytes, offset + 9);
    flow.packets++;
    if (track.nextPsn >= 0 && psnDiff(psn, track.nextPsn) < 0) flow.retransmittedPackets++;
    else {
      flow.sentBytes += length - OVERHEAD_BYTES[opcode] - ((bytes[offset + 1] >> BTH_PAD_SHIFT) & 3);
      track.nextPsn = psnAdd(psn, 1);
    }
  }

  #onCnp(qpn: number): void {
    const flow = this.#flows.get(qpn);
    if (flow !== undefined) flow.cnps++;
  }
}
