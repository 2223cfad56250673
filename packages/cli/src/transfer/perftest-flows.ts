import { qpTypeOf } from 'rocev2/internal/cm';
import { refuseEchoes } from 'rocev2/internal/dcqcn';
import { STANDARD_RECOVERY } from 'rocev2/internal/retransmit';
import { Access } from 'rocev2/internal/verbs';
import { MessageArrivals } from './arrivals.js';
import { checkDatagramSize, grhBytes, RECEIVE_SGES, receiveDepth, type TransferPlan } from './endpoint.js';
import type { Conversation, PerftestFlow } from './perftest-meeting.js';
import { planOf } from './plan.js';
import type { TrafficEndpoint } from './transfer-round.js';

const PAGE_BYTES = 4096;

/** Makes the flows and has the meeting connect them. Throws ERR_ROCE_OUT_OF_RANGE for a datagram that does not fit. */
export async function connectFlows(conversation: Conversation): Promise<TrafficEndpoint> {
  const { tool, op, device, meeting, exchange, options } = conversation;
  const { size, qp: qps, txDepth, transport, rxDepth, inlineSize } = options;
  const sizeBytes = options.mayShrink === true ? Math.min(size, exchange.pathMtu) : size;
  const plan: TransferPlan = planOf(tool, op, { ...options, size: sizeBytes });
  if (transport === 'ud') checkDatagramSize(plan.sizeBytes, exchange.pathMtu);
  const maxRecvWr = receiveDepth(plan, rxDepth);
  if (transport !== 'ud') refuseEchoes(plan.rateControl);
  const pd = await device.createPd();
  const sendCq = await device.createCq(2 * txDepth * qps);
  const recvCq = await device.createCq(2 * maxRecvWr * qps);
  // The first half of a flow's area is the peer's to read and write; messages of a latency test, and with -b all, leave
  // from the second.
  const halfBytes = Math.ceil(Math.max(plan.sizeBytes, exchange.cycleBufferBytes) / PAGE_BYTES) * PAGE_BYTES;
  const region = await pd.regMr(2 * halfBytes * qps + grhBytes(plan), Access.REMOTE_ALL);
  const own: PerftestFlow[] = [];
  const type = qpTypeOf(transport);
  const sizes = { maxSendWr: txDepth, maxRecvWr, maxRecvSge: RECEIVE_SGES, maxInlineBytes: inlineSize };
  const makeQp = () => pd.createQp({ type, sendCq, recvCq, ...sizes });
  for (let i = 0; i < qps; i++) own.push({ makeQp, region, offset: 2 * halfBytes * i });
  const outstandingReads = op === 'read' || op === 'atomic' ? options.outs : 1;
  const peers = await meeting.connect(own, outstandingReads);
  if (transport !== 'ud') for (const { qp } of peers) await qp.modify({ rateControl: plan.rateControl });
  const flows = own.map(({ offset }, i) => ({
    qp: peers[i].qp,
    offset,
    secondOffset: offset + halfBytes,
    agreement: {
      peer: peers[i].address,
      remoteQpn: peers[i].qpn,
      mtu: peers[i].pathMtu,
      recovery: STANDARD_RECOVERY,
      sharesMemory: false,
      mapsRegion: false,
      region: { addr: peers[i].remoteAddr, rkey: peers[i].rkey, length: plan.sizeBytes },
      messageBytesMax: undefined,
      purpose: {},
      destination: peers[i].destination,
    },
  }));
  const channel = {
    get isOpen() {
      return !device.isClosed;
    },
  };
  const arrivals = new MessageArrivals(plan.sizeBytes);
  const bytes = { largestBytes: plan.sizeBytes, inlineBytes: inlineSize, arrivedBefore: 0 };
  return { device, plan, flows, region, sendCq, recvCq, channel, arrivals, rxDepth, ...bytes };
}
