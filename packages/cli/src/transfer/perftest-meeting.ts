/**
 * The two ways in which perftest meets its peer: over TCP, where exchanged keys connect the queue pairs, and with `-R`
 * through the connection manager, which connects one queue pair for the exchange and then those of the test.
 */

import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Output } from '@rocev2/command';
import {
  acceptConcurrently,
  type CmConnection,
  ConnectionManager,
  ConnectionRejected,
  connectQueuePair,
  type Destination,
  dialFixed,
  type Established,
  FixedListener,
  initializeQueuePair,
  REJ_INVALID_SERVICE_ID,
  type SetUpEnd,
} from 'rocev2/internal/cm';
import { IpAddress, PSN_COUNT } from 'rocev2/internal/packet';
import {
  PERFTEST_FIRST_MESSAGE,
  PerftestExchange,
  type PerftestKeys,
  QpWire,
  tcpWire,
} from 'rocev2/internal/stock-exchanges';
import type { MemoryRegion, QueuePair, RdmaDevice } from 'rocev2/internal/verbs';
import type { TransferOp } from './endpoint.js';
import type { TransferOptions } from './transfer-options.js';

const MIN_RNR_TIMER = 12;
/** Timers as perftest has them: 67 ms, seven retries. */
const ACK_TIMEOUT = 14;
const RETRIES = 7;
/** A server that has just accepted one connection may not listen for the next one yet. */
const CONNECT_ATTEMPTS = 50;
const CONNECT_INTERVAL_MS = 100;
const GOODBYE_MS = 2_000;

/** A flow of the test: how it gets its queue pair, and its part of the memory. */
export interface PerftestFlow {
  /** A queue pair in RESET. Any of them may serve any flow. */
  readonly makeQp: () => Promise<QueuePair>;
  /** Memory of all flows. */
  readonly region: MemoryRegion;
  /** Where this flow's data lies in it. */
  readonly offset: number;
}

/** A connected flow: its queue pair, and the known data of the peer. */
export type PerftestPeerFlow = PerftestKeys & {
  readonly qp: QueuePair;
  readonly pathMtu: number;
  readonly destination: Destination;
};

export interface PerftestMeeting {
  readonly exchange: PerftestExchange;
  /** Takes every flow to RTS and learns of the other ends. */
  connect(flows: readonly PerftestFlow[], outstandingReads: number): Promise<PerftestPeerFlow[]>;
  close(): Promise<void>;
}

export interface Conversation {
  readonly tool: 'bw' | 'lat';
  readonly op: TransferOp;
  readonly role: 'client' | 'server';
  readonly device: RdmaDevice;
  readonly meeting: PerftestMeeting;
  readonly exchange: PerftestExchange;
  readonly options: TransferOptions;
  readonly output: Output;
}

type Meet = (
  device: RdmaDevice,
  tool: string,
  host: string | undefined,
  options: TransferOptions,
  output: Output,
) => Promise<PerftestMeeting>;

export const meetOverTcp: Meet = async (device, tool, host, options, output) => {
  const channel = host === undefined ? await acceptTcp(tool, options, output) : await dialFixed(host, options.port);
  const exchange = await PerftestExchange.open(tcpWire(channel), host === undefined ? 'server' : 'client', {
    pathMtu: Math.min(options.mtu, device.attributes.pathMtuMax),
  });
  return {
    exchange,
    connect: async (flows, outstandingReads) => {
      const { pathMtu } = exchange;
      const qps: QueuePair[] = [];
      for (const { makeQp } of flows) qps.push(await makeQp());
      const own = flows.map((flow, i) => ({ ...keysOf(qps[i], flow, outstandingReads), psn: randomInt(PSN_COUNT) }));
      const peers: PerftestKeys[] = [];
      for (const keys of own) peers.push(await exchange.exchangeKeys(keys));
      const connected: PerftestPeerFlow[] = [];
      for (const [i, qp] of qps.entries()) {
        const destination = await connectFlow(qp, own[i], peers[i], pathMtu, options);
        connected.push({ ...peers[i], qp, pathMtu, destination });
      }
      return connected;
    },
    close: async () => channel.close(),
  };
};

async function acceptTcp(tool: string, options: TransferOptions, output: Output) {
  const listener = await FixedListener.open(options.port, {
    firstMessage: PERFTEST_FIRST_MESSAGE,
    onRefusedPeer: (peer, { message }) => output.note(`${peer} was not the client: ${message}`),
  });
  try {
    output.note(`waiting for '${tool}' on port ${options.port}`);
    return await listener.accept(output.io.interrupted);
  } finally {
    listener.close();
  }
}

function keysOf(qp: QueuePair, { region, offset }: PerftestFlow, outstandingReads: number) {
  const { rkey } = region;
  const { address } = qp.device;
  return { outstandingReads, qpn: qp.qpn, rkey, remoteAddr: region.addr + BigInt(offset), address };
}

