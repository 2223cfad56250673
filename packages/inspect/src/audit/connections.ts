/**
 * RDMA CM says it in its REQ and REP. Without CM a connection is known by an answer whose PSN fits the requests of
 * exactly one other direction.
 */

import type { PacketView } from 'rocev2/internal/capture';
import { readU32, toHex } from 'rocev2/internal/core';
import { IpAddress, OP_CNP, OP_TRIMMED } from 'rocev2/internal/packet';
import {
  CM_REJ,
  CM_REP,
  CM_REQ,
  type CmSide,
  cmAttribute,
  cmFormError,
  isCmMessage,
  readRep,
  readReq,
  rejectReason,
} from './cm-message.js';
import { CongestionWatch } from './congestion-watch.js';
import { isAnswer, PacketFlow } from './flow.js';
import { Predictability } from './predictability.js';
import type { RateRecord } from './rate-watch.js';
import type { RuleReporter } from './rule-reporter.js';

const GSI_QPN = 1;
const FLOWS_MAX = 65_536;
const REQS_MAX = 4096;
const CANDIDATES_MAX = 64;
const CERTAIN_HITS = 16;
/** REJ reasons of InfiniBand that RoCEv2 does not have. */
const FORBIDDEN_REASONS = new Set([13, 19]);

class Road {
  readonly flows = new Map<number, PacketFlow>();
  readonly name: string;
  back: Road | undefined;
  readonly source: string;
  /** A capture of both ends of a wire has everything twice. */
  readonly interfaceId: number;

  readonly #addresses: Uint8Array;

  constructor(seen: PacketView) {
    this.source = address(seen, 0);
    this.interfaceId = seen.interfaceId;
    this.name = `${this.source} -> ${address(seen, 1)}`;
    const start = addressesAt(seen);
    this.#addresses = seen.bytes.slice(start, start + (seen.family === 4 ? 8 : 32));
  }

  isOf(seen: PacketView): boolean {
    const addresses = this.#addresses;
    const { length } = addresses;
    if (seen.interfaceId !== this.interfaceId || length !== (seen.family === 4 ? 8 : 32)) return false;
    const start = addressesAt(seen);
    for (let i = 0; i < length; i++) if (addresses[i] !== seen.bytes[start + i]) return false;
    return true;
  }
}

export class Connections {
  readonly #roads = new Map<number | string, Map<number | string, Road>>();
  readonly #reqs = new Map<string, CmSide>();
  readonly #reporter: RuleReporter;
  readonly #capturedAt: string | undefined;
  readonly #congestion = new CongestionWatch();
  readonly #predictability = new Predictability();
  #lastRoad: Road | undefined;
  #flows = 0;
  #pairs = 0;
  unfollowed = 0;
  unmatchedAnswers = 0;

  constructor(reporter: RuleReporter, capturedAt?: string) {
    this.#reporter = reporter;
    this.#capturedAt = capturedAt;
  }

  get pairs(): number {
    return this.#pairs;
  }

  get flows(): number {
    return this.#flows;
  }

  rateRecords(): RateRecord[] {
    const records: RateRecord[] = [];
    for (const roads of this.#roads.values()) {
      for (const { flows } of roads.values()) {
        for (const { rate } of flows.values()) if (rate.record !== undefined) records.push(rate.record);
      }
    }
    return records;
  }

  roadName(seen: PacketView): string {
    return this.#road(seen).name;
  }

  isKnownRoad(seen: PacketView): boolean {
    return this.#road(seen).flows.size > 0;
  }

