/**
 * `rocev2 bw --perftest`: the other side of the stock ib_write_bw, ib_read_bw and ib_send_bw, as server and as client. perftest neither
 * fills nor checks its buffers, so nothing can be said about the data; one queue pair, and iterations rather than a duration.
 */

import { randomInt } from 'node:crypto';
import { dialFixed, type FixedChannel, FixedListener } from '../../cm/fixed-channel.js';
import { PERFTEST_BARRIERS, PerftestExchange } from '../../cm/perftest-exchange.js';
import { RoceError } from '../../core/errors.js';
import { Access } from '../../verbs/access.js';
import type { RdmaDevice } from '../../verbs/device.js';
import { CommandFailure, EXIT_INTERRUPTED } from '../exit.js';
import type { Output } from '../output.js';
import type { TransferOptions } from './command.js';
import { clientPort, openEndpointDevice, RECEIVE_DEPTH, type TransferOp } from './endpoint.js';
import { LatencySamples, movedCounters, printBandwidth, type TransferResult } from './result.js';
import { drainReceives, postReceives, pump, type Tally, type TrafficEndpoint } from './run.js';

const TOOLS = { write: 'write_bw', read: 'read_bw', send: 'send_bw' } as const;
/** READs that perftest has outstanding where its device allows it. */
const OUTSTANDING_READS = 16;
const MIN_RNR_TIMER = 12;
const MEBIBYTE = 2 ** 20;
/** The peer waits in a barrier for as long as the traffic takes. */
const TRAFFIC_TIMEOUT_MS = 600_000;

export async function runPerftest(
  op: TransferOp,
  host: string | undefined,
  options: TransferOptions,
  output: Output,
): Promise<void> {
  if (op === 'atomic' || options.qp !== 1 || options.duration !== undefined || options.recovery !== 'go-back-n') {
    throw new RoceError(
      'ERR_ROCE_UNSUPPORTED',
      'with --perftest there is write, read or send, on one queue pair, for a number of iterations, with go-back-n',
    );
  }
  const port = host === undefined ? { address: options.bind?.text ?? '127.0.0.1' } : await clientPort(host, options);
  const device = await openEndpointDevice(port, options);
  let channel: FixedChannel | undefined;
  try {
    channel = host === undefined ? await acceptOne(op, options, output) : await dialFixed(host, options.port);
    const result = await converse(op, host === undefined ? 'server' : 'client', device, channel, options, output);
    printBandwidth(output, result);
    output.line(' perftest neither fills nor checks its buffers');
    output.document(result);
    if (output.io.interrupted.aborted) throw new CommandFailure(EXIT_INTERRUPTED);
  } finally {
    channel?.close();
    await device.close();
  }
}

async function acceptOne(op: TransferOp, options: TransferOptions, output: Output): Promise<FixedChannel> {
  const listener = await FixedListener.open(options.port);
  try {
    output.note(`waiting for 'ib_${op}_bw' on port ${options.port}`);
    return await listener.accept(output.io.interrupted);
  } finally {
    listener.close();
  }
}

