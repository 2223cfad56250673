/**
 * Reports a broken rule, or that the capture does not show enough; a gap in the capture is never reported as a fault of
 * the peers.
 */

import { type CapturedPacket, LeftOut, PacketView, SEEN, separated } from 'rocev2/internal/capture';
import { checkKind, checkObject, checkOneOf, checkOptions, checkWhole, type OptionNames } from 'rocev2/internal/core';
import { ICRC_BYTES, IpAddress, isPspOfRoce, PSP_HEADER_BYTES, UDP_BYTES } from 'rocev2/internal/packet';
import { CaptureClock } from './capture-clock.js';
import { JUDGED_RULES } from './catalogue.js';
import { Connections } from './connections.js';
import { FITTED_CNPS_MIN, fitDcqcn } from './dcqcn-fit.js';
import { type Finding, Ledger, type RuleResult } from './ledger.js';
import { type Choice, type Measure, Measures } from './measures.js';
import { carriedIcrc, computedIcrc } from './packet-icrc.js';
import { PACKET_CUT, PACKET_FOREIGN, PACKET_SOUND, PacketRules } from './packet-rules.js';
import { type RuleListener, RuleReporter } from './rule-reporter.js';

/** Options of an audit: rules, and facts about the capture. */
export interface AuditOptions {
  /** Numbers of the rules to check. Default: all. */
  readonly rules?: readonly number[] | undefined;
  /** UDP ports of RoCEv2. Default: 4791. */
  readonly udpPorts?: readonly number[] | undefined;
  /** IP address of the host at which the capture was made. Absent: not known. */
  readonly capturedAt?: string | undefined;
  /** Fit the parameters of DCQCN to the rates of senders. Default false. */
  readonly fitsRates?: boolean | undefined;
  /** Called for each measured value and each choice. */
  readonly listener?: RuleListener | undefined;
}

const AUDIT_OPTIONS: OptionNames<AuditOptions> = {
  rules: true,
  udpPorts: true,
  capturedAt: true,
  fitsRates: true,
  listener: true,
};

/** Packets of a file by result. */
export interface AuditedPackets {
  /** All; those that segmentation offload has merged count singly. */
  readonly total: number;
  /** RoCEv2. */
  readonly roce: number;
  /** RoCEv2 that a receiver drops: malformed, or with a wrong ICRC. */
  readonly unsound: number;
  /** RoCEv2 with opcodes whose form is not known here: RD, XRC, those of manufacturers. */
  readonly foreign: number;
  /** Protected (in PSP), which cannot be checked: left out. */
  readonly protected: number;
  /** In tunnels (GRE, VXLAN, Geneve, MPLS, PPPoE, IP in IP) or encrypted (ESP, MACsec): left out. */
  readonly tunnelled: number;
  /**
   * Captured too short to be read; those that are cut inside or after the BTH also count as RoCEv2 packets.
   */
  readonly cut: number;
  /** Of link types that are not read. */
  readonly unknownLink: number;
  /** RoCE v1 (EtherType 0x8915): left out. */
  readonly roceV1: number;
  /** Packets of the file in which segmentation offload had merged several; these were separated. */
  readonly merged: number;
  /** The same, but the capture does not show where each ends: left out. */
  readonly inseparable: number;
}

/** What an audit found. */
export interface AuditReport {
  /** Packets of the file. */
  readonly packets: AuditedPackets;
  /** Directions to queue pairs, and connections of which both are known. */
  readonly flows: number;
  /** Connections of which both directions are known. */
  readonly connections: number;
  /** Answers whose requests were not found. */
  readonly unmatchedAnswers: number;
  /** One for each rule that was checked. */
  readonly rules: readonly RuleResult[];
  /** In the order of the capture; at most 100 for each rule and verdict. */
  readonly findings: readonly Finding[];
  /** Times and counts, without a verdict. */
  readonly measures: readonly Measure[];
  /** What peers chose where a rule leaves a choice. */
  readonly choices: readonly Choice[];
}

const ROCE_UDP_PORT = 4791;
const FITS_MAX = 4;
const SHORTEST_ROCE_BYTES = 16;

