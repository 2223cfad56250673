/** The two ends of the sliding-window memory pool, or of its baseline, in virtual time. */

import { connectQueuePair, pair, Simulation } from '@rocev2/lab/internal/page';
import { Access } from 'rocev2/internal/verbs';
import {
  BlockRequester,
  BlockServer,
  NaglePolicy,
  NoDelayPolicy,
  PoolOwner,
  PoolWriter,
  WindowLink,
  windowQueueDepths,
} from 'rocev2/window';
import { PacketLog } from './packet-log.js';
import { LINK_BPS, NIC } from './scenario-of.js';
import type { RunResult, WindowProgram } from './scene.js';

const MAX_ACK_TIME_NS = 100_000;

interface RunningProgram {
  readonly simulation: Simulation;
  readonly log: PacketLog;
  /** Since the beginning, one number of each series. */
  sample(): readonly number[];
  /** At the end. */
  result(): RunResult;
}

/** Connects two hosts, and begins to write without end. */
export async function startWindowProgram(program: WindowProgram): Promise<RunningProgram> {
  const { policy, blocks, blockBytes, delayNs, seed } = program;
  const simulation = new Simulation({ topology: pair({ rateBps: LINK_BPS, delayNs }), seed });
  const [source, sink] = [await queuePairOn(simulation, 'h0', blocks), await queuePairOn(simulation, 'h1', blocks)];
  const log = new PacketLog(source, sink);
  for (const end of [source, sink]) simulation.observe(end.host, (timeNs, frame) => log.take(end, timeNs, frame));
  await connect(source, sink);
  await connect(sink, source);
  const [client, server] = [await WindowLink.over(source, blocks), await WindowLink.over(sink, blocks)];
  let [doneBlocks, firstNs] = [0, 0];
  const onBlock = () => {
    doneBlocks++;
    if (doneBlocks === 1) firstNs = simulation.nowNs;
  };
  const write = await writerOf(policy, { client, server, blocks, blockBytes, onBlock });
  const data = await source.pd.regMr(blocks * blockBytes, Access.LOCAL_WRITE);
  // Two writes at a time, so that the next begins as soon as one has left.
  for (let i = 0; i < 2; i++) void repeatedly(() => write(data));
  // Since the first block, which came after the description of the pool.
  const goodputBps = () => (doneBlocks < 2 ? 0 : ((doneBlocks - 1) * blockBytes * 8e9) / (simulation.nowNs - firstNs));
  return {
    simulation,
    log,
    sample: () => {
      const messages = client.counters.sent + server.counters.sent;
      return [goodputBps(), doneBlocks === 0 ? 0 : messages / doneBlocks];
    },
    result: () => ({
      traceHash: simulation.traceHash,
      summary: { goodputBps: goodputBps(), jain: 1, cnps: 0, droppedPackets: 0, pauseFrames: 0 },
    }),
  };
}

async function queuePairOn(simulation: Simulation, host: string, blocks: number) {
  const device = await simulation.device(host);
  const pd = await device.createPd();
  const depths = windowQueueDepths(blocks);
  const [sendCq, recvCq] = [await device.createCq(2 * depths.maxSendWr), await device.createCq(2 * depths.maxRecvWr)];
  const qp = await pd.createQp({ sendCq, recvCq, ...depths });
  return { host, device, pd, qp, qpn: qp.qpn, sendCq, recvCq, address: simulation.address(host), clock: device.clock };
}

type End = Awaited<ReturnType<typeof queuePairOn>>;

async function connect({ device, qp }: End, { address, qpn }: End): Promise<void> {
  await connectQueuePair(device, qp, 0, {
    peerAddress: address,
    peerQpn: qpn,
    peerPsn: 0,
    mtu: NIC.mtu,
    windowPackets: NIC.inflight,
    recovery: 'go-back-n',
  });
}

interface Ends {
  readonly client: WindowLink;
  readonly server: WindowLink;
  readonly blocks: number;
  readonly blockBytes: number;
  readonly onBlock: () => void;
}

async function writerOf(
  policy: WindowProgram['policy'],
  { client, server, ...pool }: Ends,
): Promise<(data: Parameters<PoolWriter['write']>[0]) => Promise<void>> {
  if (policy === 'baseline') {
    await BlockServer.open(server, pool);
    const requester = new BlockRequester(client);
    let last = Promise.resolve();
    // One request at a time: a second write waits for the first.
    return (data) => (last = last.then(() => requester.write(data)));
  }
  const writer = new PoolWriter(client, { blocksMax: pool.blocks });
  const maxAvailableSegments = pool.blocks / 2;
  await PoolOwner.open(server, {
    ...pool,
    policy:
      policy === 'nodelay'
        ? new NoDelayPolicy()
        : new NaglePolicy({ maxAvailableSegments, maxAckTimeNs: MAX_ACK_TIME_NS }, pool.blocks),
  });
  return (data) => writer.write(data);
}

/** The run ends before the traffic does. */
async function repeatedly(action: () => Promise<void>): Promise<never> {
  for (;;) await action();
}
