import { createSender, recoverySettings } from 'rocev2/internal/retransmit';
import { lossModelOf } from '../../fluid/loss-model.js';
import { closedFormEfficiency, windowUse } from '../../fluid/recovery-efficiency.js';
import type { LinkPlan } from '../topology.js';
import type { FlowFacts } from './facts.js';
import type { Scenario } from './schema.js';
import { PACKET_OVERHEAD_BYTES, type UnloadedTimes } from './slowdown.js';

/**
 * The share of useful packets by the closed form of the recovery scheme; undefined where there is none. It holds for a
 * single WRITE or SEND flow without end and without rate control, and one rule that drops its packets.
 */
export function theoreticalEfficiency(
  { nic, faults, flows: workloads }: Scenario,
  flows: readonly FlowFacts[],
  links: readonly LinkPlan[],
  unloaded: UnloadedTimes,
): number | undefined {
  const [flow, ...others] = flows as readonly (FlowFacts | undefined)[];
  const [workload] = workloads;
  if (
    flow === undefined ||
    others.length > 0 ||
    flow.plan.bytes < Number.POSITIVE_INFINITY ||
    workload.kind !== 'flows'
  )
    return undefined;
  const { name } = workload.cc ?? nic.cc;
  if (workload.op === 'read' || name !== 'none') return undefined;
  const { from, to } = flow.plan;
  const loss = lossModelOf(faults, from);
  if (loss === undefined) return undefined;
  const { rateBps } = links.find(({ a, b }) => a === from || b === from)!;
  const packetNs = ((nic.mtu + PACKET_OVERHEAD_BYTES) * 8e9) / rateBps;
  const roundTripPackets = unloaded.ns(from, to, nic.mtu) / packetNs;
  // The packet behind the lost one makes the receiver send a NAK; the sender goes back when it arrives.
  const depth = Math.min(nic.inflight, 1 + Math.floor(roundTripPackets));
  const recovery = recoverySettings(nic.recovery);
  const useful = closedFormEfficiency(recovery.name, loss, Math.ceil(workload.message / nic.mtu), depth);
  const { goesBack, inFlightMax } = createSender(recovery);
  if (useful === undefined || goesBack) return useful;
  return useful * windowUse(loss, Math.min(nic.inflight, inFlightMax), roundTripPackets);
}