/** Takes the packets of one capture in order. */
export class Audit {
  readonly #ledger: Ledger;
  readonly #connections: Connections;
  readonly #packetRules: PacketRules;
  readonly #measures = new Measures();
  readonly #seen = new PacketView();
  readonly #ports: ReadonlySet<number>;
  readonly #judgesPort: boolean;
  #fitsRates: boolean;
  readonly #clock = new CaptureClock();
  readonly #leftOut = new LeftOut();
  /** Of the file: what findings count by. */
  #entries = 0;
  #total = 0;
  #roce = 0;
  #unsound = 0;
  #foreign = 0;
  #merged = 0;

  /**
   * Throws ERR_ROCE_UNKNOWN_NAME for an option that does not exist, ERR_ROCE_OUT_OF_RANGE for a rule that does not
   * exist or an impossible port. Throws ERR_ROCE_INVALID_ARGUMENT for another kind of value, ERR_ROCE_MALFORMED for
   * `capturedAt` that is not an IP address.
   */
  constructor(options: AuditOptions = {}) {
    checkOptions('Audit', options, AUDIT_OPTIONS);
    const { rules, udpPorts = [ROCE_UDP_PORT], capturedAt, fitsRates = false, listener } = options;
    const known = JUDGED_RULES.map(({ id }) => id);
    checkKind('rules', rules, rules === undefined || Array.isArray(rules), 'a list of numbers');
    for (const rule of rules ?? []) checkOneOf('a rule', rule, known);
    checkKind('udpPorts', udpPorts, Array.isArray(udpPorts), 'a list of numbers');
    for (const port of udpPorts) checkWhole('a UDP port', port, 0, 65_535);
    if (capturedAt !== undefined) IpAddress.parse(capturedAt);
    checkKind('fitsRates', fitsRates, typeof fitsRates === 'boolean', 'true or false');
    if (listener !== undefined) checkObject('listener', listener, 'an object of functions');
    this.#ledger = new Ledger(new Set(rules ?? known));
    this.#connections = new Connections(new RuleReporter(this.#ledger, this.#measures, listener), capturedAt);
    this.#packetRules = new PacketRules(this.#ledger, (seen) => this.#connections.roadName(seen));
    this.#fitsRates = fitsRates;
    this.#ports = new Set(udpPorts);
    this.#judgesPort = udpPorts.length === 1 && udpPorts[0] === ROCE_UDP_PORT;
  }