  take(seen: PacketView): void {
    const { packet } = seen;
    const road = this.#road(seen);
    const flow = this.#flow(road, packet.destQpn);
    if (flow === undefined) {
      this.unfollowed++;
      return;
    }
    const reporter = this.#reporter;
    reporter.packet = seen.number;
    reporter.flow = flow.name;
    const { info } = packet;
    if (info.transport === 'UD') {
      if (packet.destQpn === GSI_QPN) this.#takeManagement(seen, road);
      return;
    }
    if (info.transport === 'RC' || info.transport === 'UC') {
      if (flow.transport !== undefined && info.transport !== flow.transport) return;
      flow.checkPath(seen, reporter);
    }
    if (info.kind === OP_CNP) {
      const isCapturedHere = road.source === this.#capturedAt;
      const place = { flow: flow.name, road: road.name, sender: road.source, isCapturedHere };
      this.#congestion.takeCnp(seen, place, flow.partner?.marks, reporter);
      flow.partner?.rate.cnp(seen.timeNs);
      return;
    }
    if (info.kind === OP_TRIMMED) return;
    flow.isConnected = true;
    flow.marks.take(seen);
    if (packet.payloadBytes > 0) flow.rate.take(seen.timeNs, seen.ipEnd - seen.ip, reporter);
    if (isAnswer(info.kind)) this.#takeAnswer(seen, road, flow);
    else {
      if (flow.requests.isForeign(packet.psn)) this.#restart(flow);
      flow.requests.timer.isCapturedHere = road.source === this.#capturedAt;
      if (info.transport === 'RC') flow.requests.takeReliable(packet, seen.ipId, seen.timeNs, reporter);
      else flow.requests.takeUnreliable(packet, seen.ipId, reporter);
    }
  }

