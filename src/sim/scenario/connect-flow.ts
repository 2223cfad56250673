/** Makes the two queue pairs of a flow and connects them; no virtual time passes. */

import type { RateControlOptions } from '../../dcqcn/schemes.js';
import { Access } from '../../verbs/access.js';
import type { QueuePair } from '../../verbs/queue-pair.js';
import { Flow, SPARE_RECEIVES } from './flow.js';
import type { FlowPlan } from './flow-plan.js';
import type { ScenarioHost } from './scenario-host.js';
import type { Scenario } from './schema.js';

const RD_ATOMIC = 16;
const MIN_RNR_TIMER = 12;

/** Creates both queue pairs by `plan`, takes them to RTS with `nic`'s timeouts and retries, and adds the flow to both hosts. */
export async function connectFlow(
  plan: FlowPlan,
  source: ScenarioHost,
  sink: ScenarioHost,
  nic: Scenario['nic'],
): Promise<Flow> {
  const sourceQp = await createQp(source, plan);
  const sinkQp = await createQp(sink, plan);
  await connect(sourceQp, sink, sinkQp.qpn, nic, plan.cc);
  await connect(sinkQp, source, sourceQp.qpn, nic, plan.sinkCc);
  const flow = new Flow(plan, source, sink, sourceQp, sinkQp);
  source.add(flow);
  sink.add(flow);
  return flow;
}

function createQp(host: ScenarioHost, { op, outstanding }: FlowPlan): Promise<QueuePair> {
  return host.pd.createQp({
    sendCq: host.cq,
    maxSendWr: outstanding,
    maxRecvWr: op === 'send' ? outstanding + SPARE_RECEIVES : 1,
    maxInlineBytes: 0,
  });
}

async function connect(
  qp: QueuePair,
  peer: ScenarioHost,
  destQpn: number,
  nic: Scenario['nic'],
  rateControl: RateControlOptions,
): Promise<void> {
  await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
  await qp.modify({
    state: 'RTR',
    av: { address: peer.station.address },
    pathMtu: nic.mtu,
    destQpn,
    remoteSourcePort: 'flow',
    rqPsn: 0,
    maxDestRdAtomic: RD_ATOMIC,
    minRnrTimer: MIN_RNR_TIMER,
    recovery: nic.recovery,
    inflightPackets: nic.inflight,
    rateControl,
  });
  await qp.modify({ state: 'RTS', sqPsn: 0, timeout: nic.timeout, retryCnt: 7, rnrRetry: 7, maxRdAtomic: RD_ATOMIC });
}
