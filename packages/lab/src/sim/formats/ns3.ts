/**
 * Topology and flow files of two ns-3 simulators: HPCC's (github.com/alibaba-edu/High-Precision-Congestion-Control) and
 * the one that it grew from, ns3-rdma (github.com/bobzhuyb/ns3-rdma). Numbers are between white space; what follows the
 * last one that is announced is a comment.
 *
 * A topology: `nodes switches links`, the numbers of the switches, then for each link `node node rate delay [error
 * rate]`. Node n becomes the host `hn` or the switch `sn`. Rates and delays are those of ns-3: with its units, or plain
 * numbers of bit/s and seconds. Error rates must be 0 here: use fault rules. Headers with other fields, as simulators
 * of GPU servers write them, are refused.
 *
 * Flows: their number, then one line each. HPCC: `from to priority port bytes start`; ns3-rdma:
 * `from to priority packets start stop`. Both have six columns; seconds count from where the file says.
 */

import { checkKind, checkOneOf, checkWhole, RoceError } from 'rocev2/internal/core';
import type { LinkPlan, Topology } from '../topology.js';

/** One flow of a file. */
export interface ListedFlow {
  /** Host that has the data. */
  readonly from: string;
  /** Host the data goes to. */
  readonly to: string;
  /** All of its payload. */
  readonly bytes: number;
  /** Virtual time of the first message, nanoseconds. */
  readonly start: number;
}

/** Which simulator wrote a file of flows. */
export type Ns3FlowFormat = 'hpcc' | 'ns3-rdma';

/** Bits per second of the units of ns-3's DataRate; a number alone is in bit/s. */
const RATES: Readonly<Record<string, number>> = {
  '': 1,
  ...ratesOf('b/s', 1),
  ...ratesOf('bps', 1),
  ...ratesOf('B/s', 8),
  ...ratesOf('Bps', 8),
};
/** Nanoseconds of the units of ns-3's Time; a number alone is in seconds. */
const TIMES: Readonly<Record<string, number>> = {
  '': 1e9,
  ps: 1e-3,
  ns: 1,
  us: 1e3,
  ms: 1e6,
  s: 1e9,
  min: 60e9,
};
const NS_PER_S = 1e9;
const PACKET_BYTES_MAX = 2 ** 20;

function ratesOf(unit: string, bits: number): Record<string, number> {
  const prefixes = {
    '': 1,
    k: 1e3,
    K: 1e3,
    Ki: 2 ** 10,
    M: 1e6,
    Mi: 2 ** 20,
    G: 1e9,
    Gi: 2 ** 30,
    T: 1e12,
    Ti: 2 ** 40,
  };
  return Object.fromEntries(Object.entries(prefixes).map(([prefix, factor]) => [`${prefix}${unit}`, factor * bits]));
}

/** Throws ERR_ROCE_MALFORMED for a file that is not such a topology. */
export function parseNs3Topology(text: string): Topology {
  checkKind('the topology', text, typeof text === 'string', 'text');
  const lines = linesOf(text);
  const header = numbersIn(lines[0] ?? []);
  if (header.length > 3) {
    const hint = 'read are files whose first line is: nodes switches links';
    throw malformed(`its first line has ${header.length} numbers, a form that is not supported (${hint})`);
  }
  const [nodes, switchCount, linkCount] = wholes(lines[0], 3, 'the first line is: nodes switches links');
  const { words: switchWords, next: first } = wordsFrom(lines, 1, switchCount);
  const ids = new Set(wholes(switchWords, switchCount, `${switchCount} numbers of switches follow`));
  const stray = [...ids].find((id) => id >= nodes);
  if (stray !== undefined) throw malformed(`switch ${stray} is not one of the ${nodes} nodes`);
  const nameOf = (id: number) => `${ids.has(id) ? 's' : 'h'}${id}`;
  const all = Array.from({ length: nodes }, (_, id) => id);
  if (lines.length - first < linkCount) {
    throw malformed(`it announces ${linkCount} links and has ${Math.max(0, lines.length - first)}`);
  }
  const links = Array.from({ length: linkCount }, (_, i): LinkPlan => {
    const line = lines[first + i];
    const [a, b] = wholes(line, 2, `link ${i} is: node node rate delay`);
    if (a >= nodes || b >= nodes) throw malformed(`link ${i} ends at a node that is not there`);
    if (Number(line[4] ?? 0) !== 0) throw malformed(`link ${i} has an error rate: write a fault rule instead`);
    return {
      a: nameOf(a),
      b: nameOf(b),
      rateBps: quantity(line[2], RATES, { link: i, what: 'rate', examples: '25000000000, 25Gbps' }),
      delayNs: quantity(line[3], TIMES, { link: i, what: 'delay', examples: '0.000001, 1us' }),
    };
  });
  return {
    hosts: all.filter((id) => !ids.has(id)).map(nameOf),
    switches: all.filter((id) => ids.has(id)).map(nameOf),
    links,
  };
}

