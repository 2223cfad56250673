/**
 * A flow is one direction to one QP, seen at one interface. It can carry two independent PSN sequences: the sender's
 * requests, and its responses to the other side's. The tracker sees packets at the capture point, not at the receiver.
 * A PSN before the newest one counts as retransmitted, also when the first copy was lost before it could be captured.
 */

import {
  OP_ATOMIC_ACK,
  OP_CNP,
  OP_READ_REQUEST,
  OP_READ_RESPONSE,
  OPCODES,
  type OpcodeInfo,
  PLACE_FIRST,
  PLACE_MIDDLE,
} from '../../packet/opcode.js';
import { psnAdd, psnDiff } from '../../packet/psn.js';
import { ECN_CE } from '../datagram.js';
import type { DecodedPacket } from './decoded-packet.js';

/** What is remarkable about a packet. */
export type FlowEvent =
  | { readonly kind: 'retransmission' }
  | { readonly kind: 'gap'; readonly missing: number }
  | { readonly kind: 'nak' }
  | { readonly kind: 'rnr_nak' }
  | { readonly kind: 'icrc_bad' }
  | { readonly kind: 'malformed' };

/** One flow so far. */
export interface FlowSummary {
  /** A capture at both ends of a wire has every packet twice, once an interface. */
  readonly interfaceId: number;
  /** IP address of the sender. */
  readonly source: string;
  /** IP address of the receiver. */
  readonly destination: string;
  /** The receiving queue pair. */
  readonly destQpn: number;
  /** All that are well formed, those with a bad ICRC included. */
  packets: number;
  /** Bytes of payload, including retransmissions. */
  payloadBytes: number;
  /** Packets whose PSN is not beyond the newest one. */
  retransmitted: number;
  /** Gaps in the PSNs. */
  gaps: number;
  /** PSNs that are missing, over all gaps. */
  missingPsns: number;
  /** NAKs of all kinds but RNR. */
  naks: number;
  /** NAKs of receivers that were not ready. */
  rnrNaks: number;
  /** Congestion notification packets. */
  cnps: number;
  /** Packets marked CE. */
  ceMarked: number;
  /** Packets whose ICRC is wrong. */
  icrcBad: number;
}

/** The smallest path MTU: an upper bound for the PSNs of a READ while the flow's MTU is not known. */
const SMALLEST_MTU = 256;
const REMEMBERED_MADS = 256;

interface FlowState {
  readonly summary: FlowSummary;
  /** First PSN of the newest request packet, and the bytes it asks for if it is a READ. */
  requestPsn: number | undefined;
  requestReadBytes: number;
  /** PSN of the newest response packet with data, and whether its message continues. */
  responsePsn: number | undefined;
  responseGoesOn: boolean;
  readonly mads: Set<string>;
}

export class FlowTracker {
  readonly #flows = new Map<string, FlowState>();
  /** Path MTU by pair of addresses; 0 where connections of different MTUs were seen. */
  readonly #mtus = new Map<string, number>();

  observe(packet: DecodedPacket): FlowEvent[] {
    const { bth } = packet;
    if (bth === undefined) return packet.psp === undefined ? [{ kind: 'malformed' }] : [];
    const flow = this.#flow(packet, bth.destQpn);
    const { summary } = flow;
    summary.packets++;
    if (packet.icrc === 'bad') {
      summary.icrcBad++;
      return [{ kind: 'icrc_bad' }]; // the receiver drops it, so it changes nothing
    }
    summary.payloadBytes += bth.payloadBytes;
    if (packet.ecn === ECN_CE) summary.ceMarked++;

    const events = this.#sequenceEvents(flow, packet, OPCODES[bth.opcode]!);
    for (const event of events) {
      if (event.kind === 'retransmission') summary.retransmitted++;
      if (event.kind === 'gap') {
        summary.gaps++;
        summary.missingPsns += event.missing;
      }
    }
    if (packet.aeth?.kind === 'nak') {
      summary.naks++;
      events.push({ kind: 'nak' });
    } else if (packet.aeth?.kind === 'rnr_nak') {
      summary.rnrNaks++;
      events.push({ kind: 'rnr_nak' });
    }
    return events;
  }

