import { setTimeout as delay } from 'node:timers/promises';
import { fillPattern, type LatencySamples } from '@rocev2/command';
import { NS_PER_MS, RoceError } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import { STATUS_RETRY_EXC_ERR } from 'rocev2/internal/memory';
import { completionError, type SendWorkRequest, type WorkCompletion } from 'rocev2/internal/verbs';
import {
  type Endpoint,
  grhBytes,
  receiveDepth,
  type TransferFlow,
  type TransferOp,
  type TransferPlan,
} from './endpoint.js';
import type { Interval } from './intervals.js';

export type TrafficEndpoint = Pick<
  Endpoint,
  | 'device'
  | 'plan'
  | 'flows'
  | 'region'
  | 'sendCq'
  | 'recvCq'
  | 'arrivals'
  | 'largestBytes'
  | 'rxDepth'
  | 'inlineBytes'
  | 'arrivedBefore'
> & {
  readonly channel: { readonly isOpen: boolean };
};

export function sizesOf({ allSizes, sizeBytes }: TransferPlan): number[] {
  if (!allSizes) return [sizeBytes];
  const sizes: number[] = [];
  for (let bytes = 2; bytes <= sizeBytes; bytes *= 2) sizes.push(bytes);
  return sizes;
}

/** Memory and receives are those of the largest size. */
export function beginRound<E extends TrafficEndpoint>(endpoint: E, sizeBytes: number): E {
  endpoint.arrivals.expectedBytes = sizeBytes;
  const arrivedBefore = arrivedMessages(endpoint) + endpoint.arrivedBefore;
  return { ...endpoint, plan: { ...endpoint.plan, sizeBytes }, arrivedBefore };
}

export interface RoundTally {
  /** Operations completed on each flow; in a latency test, round trips. */
  readonly counts: readonly number[];
  /** Null: only the receiver knows. */
  readonly lost: number | null;
  readonly seconds: number;
  readonly latency: LatencySamples;
  readonly peakBps?: number | null;
  readonly intervals?: readonly Interval[];
}

export function check(wc: WorkCompletion, endpoint: TrafficEndpoint): void {
  if (wc.status === 0) return;
  const flow = wc.status === STATUS_RETRY_EXC_ERR ? endpoint.flows.find(({ qp }) => qp.qpn === wc.qpn) : undefined;
  throw completionError(wc, !endpoint.channel.isOpen, flow && silenceOf(wc, flow, endpoint));
}

function silenceOf({ vendorError }: WorkCompletion, { agreement }: TransferFlow, { device }: TrafficEndpoint): string {
  const { peer, remoteQpn } = agreement;
  const { rx_accepted: heard, tx_retransmitted: again } = device.counters();
  const hex = (value: number) => `0x${value.toString(16).padStart(6, '0')}`;
  const last = heard === 0 ? 'nothing was ever heard from it' : `${heard} packets were heard from it before`;
  return `${peer} QP ${hex(remoteQpn)} has not acknowledged PSN ${hex(vendorError)}; ${again} packets were sent again, ${last}`;
}

/**
 * The work request of one operation on a flow: a message of the plan's size between the flow's own buffer and the
 * peer's. A message of up to
 * `inlineBytes` is copied into the work request, where the operation sends one.
 */
export function operation(op: TransferOp, endpoint: TrafficEndpoint, flow: TransferFlow): SendWorkRequest {
  const { plan } = endpoint;
  const remote = flow.agreement.region!;
  const target = { remoteAddr: remote.addr, rkey: remote.rkey };
  const from = ownOffset(plan, flow);
  const sges = [endpoint.region.sge(from, plan.sizeBytes)];
  const data = messageData(endpoint, from);
  switch (op) {
    case 'write':
      return { opcode: 'RDMA_WRITE', ...data, ...target };
    case 'read':
      return { opcode: 'RDMA_READ', sges, ...target };
    case 'send':
      return { opcode: 'SEND', ...data, ...flow.agreement.destination };
    default:
      return { opcode: 'ATOMIC_FETCH_AND_ADD', add: 1n, sges, ...target };
  }
}