/**
 * The flows, with times from the first start on. `packetBytes`: payload of a packet, where the file counts packets
 * (ns3-rdma: 1000). Throws ERR_ROCE_MALFORMED for a file that is not a file of flows.
 */
export function parseNs3Flows(text: string, format: Ns3FlowFormat, packetBytes = 1000): ListedFlow[] {
  checkKind('the flows', text, typeof text === 'string', 'text');
  checkOneOf('format', format, ['hpcc', 'ns3-rdma']);
  checkWhole('packetBytes', packetBytes, 1, PACKET_BYTES_MAX);
  const lines = linesOf(text);
  const [count] = wholes(lines[0], 1, 'the first line is the number of flows');
  if (numbersIn(lines[0] ?? []).length > 1) throw malformed('its first line has more than the number of flows');
  if (lines.length - 1 < count) throw malformed(`it announces ${count} flows and has ${lines.length - 1}`);
  const flows = Array.from({ length: count }, (_, i) => {
    const line = (lines[i + 1] ?? []).map(Number);
    if (line.length < 6 || line.slice(0, 6).some((value) => !Number.isFinite(value) || value < 0)) {
      throw malformed(`flow ${i} is not six numbers: '${(lines[i + 1] ?? []).join(' ')}'`);
    }
    const [from, to, , fourth, fifth] = line;
    const isHpcc = format === 'hpcc';
    return {
      from: `h${from}`,
      to: `h${to}`,
      bytes: isHpcc ? fifth : fourth * packetBytes,
      start: (isHpcc ? line[5] : fifth) * NS_PER_S,
    };
  });
  const begin = flows.reduce((least, { start }) => Math.min(least, start), Number.POSITIVE_INFINITY);
  return flows.map((flow) => ({ ...flow, start: Math.round(flow.start - begin) }));
}

function linesOf(text: string): string[][] {
  return text
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([first]) => first !== '');
}

function wholes(words: readonly string[] | undefined, count: number, what: string): number[] {
  const numbers = (words ?? []).slice(0, count).map(Number);
  if (numbers.length < count || numbers.some((value) => !Number.isInteger(value) || value < 0)) throw malformed(what);
  return numbers;
}

interface LinkField {
  readonly link: number;
  readonly what: string;
  readonly examples: string;
}

function quantity(
  text: string | undefined,
  units: Readonly<Record<string, number>>,
  { link, what, examples }: LinkField,
): number {
  const match = /^(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)([A-Za-z/]*)$/.exec(text ?? '');
  const value = Number(match?.[1]) * (units[match?.[2] ?? ''] ?? Number.NaN);
  if (Number.isFinite(value)) return value;
  throw malformed(`link ${link}: '${text ?? ''}' is not a ${what}, such as ${examples}`);
}

/** The leading numbers of a line; a comment may follow. */
function numbersIn(line: readonly string[]): string[] {
  const end = line.findIndex((word) => !Number.isFinite(Number(word)));
  return line.slice(0, end < 0 ? line.length : end);
}

/** The words of as many lines as it takes, and the line after them. */
function wordsFrom(lines: readonly string[][], first: number, count: number): { words: string[]; next: number } {
  const words: string[] = [];
  let next = first;
  while (words.length < count && next < lines.length) words.push(...numbersIn(lines[next++]));
  return { words, next };
}

function malformed(what: string): RoceError {
  return new RoceError('ERR_ROCE_MALFORMED', `this file cannot be read: ${what}`);
}
