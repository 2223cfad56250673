import type { PacketView } from 'rocev2/internal/capture';
import {
  BTH_MULTIPATH,
  CNP,
  ENTROPIES_MAX,
  OP_ACK,
  OP_ATOMIC_ACK,
  OP_READ_RESPONSE,
  PLACE_NONE,
} from 'rocev2/internal/packet';
import { Answers } from './answers.js';
import { Marks } from './congestion-watch.js';
import { RateWatch } from './rate-watch.js';
import { Requests } from './requests.js';
import type { RuleReporter } from './rule-reporter.js';

/** Findings of one kind and flow: all packets after a change differ from the first. */
const PATH_FINDINGS_MAX = 8;
const NOT_SEEN = -1;
/** Ports of flows: 0xc000 to 0xffff. */
const FLOW_PORTS = 0x4000;
const FLOW_PORTS_MASK = FLOW_PORTS - 1;

export class PacketFlow {
  readonly name: string;
  readonly destQpn: number;
  partner: PacketFlow | undefined;
  candidate: PacketFlow | undefined;
  candidateHits = 0;
  isConnected = false;
  /** Transport of its queue pair, which drops the packets of others; undefined: no RDMA CM exchange was captured. */
  transport: 'RC' | 'UC' | undefined;
  requests = new Requests();
  marks = new Marks();
  answers = new Answers();
  rate = new RateWatch();
  #dscp = NOT_SEEN;
  #sourcePort = NOT_SEEN;
  readonly #ecnCapable: [number, number] = [NOT_SEEN, NOT_SEEN];
  readonly #pathFindings = new Map<number, number>();

  constructor(name: string, destQpn: number) {
    this.name = name;
    this.destQpn = destQpn;
  }

  begin(startPsn: number | undefined): void {
    this.requests = new Requests();
    this.answers = new Answers();
    this.rate = new RateWatch();
    this.marks = new Marks();
    this.transport = undefined;
    this.partner = undefined;
    this.candidate = undefined;
    this.#dscp = NOT_SEEN;
    this.#sourcePort = NOT_SEEN;
    this.#ecnCapable.fill(NOT_SEEN);
    if (startPsn !== undefined) this.requests.begin(startPsn);
  }

  checkPath(seen: PacketView, reporter: RuleReporter): void {
    const { packet } = seen;
    if (packet.opcode === CNP) return;
    if (this.#dscp === NOT_SEEN) this.#dscp = seen.dscp;
    if (this.#dscp === seen.dscp) reporter.pass(5);
    else this.#pathViolation(5, `DSCP ${seen.dscp}; this flow began with ${this.#dscp}`, reporter);
    if (this.#sourcePort === NOT_SEEN) this.#sourcePort = seen.sourcePort;
    if (this.#sourcePort === seen.sourcePort || this.#isEntropy(seen)) reporter.pass(10);
    else
      this.#pathViolation(10, `UDP source port ${seen.sourcePort}; this flow began with ${this.#sourcePort}`, reporter);
    if (packet.info.place !== PLACE_NONE) this.#checkEcn(seen, reporter);
  }

  /**
   * A multipath connection of this project announces that and uses consecutive ports; the first one seen may be any of
   * them.
   */
  #isEntropy({ packet, sourcePort }: PacketView): boolean {
    if ((packet.resv6 & BTH_MULTIPATH) === 0) return false;
    const distance = (sourcePort - this.#sourcePort) & FLOW_PORTS_MASK;
    return (
      Math.min(sourcePort, this.#sourcePort) >= 3 * FLOW_PORTS &&
      Math.min(distance, FLOW_PORTS - distance) < ENTROPIES_MAX
    );
  }

  #checkEcn({ ecn, packet }: PacketView, reporter: RuleReporter): void {
    const group = packet.info.kind === OP_READ_RESPONSE ? 1 : 0;
    const capable = ecn === 0 ? 0 : 1;
    if (this.#ecnCapable[group] === NOT_SEEN) this.#ecnCapable[group] = capable;
    if (this.#ecnCapable[group] === capable) reporter.pass(6);
    else {
      const words = ['not ECN-capable', 'ECN-capable'];
      this.#pathViolation(
        6,
        `${packet.info.name} is ${words[capable]}; the first packet with data was ${words[1 - capable]}`,
        reporter,
      );
    }
  }

  #pathViolation(rule: number, text: string, reporter: RuleReporter): void {
    const count = (this.#pathFindings.get(rule) ?? 0) + 1;
    this.#pathFindings.set(rule, count);
    if (count <= PATH_FINDINGS_MAX) reporter.violation(rule, text);
  }
}

export function isAnswer(kind: number): boolean {
  return kind === OP_ACK || kind === OP_READ_RESPONSE || kind === OP_ATOMIC_ACK;
}