async function connectFlow(
  qp: QueuePair,
  own: PerftestKeys,
  peer: PerftestKeys,
  pathMtu: number,
  { timeout = ACK_TIMEOUT, retryCnt = RETRIES, totalTimeout = 0 }: TransferOptions,
): Promise<Destination> {
  await initializeQueuePair(qp);
  const reliable = {
    toRtr: { maxDestRdAtomic: own.outstandingReads, minRnrTimer: MIN_RNR_TIMER },
    toRts: {
      ...{ timeout, retryCnt, totalTimeout, rnrRetry: 7 },
      maxRdAtomic: Math.min(own.outstandingReads, peer.outstandingReads),
    },
  };
  return connectQueuePair(qp, { psn: own.psn, pathMtu, reliable }, peer);
}

export const meetThroughManager: Meet = async (device, tool, host, options, output) => {
  const manager = await ConnectionManager.open(device);
  const connectAll =
    host === undefined
      ? acceptor(manager, options.port, output)
      : connector(manager, IpAddress.parse(host), options, output);
  try {
    if (host === undefined) output.note(`waiting for '${tool} -R' on port ${options.port} of rdma_cm`);
    const [{ connection: control, end: wire }] = await connectAll(1, () => QpWire.create(device), 1);
    const connections: CmConnection[] = [];
    const exchange = await PerftestExchange.open(wire, host === undefined ? 'server' : 'client', {
      pathMtu: Math.min(options.mtu, device.attributes.pathMtuMax),
    });
    return {
      exchange,
      connect: async (flows, outstandingReads) => {
        await exchange.barrier();
        const { makeQp } = flows[0];
        const makeEnd = async () => bareEnd(await makeQp());
        for (const { connection } of await connectAll(flows.length, makeEnd, outstandingReads, control.remote)) {
          connections.push(connection);
          if (options.totalTimeout !== undefined) await connection.qp.modify({ totalTimeout: options.totalTimeout });
        }
        await exchange.barrier();
        const peers: PerftestPeerFlow[] = [];
        for (const [i, flow] of flows.entries()) {
          // The manager chose the PSNs; those of the keys are unused.
          const { qp, pathMtu } = connections[i];
          const keys = await exchange.exchangeKeys({ ...keysOf(qp, flow, outstandingReads), psn: 0 });
          peers.push({ ...keys, qp, pathMtu, destination: {} });
        }
        return peers;
      },
      close: async () => {
        // perftest's client ends the connections of the test, and its server then the first one; it waits indefinitely
        // if that is gone.
        if (host !== undefined) await Promise.all(connections.map((connection) => connection.disconnect()));
        await Promise.race([control.disconnected, delay(GOODBYE_MS, undefined, { ref: false })]);
        await manager.close();
      },
    };
  } catch (error) {
    await manager.close();
    throw error;
  }
};

type ConnectAll = <E extends SetUpEnd>(
  count: number,
  makeEnd: () => Promise<E>,
  outstandingReads: number,
  from?: IpAddress,
) => Promise<Array<Established<E>>>;

function bareEnd(qp: QueuePair): SetUpEnd {
  return { qp, close: () => qp.close() };
}

function acceptor(manager: ConnectionManager, port: number, output: Output): ConnectAll {
  const listener = manager.listen(port);
  output.io.interrupted.addEventListener('abort', () => listener.close(), { once: true });
  return async (count, makeEnd, outstandingReads, from) => {
    try {
      const resources = { responderResources: outstandingReads, initiatorDepth: outstandingReads };
      return await acceptConcurrently(listener, count, { makeEnd, from, ...resources });
    } catch (error) {
      output.throwIfInterrupted();
      throw error;
    }
  };
}

function connector(
  manager: ConnectionManager,
  host: IpAddress,
  { port, mtu, retryCnt: retryCount = RETRIES }: TransferOptions,
  output: Output,
): ConnectAll {
  const pathMtu = Math.min(mtu, manager.device.attributes.pathMtuMax);
  const signal = output.io.interrupted;
  const connectOne = async (qp: QueuePair, outstandingReads: number) => {
    const resources = { responderResources: outstandingReads, initiatorDepth: outstandingReads };
    for (let attempt = 1; ; attempt++) {
      try {
        return await manager.connect(host, port, qp, { pathMtu, retryCount, signal, ...resources });
      } catch (error) {
        const isEarly = error instanceof ConnectionRejected && error.reason === REJ_INVALID_SERVICE_ID;
        if (!isEarly || attempt === CONNECT_ATTEMPTS) throw error;
        await delay(CONNECT_INTERVAL_MS);
      }
    }
  };
  return async (count, makeEnd, outstandingReads) => {
    const made = [];
    for (let i = 0; i < count; i++) {
      const end = await makeEnd();
      made.push({ end, connection: await connectOne(end.qp, outstandingReads) });
    }
    return made;
  };
}