  /** Takes the next packet of the file; its bytes are not kept. */
  take(captured: CapturedPacket): void {
    const { train } = captured;
    this.#total++;
    if (train === undefined || train.index === 0) this.#entries++;
    if (this.#total === 1) this.#clock.begin(captured.timestampNs);
    const seen = this.#seen;
    const timeNs = this.#clock.sinceBegin(captured.timestampNs);
    const kind = seen.read(captured, this.#entries, timeNs);
    if (kind !== SEEN.UDP) {
      this.#leftOut.add(kind, captured);
      return;
    }
    if (!this.#ports.has(seen.destinationPort)) {
      if (this.#isRoceElsewhere(seen)) this.#check(seen, true);
      else this.#leftOut.addToOtherPort(seen);
      return;
    }
    const isCorrect = hasCorrectIcrc(seen);
    const parts = isCorrect ? [captured] : separated(captured, this.#ports);
    if (parts[0].train?.count === 0) this.#leaveMerged(seen);
    else if (parts[0] !== captured) {
      this.#merged++;
      this.#total--;
      this.#entries--;
      for (const part of parts) this.take(part);
    } else if (isProtected(seen)) this.#leftOut.protected++;
    else {
      if (this.#judgesPort) this.#ledger.pass(7);
      this.#check(seen, isCorrect);
    }
  }

  #check(seen: PacketView, isCorrect: boolean): void {
    this.#roce++;
    const outcome = this.#packetRules.check(seen, isCorrect);
    if (outcome === PACKET_SOUND) this.#connections.take(seen);
    else if (outcome === PACKET_FOREIGN) this.#foreign++;
    else if (outcome === PACKET_CUT) this.#leftOut.addCut();
    else this.#unsound++;
  }

  #leaveMerged(seen: PacketView): void {
    this.#leftOut.inseparable++;
    const text = 'segmentation offload has merged several packets here; the capture does not show where each ends';
    const flow = this.#connections.roadName(seen);
    this.#ledger.cannotTell({ rule: 11, packets: [seen.number], flow, text });
  }

  /** Why the capture has no RoCEv2 packet to check: one sentence for people. */
  get whyNothing(): string {
    return this.#leftOut.whyNothing(this.#total);
  }

  /** Findings so far, in the order of the capture; the list grows. At most 100 for each rule and verdict. */
  get findings(): readonly Finding[] {
    return this.#ledger.findings;
  }

  /** Findings so far, with counts and measures. Rates are fitted at the first call. */
  report(): AuditReport {
    if (this.#fitsRates) this.#fitRates();
    this.#fitsRates = false;
    const leftOut = this.#leftOut;
    return {
      packets: {
        total: this.#total,
        roce: this.#roce,
        unsound: this.#unsound,
        foreign: this.#foreign,
        protected: leftOut.protected,
        tunnelled: leftOut.tunnelled,
        cut: leftOut.cut,
        unknownLink: leftOut.unknownLink,
        roceV1: leftOut.roceV1,
        merged: this.#merged,
        inseparable: leftOut.inseparable,
      },
      flows: this.#connections.flows,
      connections: this.#connections.pairs,
      unmatchedAnswers: this.#connections.unmatchedAnswers,
      rules: this.#ledger.results(JUDGED_RULES),
      findings: this.#ledger.findings,
      measures: this.#measures.measures,
      choices: this.#measures.choices,
    };
  }

  #fitRates(): void {
    const measures = this.#measures;
    const records = this.#connections.rateRecords();
    if (records.some(({ cnpNs }) => cnpNs.length < FITTED_CNPS_MIN)) {
      measures.choose(
        88,
        `fewer than ${FITTED_CNPS_MIN} CNPs for a queue pair: they do not tell DCQCN's parameters`,
        this.#total,
      );
    }
    for (const record of records.filter(({ cnpNs }) => cnpNs.length >= FITTED_CNPS_MIN).slice(0, FITS_MAX)) {
      const fit = fitDcqcn(record);
      if (fit === undefined) {
        measures.choose(88, 'a rate after CNPs that DCQCN does not explain', this.#total);
        continue;
      }
      measures.add('DCQCN g, fitted', 1 / fit.gain);
      measures.add('DCQCN rate timer, fitted', fit.rateTimerNs);
      measures.add('DCQCN R_AI, fitted', fit.additiveIncreaseBps);
    }
  }

  #isRoceElsewhere(seen: PacketView): boolean {
    if (!this.#judgesPort || seen.isCut || seen.udpEnd !== seen.ipEnd) return false;
    if (seen.udpEnd - seen.udp - UDP_BYTES < SHORTEST_ROCE_BYTES || (seen.udpEnd - seen.udp) % ICRC_BYTES !== 0)
      return false;
    if (!this.#connections.isKnownRoad(seen)) return false;
    if (computedIcrc(seen.bytes, seen, seen.udpEnd) !== carriedIcrc(seen.bytes, seen, seen.udpEnd)) return false;
    const flow = this.#connections.roadName(seen);
    const text = `a packet with a right ICRC goes to UDP port ${seen.destinationPort}; expected 4791`;
    this.#ledger.violation({ rule: 7, packets: [seen.number], flow, text });
    return true;
  }
}

function hasCorrectIcrc(seen: PacketView): boolean {
  const { bytes, udp, udpEnd, ipEnd, isCut, hasNoLength } = seen;
  if (isCut || hasNoLength || udpEnd !== ipEnd || udpEnd - udp < UDP_BYTES + SHORTEST_ROCE_BYTES) return false;
  return computedIcrc(bytes, seen, udpEnd) === carriedIcrc(bytes, seen, udpEnd);
}

function isProtected({ bytes, udp, udpEnd }: PacketView): boolean {
  const start = udp + UDP_BYTES;
  return bytes.length >= start + PSP_HEADER_BYTES && isPspOfRoce(bytes, start, udpEnd - start);
}
