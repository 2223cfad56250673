import type { RateControlOptions } from 'rocev2/internal/dcqcn';
import { Access, type QueuePair } from 'rocev2/internal/verbs';
import { type LogicalProcess, WHOLE_NETWORK } from '../logical-process.js';
import { Flow, SPARE_RECEIVES } from './flow.js';
import type { FlowPlan } from './flow-plan.js';
import type { ScenarioHost } from './scenario-host.js';
import type { Scenario } from './schema.js';

const RD_ATOMIC = 16;
const MIN_RNR_TIMER = 12;

type NicOptions = Scenario['nic'];

export function reserveFlow(plan: FlowPlan, source: ScenarioHost, sink: ScenarioHost, nic: NicOptions): Flow {
  return new Flow(plan, source, sink, reserveQp(source, sink, nic), reserveQp(sink, source, nic));
}

function reserveQp(host: ScenarioHost, peer: ScenarioHost, { inflight, dscp }: NicOptions): number {
  const remoteGid = peer.station.address.gid;
  return host.station.host.nic.reserve({ remoteGid, remoteUdpPort: 0, dscp, ecn: 0, inflightPackets: inflight });
}

export async function connectFlow(
  flow: Flow,
  nic: NicOptions,
  logicalProcess: LogicalProcess = WHOLE_NETWORK,
): Promise<void> {
  const { plan, source, sink, sourceQpn, sinkQpn } = flow;
  const sourceQp = logicalProcess.owns(plan.from)
    ? await makeQp(source, sourceQpn, plan, (qp) => connect(qp, sink, sinkQpn, nic, plan.cc))
    : undefined;
  const sinkQp = logicalProcess.owns(plan.to)
    ? await makeQp(sink, sinkQpn, plan, (qp) => connect(qp, source, sourceQpn, nic, plan.sinkCc))
    : undefined;
  flow.pair = { sourceQp, sinkQp };
  if (sourceQp !== undefined) source.add(flow);
  if (sinkQp !== undefined) sink.add(flow);
}

/** A packet that arrives for one of them afterwards ends the run. */
export async function disconnectFlow(flow: Flow): Promise<void> {
  const { source, sink, pair } = flow;
  if (pair!.sourceQp !== undefined) await freeQp(source, flow.sourceQpn, pair!.sourceQp, flow);
  if (pair!.sinkQp !== undefined) await freeQp(sink, flow.sinkQpn, pair!.sinkQp, flow);
  flow.pair = undefined;
}

async function freeQp(host: ScenarioHost, qpn: number, qp: QueuePair, flow: Flow): Promise<void> {
  await host.station.host.nic.freeing(qpn, () => qp.close());
  host.remove(flow);
}

function makeQp(
  host: ScenarioHost,
  qpn: number,
  { op, outstanding }: FlowPlan,
  connectIt: (qp: QueuePair) => Promise<void>,
): Promise<QueuePair> {
  return host.station.host.nic.connecting(qpn, async () => {
    const qp = await host.pd.createQp({
      sendCq: host.cq,
      maxSendWr: outstanding,
      maxRecvWr: op === 'send' ? outstanding + SPARE_RECEIVES : 1,
      maxInlineBytes: 0,
    });
    await connectIt(qp);
    return qp;
  });
}

async function connect(
  qp: QueuePair,
  peer: ScenarioHost,
  destQpn: number,
  nic: NicOptions,
  rateControl: RateControlOptions,
): Promise<void> {
  await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
  await qp.modify({
    state: 'RTR',
    av: { address: peer.station.address, dscp: nic.dscp },
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
  await qp.modify({
    state: 'RTS',
    sqPsn: 0,
    timeout: nic.timeout,
    retryCnt: nic.retries,
    rnrRetry: 7,
    maxRdAtomic: RD_ATOMIC,
  });
}
