/**
 * Reports a broken rule, or that the capture does not show enough; a gap in the capture is never reported as a fault of
 * the peers.
 */

import type { CapturedPacket } from 'rocev2/internal/capture';
import { ICRC_BYTES, isPspOfRoce, PSP_HEADER_BYTES, UDP_BYTES } from 'rocev2/internal/packet';
import { CaptureClock } from './capture-clock.js';
import { JUDGED_RULES } from './catalogue.js';
import { Connections } from './connections.js';
import { FITTED_CNPS_MIN, fitDcqcn } from './dcqcn-fit.js';
import { type Finding, Ledger, type RuleResult } from './ledger.js';
import { type Choice, type Measure, Measures } from './measures.js';
import { carriedIcrc, computedIcrc } from './packet-icrc.js';
import { PACKET_CUT, PACKET_FOREIGN, PACKET_SOUND, PacketRules } from './packet-rules.js';
import { PacketView, SEEN_CUT, SEEN_OTHER, SEEN_TUNNEL, SEEN_UDP, SEEN_UNKNOWN_LINK } from './packet-view.js';
import { type RuleListener, RuleReporter } from './rule-reporter.js';

/** What an audit checks, and what it knows about the capture. */
export interface AuditOptions {
  /** Numbers of the rules to check. Default: all. */
  readonly rules?: readonly number[];
  /** UDP ports of RoCEv2. Default: 4791. */
  readonly udpPorts?: readonly number[];
  /** IP address of the host at which the capture was made. Absent: not known. */
  readonly capturedAt?: string;
  /** Fit the parameters of DCQCN to the rates of senders. Default false. */
  readonly fitsRates?: boolean;
  /** Called for each measured value and each choice. */
  readonly listener?: RuleListener;
}

/** Packets of a file by what the audit made of them. */
export interface AuditedPackets {
  /** All. */
  readonly total: number;
  /** RoCEv2. */
  readonly roce: number;
  /** RoCEv2 that a receiver drops: malformed, or with a wrong ICRC. */
  readonly unsound: number;
  /** RoCEv2 with opcodes whose form is not known here: RD, XRC, FLUSH, ATOMIC WRITE, those of manufacturers. */
  readonly foreign: number;
  /** Protected (in PSP), which cannot be judged: left out. */
  readonly protected: number;
  /** In GRE, VXLAN, MPLS or IP in IP: left out. */
  readonly tunnelled: number;
  /**
   * Captured too short to be read; those that are cut inside the BTH or behind it are among the RoCEv2 packets, too.
   */
  readonly cut: number;
  /** Of link types that are not read. */
  readonly unknownLink: number;
}

/** What an audit found. */
export interface AuditReport {
  /** What was in the file. */
  readonly packets: AuditedPackets;
  /** Directions to queue pairs, and connections of which both are known. */
  readonly flows: number;
  /** Connections of which both directions are known. */
  readonly connections: number;
  /** Answers whose requests were not found. */
  readonly unmatchedAnswers: number;
  /** One for each rule that was to be judged. */
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
  #total = 0;
  #roce = 0;
  #unsound = 0;
  #foreign = 0;
  #protected = 0;
  readonly #others = [0, 0, 0, 0, 0];

  constructor({ rules, udpPorts = [ROCE_UDP_PORT], capturedAt, fitsRates = false, listener }: AuditOptions = {}) {
    this.#ledger = new Ledger(new Set(rules ?? JUDGED_RULES.map(({ id }) => id)));
    this.#connections = new Connections(new RuleReporter(this.#ledger, this.#measures, listener), capturedAt);
    this.#packetRules = new PacketRules(this.#ledger, (seen) => this.#connections.roadName(seen));
    this.#fitsRates = fitsRates;
    this.#ports = new Set(udpPorts);
    this.#judgesPort = udpPorts.length === 1 && udpPorts[0] === ROCE_UDP_PORT;
  }

  /** Takes the next packet of the file; its bytes are not kept. */
  take(captured: CapturedPacket): void {
    this.#total++;
    if (this.#total === 1) this.#clock.begin(captured.timestampNs);
    const seen = this.#seen;
    const timeNs = this.#clock.sinceBegin(captured.timestampNs);
    const kind = seen.read(captured, this.#total, timeNs);
    if (kind !== SEEN_UDP) {
      this.#others[kind]++;
      return;
    }
    if (!this.#ports.has(seen.destinationPort)) {
      if (!this.#isRoceElsewhere(seen)) {
        this.#others[SEEN_OTHER]++;
        return;
      }
    } else if (isProtected(seen)) {
      this.#protected++;
      return;
    } else if (this.#judgesPort) this.#ledger.pass(7);
    this.#roce++;
    const outcome = this.#packetRules.check(seen);
    if (outcome === PACKET_SOUND) this.#connections.take(seen);
    else if (outcome === PACKET_FOREIGN) this.#foreign++;
    else if (outcome === PACKET_CUT) this.#others[SEEN_CUT]++;
    else this.#unsound++;
  }

  /** What was found so far, in the order of the capture; the list grows. At most 100 for each rule and verdict. */
  get findings(): readonly Finding[] {
    return this.#ledger.findings;
  }

  /** What was found so far, with counts and measures. Rates are fitted at the first call. */
  report(): AuditReport {
    if (this.#fitsRates) this.#fitRates();
    this.#fitsRates = false;
    const others = this.#others;
    return {
      packets: {
        total: this.#total,
        roce: this.#roce,
        unsound: this.#unsound,
        foreign: this.#foreign,
        protected: this.#protected,
        tunnelled: others[SEEN_TUNNEL],
        cut: others[SEEN_CUT],
        unknownLink: others[SEEN_UNKNOWN_LINK],
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

function isProtected({ bytes, udp, udpEnd }: PacketView): boolean {
  const start = udp + UDP_BYTES;
  return bytes.length >= start + PSP_HEADER_BYTES && isPspOfRoce(bytes, start, udpEnd - start);
}