  #restart(flow: PacketFlow): void {
    const { partner } = flow;
    flow.begin(undefined);
    if (partner !== undefined) {
      partner.begin(undefined);
      this.#pairs--;
    }
  }

  #takeAnswer(seen: PacketView, road: Road, flow: PacketFlow): void {
    const partner = flow.partner ?? this.#findPartner(seen, road, flow);
    if (partner === undefined) {
      this.unmatchedAnswers++;
      return;
    }
    partner.requests.timer.answered();
    if (partner.requests.next < 0 || partner.requests.isForeign(seen.packet.psn)) {
      this.unmatchedAnswers++;
      return;
    }
    flow.answers.isCapturedHere = road.source === this.#capturedAt;
    flow.answers.take(seen.packet, partner.requests, seen.timeNs, this.#reporter);
    if (partner.requests.nak?.packet === seen.number) partner.marks.lastNakNs = seen.timeNs;
  }

  /**
   * Looks for the requests that this answers; certain at once if there is one queue pair a side, else after sixteen
   * answers.
   */
  #findPartner(seen: PacketView, road: Road, flow: PacketFlow): PacketFlow | undefined {
    const back = road.back;
    if (back === undefined) return undefined;
    let found: PacketFlow | undefined;
    let tried = 0;
    for (const candidate of back.flows.values()) {
      if (candidate.partner !== undefined || candidate.requests.next < 0) continue;
      if (++tried > CANDIDATES_MAX) return undefined;
      if (!candidate.requests.canAnswer(seen.packet.psn, seen.packet.info.kind)) continue;
      if (found !== undefined) return undefined;
      found = candidate;
    }
    if (found === undefined) {
      flow.candidate = undefined;
      return undefined;
    }
    flow.candidateHits = flow.candidate === found ? flow.candidateHits + 1 : 1;
    flow.candidate = found;
    const isOnly = connected(road) === 1 && connected(back) === 1;
    if (!isOnly && flow.candidateHits < CERTAIN_HITS) return undefined;
    this.#pair(flow, found);
    return found;
  }

  #pair(one: PacketFlow, other: PacketFlow): void {
    one.partner = other;
    other.partner = one;
    this.#pairs++;
  }

  #takeManagement(seen: PacketView, road: Road): void {
    const { packet, bytes } = seen;
    const at = packet.payloadOffset;
    if (seen.isCut || !isCmMessage(bytes, at, packet.payloadBytes)) return;
    const reporter = this.#reporter;
    const error = cmFormError(bytes, at, packet.payloadBytes);
    if (error !== undefined) {
      reporter.violation(91, `a CM message with ${error}`);
      return;
    }
    reporter.pass(91);
    const attribute = cmAttribute(bytes, at);
    if (attribute === CM_REJ) {
      const reason = rejectReason(bytes, at);
      if (FORBIDDEN_REASONS.has(reason))
        reporter.violation(92, `a REJ with reason ${reason}, which RoCEv2 does not have`);
      else reporter.pass(92);
    } else if (attribute === CM_REQ) this.#takeReq(readReq(bytes, at), road);
    else if (attribute === CM_REP) this.#takeRep(readRep(bytes, at), road);
  }

  #takeReq(req: CmSide, road: Road): void {
    const key = `${road.interfaceId} ${road.name} ${req.commId}`;
    if (!this.#reqs.has(key)) this.#predictability.take(road, req, this.#reporter);
    if (this.#reqs.size >= REQS_MAX) this.#reqs.delete(this.#reqs.keys().next().value!);
    this.#reqs.set(key, req);
  }

  #takeRep(rep: CmSide, road: Road): void {
    const { back } = road;
    if (back === undefined) return;
    const key = `${back.interfaceId} ${back.name} ${rep.remoteCommId}`;
    const req = this.#reqs.get(key);
    if (req === undefined) return;
    this.#reqs.delete(key); // a REP that is retransmitted begins nothing
    this.#predictability.take(road, rep, this.#reporter);
    const toPassive = this.#flow(back, rep.qpn);
    const toActive = this.#flow(road, req.qpn);
    if (toPassive === undefined || toActive === undefined) return;
    this.#restart(toPassive);
    this.#restart(toActive);
    toPassive.begin(rep.startPsn);
    toActive.begin(req.startPsn);
    for (const [flow, limit, rnrRetryCount] of [
      [toPassive, rep.responderResources, rep.rnrRetryCount],
      [toActive, req.responderResources, req.rnrRetryCount],
    ] as const) {
      if (req.mtu > 0) flow.requests.learnMtu(req.mtu);
      flow.transport = req.isReliable ? 'RC' : 'UC';
      if (!req.isReliable) continue;
      flow.requests.readLimit = limit;
      const { timer } = flow.requests;
      timer.timeoutCode = req.ackTimeout;
      timer.counts.retryCount = req.retryCount;
      timer.counts.rnrRetryCount = rnrRetryCount;
    }
    this.#pair(toPassive, toActive);
  }

  #flow(road: Road, destQpn: number): PacketFlow | undefined {
    let flow = road.flows.get(destQpn);
    if (flow === undefined) {
      if (this.#flows >= FLOWS_MAX) return undefined;
      this.#flows++;
      flow = new PacketFlow(`${road.name} QP 0x${destQpn.toString(16).padStart(6, '0')}`, destQpn);
      road.flows.set(destQpn, flow);
    }
    return flow;
  }

  /** A cache: most packets use the path of the previous one, or its reverse. */
  #road(seen: PacketView): Road {
    const last = this.#lastRoad;
    if (last?.isOf(seen) === true) return last;
    const back = last?.back;
    const road = back?.isOf(seen) === true ? back : this.#findRoad(seen);
    this.#lastRoad = road;
    return road;
  }

  #findRoad(seen: PacketView): Road {
    const { bytes, ip, family, interfaceId } = seen;
    const source = family === 4 ? readU32(bytes, ip + 12) + interfaceId * 0x100000000 : v6Key(seen, ip + 8);
    const destination = family === 4 ? readU32(bytes, ip + 16) : v6Key(seen, ip + 24);
    let roads = this.#roads.get(source);
    if (roads === undefined) {
      roads = new Map();
      this.#roads.set(source, roads);
    }
    let road = roads.get(destination);
    if (road === undefined) {
      road = new Road(seen);
      roads.set(destination, road);
      const backSource = family === 4 ? readU32(bytes, ip + 16) + interfaceId * 0x100000000 : v6Key(seen, ip + 24);
      const backDestination = family === 4 ? readU32(bytes, ip + 12) : v6Key(seen, ip + 8);
      const back = this.#roads.get(backSource)?.get(backDestination);
      if (back !== undefined) {
        road.back = back;
        back.back = road;
      }
    }
    return road;
  }
}

function connected(road: Road): number {
  let count = 0;
  for (const flow of road.flows.values()) if (flow.isConnected) count++;
  return count;
}

function v6Key({ bytes, interfaceId }: PacketView, at: number): string {
  return `${interfaceId} ${toHex(bytes.subarray(at, at + 16))}`;
}

function address(seen: PacketView, which: number): string {
  const { bytes, family } = seen;
  const length = family === 4 ? 4 : 16;
  const at = addressesAt(seen) + which * length;
  return IpAddress.fromBytes(bytes.subarray(at, at + length)).text;
}

function addressesAt({ ip, family }: PacketView): number {
  return ip + (family === 4 ? 12 : 8);
}