  get summaries(): FlowSummary[] {
    return Array.from(this.#flows.values(), (flow) => flow.summary);
  }

  #sequenceEvents(flow: FlowState, packet: DecodedPacket, info: OpcodeInfo): FlowEvent[] {
    const { psn, payloadBytes } = packet.bth!;
    const pair = [packet.source, packet.destination].sort().join(' ');
    if (info.place === PLACE_FIRST || info.place === PLACE_MIDDLE) {
      const known = this.#mtus.get(pair);
      this.#mtus.set(pair, known === undefined || known === payloadBytes ? payloadBytes : 0);
    }
    if (info.kind === OP_CNP) {
      flow.summary.cnps++;
      return [];
    }
    if (info.transport === 'UD') return packet.mad === undefined ? [] : madEvents(flow, packet.mad);
    if (info.kind === OP_READ_RESPONSE || info.kind === OP_ATOMIC_ACK) return responseEvents(flow, psn, info);
    if (packet.aeth !== undefined) return []; // acknowledgements are coalesced and repeated at will
    const readBytes = info.kind === OP_READ_REQUEST ? packet.reth!.dmaLength : 0;
    return requestEvents(flow, psn, readBytes, this.#mtus.get(pair) ?? 0);
  }

  #flow({ interfaceId, source, destination }: DecodedPacket, destQpn: number): FlowState {
    const key = `${interfaceId} ${source} ${destination} ${destQpn}`;
    let flow = this.#flows.get(key);
    if (flow === undefined) {
      const counts = {
        packets: 0,
        payloadBytes: 0,
        retransmitted: 0,
        gaps: 0,
        missingPsns: 0,
        naks: 0,
        rnrNaks: 0,
        cnps: 0,
        ceMarked: 0,
        icrcBad: 0,
      };
      flow = {
        summary: { interfaceId, source, destination, destQpn, ...counts },
        requestPsn: undefined,
        requestReadBytes: 0,
        responsePsn: undefined,
        responseGoesOn: false,
        mads: new Set(),
      };
      this.#flows.set(key, flow);
    }
    return flow;
  }
}

/**
 * `mtu` 0: not known; then a READ may have taken any number of PSNs from 1 to the number that the smallest MTU needs.
 */
function requestEvents(flow: FlowState, psn: number, readBytes: number, mtu: number): FlowEvent[] {
  const previous = flow.requestPsn;
  if (previous !== undefined) {
    const earliest = psnAdd(previous, mtu === 0 ? 1 : psnsOf(flow.requestReadBytes, mtu));
    const latest = psnAdd(previous, psnsOf(flow.requestReadBytes, mtu === 0 ? SMALLEST_MTU : mtu));
    if (psnDiff(psn, earliest) < 0) return [{ kind: 'retransmission' }];
    flow.requestPsn = psn;
    flow.requestReadBytes = readBytes;
    const missing = psnDiff(psn, latest);
    return missing > 0 ? [{ kind: 'gap', missing }] : [];
  }
  flow.requestPsn = psn;
  flow.requestReadBytes = readBytes;
  return [];
}

/** A READ takes the PSNs of its response packets; everything else takes one. */
function psnsOf(readBytes: number, mtu: number): number {
  return Math.max(1, Math.ceil(readBytes / mtu));
}

/**
 * Between two messages a jump is normal: the PSNs belong to requests that are only acknowledged. Inside one it is not.
 */
function responseEvents(flow: FlowState, psn: number, info: OpcodeInfo): FlowEvent[] {
  const previous = flow.responsePsn;
  if (previous !== undefined && psnDiff(psn, previous) <= 0) return [{ kind: 'retransmission' }];
  const missing = previous !== undefined && flow.responseGoesOn ? psnDiff(psn, previous) - 1 : 0;
  flow.responsePsn = psn;
  flow.responseGoesOn = info.place === PLACE_FIRST || info.place === PLACE_MIDDLE;
  return missing > 0 ? [{ kind: 'gap', missing }] : [];
}

function madEvents(flow: FlowState, mad: { readonly name: string; readonly transactionId: string }): FlowEvent[] {
  const key = `${mad.name} ${mad.transactionId}`;
  if (flow.mads.has(key)) return [{ kind: 'retransmission' }];
  if (flow.mads.size >= REMEMBERED_MADS) flow.mads.clear();
  flow.mads.add(key);
  return [];
}