export function messageData({ region, plan, inlineBytes }: TrafficEndpoint, from: number) {
  const { sizeBytes } = plan;
  if (sizeBytes > 0 && sizeBytes <= inlineBytes) return { inline: region.bytes.subarray(from, from + sizeBytes) };
  return { sges: [region.sge(from, sizeBytes)] };
}

/** If both sides send, it is not the buffer that the peer's operations use. */
export function ownOffset({ bidirectional }: TransferPlan, { offset, secondOffset }: TransferFlow): number {
  return bidirectional ? secondOffset : offset;
}

function prepareData(endpoint: Endpoint, role: 'client' | 'server'): void {
  const { plan, region, flows } = endpoint;
  if (plan.op === 'atomic') return;
  if (!plan.bidirectional && (plan.op === 'read') !== (role === 'server')) return;
  flows.forEach((flow, i) => {
    const at = plan.op === 'read' ? flow.offset : ownOffset(plan, flow);
    const seed = plan.bidirectional && role === 'server' ? plan.qps + i : i;
    fillPattern(region.bytes.subarray(at, at + plan.sizeBytes), seed);
  });
}

/** Posts a receive into the flow's area; wr_id is the index of the flow. */
export function postReceive(endpoint: TrafficEndpoint, flow: number): void {
  const { flows, region, plan, largestBytes } = endpoint;
  const grh = grhBytes(plan);
  const data = region.sge(flows[flow].offset, largestBytes);
  flows[flow].qp.postRecv({ wrId: flow, sges: grh === 0 ? [data] : [region.sge(region.length - grh, grh), data] });
}

export function checkLength(wc: WorkCompletion, { plan, arrivals }: TrafficEndpoint): void {
  const bytes = wc.byteLen - grhBytes(plan);
  const expected = arrivals.expectedBytes;
  if (bytes === expected) return;
  throw new RoceError(
    'ERR_ROCE_MISMATCH',
    `received a message of ${bytes} bytes; expected ${expected}`,
    'give both sides the same -s, and -a to both or to none',
  );
}

export function postReceives(endpoint: TrafficEndpoint): void {
  if (endpoint.plan.op !== 'send') return;
  const depth = receiveDepth(endpoint.plan, endpoint.rxDepth);
  endpoint.flows.forEach((_, flow) => {
    for (let i = 0; i < depth; i++) postReceive(endpoint, flow);
  });
}

export async function drainReceives(endpoint: TrafficEndpoint): Promise<void> {
  for await (const wc of endpoint.recvCq) {
    check(wc, endpoint);
    checkLength(wc, endpoint);
    postReceive(endpoint, Number(wc.wrId));
    endpoint.arrivals.add();
  }
}

const QUIET_NS = 300 * NS_PER_MS;
const QUIET_CHECK_MS = 20;

export async function settledArrivals(endpoint: TrafficEndpoint, sent: number): Promise<number> {
  let last = -1;
  for (let sinceNs = nowNs(); nowNs() - sinceNs < QUIET_NS; ) {
    const now = arrivedMessages(endpoint);
    if (now >= sent) return now;
    if (now !== last) sinceNs = nowNs();
    last = now;
    await delay(QUIET_CHECK_MS);
  }
  return last;
}

export function arrivedMessages({ plan, arrivals, device, arrivedBefore }: TrafficEndpoint): number {
  return (plan.op === 'send' ? arrivals.messages : device.counters().rx_write_requests) - arrivedBefore;
}

export function prepare(endpoint: Endpoint, role: 'client' | 'server'): void {
  prepareData(endpoint, role);
  if (role === 'server' || endpoint.plan.bidirectional) postReceives(endpoint);
}
