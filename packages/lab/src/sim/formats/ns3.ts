/**
 * Topology and flow files of two ns-3 simulators: HPCC's (github.com/alibaba-edu/High-Precision-Congestion-Control) and
 * the one that it grew from, ns3-rdma (github.com/bobzhuyb/ns3-rdma). Numbers are between white space; what follows the
 * last one that is announced is a comment.
 *
 * A topology: `nodes switches links`, the numbers of the switches, then for each link
 * `node node rate delay [error rate]`. Node n becomes the host `hn` or the switch `sn`. Error rates must be 0 here: use
 * fault rules.
 *
 * Flows: their number, then one line each. HPCC: `from to priority port bytes start`; ns3-rdma:
 * `from to priority packets start stop`. Both have six columns; seconds count from where the file says.
 */

import { RoceError } from 'rocev2/internal/core';
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

const UNITS: Readonly<Record<string, number>> = { bps: 1, Kbps: 1e3, Mbps: 1e6, Gbps: 1e9, Tbps: 1e12 };
const TIMES: Readonly<Record<string, number>> = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };
const NS_PER_S = 1e9;

/** Throws ERR_ROCE_MALFORMED for what is no topology of theirs. */
export function parseNs3Topology(text: string): Topology {
  const lines = linesOf(text);
  const [nodes, switchCount, linkCount] = wholes(lines[0], 3, 'the first line is: nodes switches links');
  const switchLine = switchCount === 0 ? [] : lines[1];
  const ids = new Set(wholes(switchLine, switchCount, `${switchCount} numbers of switches follow`));
  const nameOf = (id: number) => `${ids.has(id) ? 's' : 'h'}${id}`;
  const all = Array.from({ length: nodes }, (_, id) => id);
  const first = switchCount === 0 ? 1 : 2;
  const links = Array.from({ length: linkCount }, (_, i): LinkPlan => {
    const line = lines[first + i] ?? [];
    const [a, b] = wholes(line, 2, `link ${i} is: node node rate delay`);
    if (a >= nodes || b >= nodes) throw malformed(`link ${i} ends at a node that is not there`);
    if (Number(line[4] ?? 0) !== 0) throw malformed(`link ${i} has an error rate: write a fault rule instead`);
    return { a: nameOf(a), b: nameOf(b), rateBps: quantity(line[2], UNITS, i), delayNs: quantity(line[3], TIMES, i) };
  });
  return {
    hosts: all.filter((id) => !ids.has(id)).map(nameOf),
    switches: all.filter((id) => ids.has(id)).map(nameOf),
    links,
  };
}

/**
 * The flows, with times from the first start on. `packetBytes`: payload of a packet, where the file counts packets
 * (ns3-rdma: 1000). Throws ERR_ROCE_MALFORMED for what is no file of flows.
 */
export function parseNs3Flows(text: string, format: Ns3FlowFormat, packetBytes = 1000): ListedFlow[] {
  const lines = linesOf(text);
  const [count] = wholes(lines[0], 1, 'the first line is the number of flows');
  const flows = Array.from({ length: count }, (_, i) => {
    const line = (lines[i + 1] ?? []).map(Number);
    if (line.length < 6 || line.slice(0, 6).some((value) => !Number.isFinite(value) || value < 0)) {
      throw malformed(`flow ${i} is not six numbers`);
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

function quantity(text: string | undefined, units: Readonly<Record<string, number>>, link: number): number {
  const match = /^([\d.]+)([A-Za-z]+)$/.exec(text ?? '');
  const unit = match === null ? undefined : units[match[2]];
  const value = Number(match?.[1]) * (unit ?? Number.NaN);
  if (!Number.isFinite(value)) throw malformed(`link ${link}: '${text}' is none of ${Object.keys(units).join(', ')}`);
  return value;
}

function malformed(what: string): RoceError {
  return new RoceError('ERR_ROCE_MALFORMED', `this file cannot be read: ${what}`);
}