async function converse(
  op: keyof typeof TOOLS,
  role: 'client' | 'server',
  device: RdmaDevice,
  channel: FixedChannel,
  options: TransferOptions,
  output: Output,
): Promise<TransferResult> {
  const { size, iters, mtu, txDepth } = options;
  const exchange = await PerftestExchange.open(channel, role, { pathMtu: Math.min(mtu, device.attributes.pathMtuMax) });
  const pd = await device.createPd();
  const sendCq = await device.createCq(2 * txDepth);
  const recvCq = await device.createCq(2 * RECEIVE_DEPTH);
  const region = await pd.regMr(2 * Math.max(size, exchange.cycleBufferBytes), Access.REMOTE_ALL);
  const qp = await pd.createQp({ sendCq, recvCq, maxSendWr: txDepth, maxRecvWr: RECEIVE_DEPTH });
  const outstandingReads = op === 'read' ? OUTSTANDING_READS : 1;
  const psn = randomInt(1 << 24);
  const peer = await exchange.exchangeKeys({
    outstandingReads,
    qpn: qp.qpn,
    psn,
    rkey: region.rkey,
    remoteAddr: region.addr,
    address: device.address,
  });
  await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
  await qp.modify({
    state: 'RTR',
    av: { address: peer.address },
    pathMtu: exchange.pathMtu,
    destQpn: peer.qpn,
    rqPsn: peer.psn,
    maxDestRdAtomic: outstandingReads,
    minRnrTimer: MIN_RNR_TIMER,
  });
  const maxRdAtomic = Math.min(outstandingReads, peer.outstandingReads);
  await qp.modify({
    state: 'RTS',
    sqPsn: psn,
    timeout: options.timeout,
    retryCnt: options.retryCnt,
    rnrRetry: 7,
    maxRdAtomic,
  });
  const traffic: TrafficEndpoint = {
    plan: { tool: 'bw', op, sizeBytes: size, iterations: iters, durationNs: 0, qps: 1 },
    lanes: [
      {
        qp,
        offset: 0,
        agreement: {
          peer: peer.address,
          remoteQpn: peer.qpn,
          mtu: exchange.pathMtu,
          recovery: 'go-back-n',
          region: { addr: peer.remoteAddr, rkey: peer.rkey, length: size },
          purpose: {},
        },
      },
    ],
    region,
    sendCq,
    recvCq,
    channel: { isOpen: true },
  };
  if (role === 'server') postReceives(traffic);

  const tool = PERFTEST_BARRIERS[TOOLS[op]];
  for (let i = 0; i < tool.beforeTraffic; i++) await exchange.barrier();
  const trafficEnds = () => (tool.report ? exchange.barrier(TRAFFIC_TIMEOUT_MS) : Promise.resolve());
  const tally = await (role === 'client' ? measure(traffic, options, output) : serve(traffic, trafficEnds));
  if (role === 'client') await trafficEnds();
  if (tool.report) {
    const messageRate = tally.counts[0] / tally.seconds / 1e6;
    const average = messageRate * 1e6 * (size / MEBIBYTE);
    await exchange.exchangeReport({
      sizeBytes: BigInt(size),
      iterations: BigInt(iters),
      peak: average,
      average,
      messageRate,
    });
  }
  await exchange.finish(TRAFFIC_TIMEOUT_MS);
  return resultOf(op, options, exchange.pathMtu, tally, device);
}

function measure(traffic: TrafficEndpoint, options: TransferOptions, output: Output): Promise<Tally> {
  const progress = output.progress(100);
  return pump(traffic, output.io, options.txDepth, progress).finally(() => progress.stop());
}

/** The server of a SEND test receives; of the others it has nothing to do, and hears of the end from the client. */
async function serve(traffic: TrafficEndpoint, trafficEnds: () => Promise<void>): Promise<Tally> {
  const { op, iterations } = traffic.plan;
  const startMs = performance.now();
  if (op === 'send') await drainReceives(traffic, iterations);
  await trafficEnds();
  return { counts: [iterations], seconds: (performance.now() - startMs) / 1000, latency: new LatencySamples() };
}

function resultOf(
  op: TransferOp,
  options: TransferOptions,
  mtu: number,
  tally: Tally,
  device: RdmaDevice,
): TransferResult {
  const [iterations] = tally.counts;
  const bytes = iterations * options.size;
  return {
    op,
    sizeBytes: options.size,
    iterations,
    bytes,
    seconds: tally.seconds,
    goodputBps: (bytes * 8) / tally.seconds,
    messagesPerSecond: iterations / tally.seconds,
    latencyNs: tally.latency.summary(),
    verified: false,
    recovery: 'go-back-n',
    cc: 'none',
    io: 'dgram',
    engine: 'inline',
    mtu,
    qps: 1,
    counters: movedCounters({ device }),
  };
}
