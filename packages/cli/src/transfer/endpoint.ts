/**
 * Opens the device, meets the peer over TCP, and connects the queue pairs. The client sends the parameters of the test.
 */

import { randomInt } from 'node:crypto';
import {
  type CliIo,
  endingInTime,
  type FrameWire,
  frameDeviceOptions,
  hostOfWire,
  localAddressTowards,
  type NicFlags,
  nicOf,
  type RecoveryFlags,
  recoveryOf,
  type SecureFlags,
  secureOf,
} from '@rocev2/command';
import { rateControl } from '@rocev2/lab/internal';
import {
  type Agreement,
  type ControlChannel,
  ControlListener,
  channelSecurity,
  dial,
  exchangeAsClient,
  exchangeAsServer,
  qpTypeOf,
  TRANSPORTS,
  type TransportName,
  warmUp,
} from 'rocev2/internal/cm';
import { NS_PER_MS, RoceError } from 'rocev2/internal/core';
import { GRH_BYTES, IpAddress, PSN_COUNT } from 'rocev2/internal/packet';
import {
  Access,
  type CompletionQueue,
  type MemoryRegion,
  openDevice,
  type ProtectionDomain,
  type QueuePair,
  type RdmaDevice,
} from 'rocev2/internal/verbs';
import { z } from 'zod';
import { MessageArrivals } from './arrivals.js';
import { WaitingClients } from './waiting-clients.js';

/** Operations that can be measured. */
export const TRANSFER_OPS = ['write', 'read', 'send', 'atomic'] as const;
/** One of {@link TRANSFER_OPS}. */
export type TransferOp = (typeof TRANSFER_OPS)[number];

const planSchema = z.object({
  tool: z.enum(['bw', 'lat']),
  op: z.enum(TRANSFER_OPS),
  transport: z.enum(TRANSPORTS).default('rc'),
  sizeBytes: z
    .number()
    .int()
    .min(0)
    .max(2 ** 31),
  iterations: z.number().int().min(0),
  durationNs: z.number().min(0),
  qps: z.number().int().min(1).max(1024),
  allSizes: z.boolean().default(false),
  bidirectional: z.boolean().default(false),
  rateControl,
});
export type TransferPlan = z.infer<typeof planSchema>;

export interface TransferEndpointOptions extends NicFlags, RecoveryFlags, SecureFlags {
  readonly port: number;
  readonly bind?: IpAddress;
  readonly udpPort?: number;
  readonly frame?: FrameWire;
  /** Path MTU in bytes. */
  readonly mtu: number;
  readonly transport: TransportName;
  readonly faults?: string;
  readonly seed?: number;
  readonly pcap?: string;
  readonly estats?: true;
  readonly estatsHttp?: string;
  readonly allowHost?: readonly string[];
  readonly trace?: string;
  readonly txDepth: number;
  /** Local ACK timeout as a code, 0..31: 4.096 us x 2^code; 0 is none. Default 14. */
  readonly timeout?: number;
  /** Retries before a queue pair gives up, 0..7. Default 7. */
  readonly retryCnt?: number;
  readonly totalTimeout?: number;
  /** Receives a flow keeps posted in SEND tests; default: see {@link receiveDepth}. */
  readonly rxDepth?: number;
  readonly outs: number;
  readonly inlineSize: number;
  readonly warmUp?: number;
}

export interface TransferFlow {
  /** In RTS. */
  readonly qp: QueuePair;
  readonly agreement: Agreement;
  /** Where this flow's data lies in the region: what the peer reads and writes. */
  readonly offset: number;
  readonly secondOffset: number;
}

export interface Endpoint {
  readonly device: RdmaDevice;
  /** Of all flows. */
  readonly pd: ProtectionDomain;
  /** Of all flows. */
  readonly sendCq: CompletionQueue;
  /** Of all flows. */
  readonly recvCq: CompletionQueue;
  /** The data, flow after flow. */
  readonly region: MemoryRegion;
  readonly flows: readonly TransferFlow[];
  readonly channel: ControlChannel;
  readonly plan: TransferPlan;
  readonly arrivals: MessageArrivals;
  readonly largestBytes: number;
  /** Receives a flow keeps posted, where the command line says so. */
  readonly rxDepth: number | undefined;
  readonly inlineBytes: number;
  readonly arrivedBefore: number;
  close(): Promise<void>;
}

function areaBytes(plan: TransferPlan): number {
  return Math.ceil(Math.max(plan.sizeBytes, 1) / 4096) * 4096;
}

/**
 * A flow's part of the region: one area that the peer reads and writes, and one to send from where both happen at once.
 */
function flowBytes(plan: TransferPlan): number {
  return areaBytes(plan) * (plan.tool === 'lat' || plan.bidirectional ? 2 : 1);
}

/** Receive work requests a flow keeps posted in SEND tests: a sender that finds none waits, ... */
const RECEIVE_DEPTH = 512;
/** An unacknowledged sender does not wait: its message is lost. perftest has 16000 then. */
const UNRELIABLE_RECEIVE_DEPTH = 16_384;

export const RECEIVE_SGES = 2;

/** Receives a flow keeps posted: as many as somebody `asked` for, else what the plan needs. */
export function receiveDepth({ tool, op, transport, iterations }: TransferPlan, asked: number | undefined): number {
  if (asked !== undefined) return asked;
  if (transport === 'rc' || tool === 'lat' || op !== 'send') return RECEIVE_DEPTH;
  if (iterations === 0) return UNRELIABLE_RECEIVE_DEPTH;
  return Math.max(RECEIVE_DEPTH, Math.min(UNRELIABLE_RECEIVE_DEPTH, iterations));
}

/** Memory behind the flows' parts: where the GRHs of all datagrams go, which nobody reads. */
export function grhBytes({ transport }: Pick<TransferPlan, 'transport'>): number {
  return transport === 'ud' ? GRH_BYTES : 0;
}

export async function clientPort(
  host: string,
  options: Pick<TransferEndpointOptions, 'bind' | 'udpPort'>,
): Promise<{ address: string; udpPort?: number }> {
  const own = options.udpPort === undefined ? {} : { udpPort: options.udpPort };
  if (options.bind !== undefined) return { address: options.bind.text, ...own };
  const server = IpAddress.parse(host);
  const local = await localAddressTowards(server);
  if (local.text !== server.text) return { address: local.text, ...own };
  // All of 127/8 is this host on Linux; elsewhere, and for ::1, both ends share the address and differ in port.
  if (local.family === 4 && process.platform === 'linux') return { address: '127.0.0.2', ...own };
  return { address: local.text, udpPort: options.udpPort ?? 0 };
}

export async function openEndpointDevice(
  port: { address: string; udpPort?: number },
  options: TransferEndpointOptions,
  interrupted: AbortSignal,
): Promise<RdmaDevice> {
  const device = await openDevice({
    ...port,
    ...(await frameDeviceOptions(options)),
    ...(options.faults !== undefined && { loss: options.faults }),
    ...(options.seed !== undefined && { seed: options.seed }),
    ...(options.pcap !== undefined && { pcap: options.pcap }),
    ...(options.estats === true && { estats: true }),
    ...(options.estatsHttp !== undefined && {
      estats: { http: options.estatsHttp, ...(options.allowHost !== undefined && { allowHosts: options.allowHost }) },
    }),
    ...(options.trace !== undefined && { trace: options.trace }),
    ...(await secureOf(options)),
    ...nicOf(options),
  });
  if (options.warmUp === undefined) return device;
  try {
    await endingInTime(warmUp(device, { durationMs: Math.ceil(options.warmUp / NS_PER_MS) }), interrupted);
    return device;
  } catch (error) {
    await device.close();
    throw error;
  }
}

export function checkDatagramSize(sizeBytes: number, mtuBytes: number, flag = '-s'): void {
  if (sizeBytes <= mtuBytes) return;
  throw new RoceError(
    'ERR_ROCE_OUT_OF_RANGE',
    `a UD message is one packet: ${sizeBytes} bytes are more than the path MTU of ${mtuBytes}`,
    `give ${flag} ${mtuBytes} or less`,
  );
}

/**
 * Makes the queues and connects every flow with `exchange`. Closes them, and the channel, when it fails; the device
 * stays.
 */
async function establish(
  device: RdmaDevice,
  channel: ControlChannel,
  options: TransferEndpointOptions,
  plan: TransferPlan,
  exchange: typeof exchangeAsClient,
): Promise<Endpoint> {
  const made: Array<{ close(): Promise<void> }> = [];
  const note = <R extends { close(): Promise<void> }>(resource: R): R => {
    made.unshift(resource);
    return resource;
  };
  try {
    const depth = Math.max(options.txDepth, 1);
    const sendCq = note(await device.createCq(depth * plan.qps * 2));
    const maxRecvWr = receiveDepth(plan, options.rxDepth);
    const recvCq = note(await device.createCq(maxRecvWr * plan.qps * 2));
    const pd = note(await device.createPd());
    const region = await pd.regMr(flowBytes(plan) * plan.qps + grhBytes(plan), Access.REMOTE_ALL);
    const flows: TransferFlow[] = [];
    for (let flow = 0; flow < plan.qps; flow++) {
      const offset = flow * flowBytes(plan);
      const qp = await pd.createQp({
        type: qpTypeOf(plan.transport),
        sendCq,
        recvCq,
        maxSendWr: depth,
        maxRecvWr,
        maxRecvSge: RECEIVE_SGES,
        maxInlineBytes: options.inlineSize,
      });
      const agreement = await exchange(channel, {
        qp,
        psn: randomInt(PSN_COUNT),
        mtu: options.mtu,
        recovery: recoveryOf(options),
        ...(options.timeout !== undefined && { timeout: options.timeout }),
        ...(options.retryCnt !== undefined && { retryCnt: options.retryCnt }),
        ...(options.totalTimeout !== undefined && { totalTimeout: options.totalTimeout }),
        ...(plan.transport !== 'ud' && { rateControl: plan.rateControl }),
        maxRdAtomic: options.outs,
        purpose: plan,
        region: { addr: region.addr + BigInt(offset), rkey: region.rkey, length: flowBytes(plan) },
        allowForeignGid: isTcpElsewhere(options),
      });
      if (plan.transport === 'ud') checkDatagramSize(plan.sizeBytes, agreement.mtu);
      flows.push({ qp, agreement, offset, secondOffset: offset + areaBytes(plan) });
    }
    const close = async () => {
      channel.close();
      await device.close();
    };
    const arrivals = new MessageArrivals(plan.sizeBytes);
    const { rxDepth, inlineSize: inlineBytes } = options;
    const sizes = { largestBytes: plan.sizeBytes, inlineBytes, arrivedBefore: 0 };
    return { device, pd, sendCq, recvCq, region, flows, channel, plan, arrivals, ...sizes, rxDepth, close };
  } catch (error) {
    channel.close();
    for (const resource of made) await resource.close();
    throw error;
  }
}

function isTcpElsewhere({ frame }: TransferEndpointOptions): boolean {
  return frame !== undefined;
}

export async function connectToServer(
  host: string,
  options: TransferEndpointOptions,
  plan: TransferPlan,
  interrupted: AbortSignal,
): Promise<Endpoint> {
  const device = await openEndpointDevice(await clientPort(host, options), options, interrupted);
  try {
    const local = isTcpElsewhere(options) ? undefined : device.address;
    const channel = await endingInTime(
      dial(host, options.port, local, interrupted, channelSecurity(device)),
      interrupted,
    );
    return await endingInTime(establish(device, channel, options, plan, exchangeAsClient), interrupted);
  } catch (error) {
    await device.close();
    throw error;
  }
}

type ServerRole = Pick<TransferPlan, 'tool' | 'op' | 'transport'>;

function commandOf({ tool, op, transport }: ServerRole): string {
  return `rocev2 ${tool} ${op}${transport === 'rc' ? '' : ` --transport ${transport}`}`;
}

export interface ServerWords {
  onListening(description: string, host: string): void;
  onRefusedPeer(peer: string, why: string): void;
}

export async function serveOneClient(
  role: ServerRole,
  options: TransferEndpointOptions,
  io: CliIo,
  words: ServerWords,
): Promise<Endpoint> {
  const address = options.bind?.text ?? '127.0.0.1';
  const device = await openEndpointDevice(
    { address, ...(options.udpPort !== undefined && { udpPort: options.udpPort }) },
    options,
    io.interrupted,
  );
  const meetingHost = options.frame === undefined ? address : await hostOfWire(options.frame);
  const clients = new WaitingClients(io.interrupted);
  let listener: ControlListener | undefined;
  try {
    const events = {
      onPeer: (channel: ControlChannel) => clients.add(channel),
      onEarlyEnd: (_: unknown, peer: string, { message }: Error) => words.onRefusedPeer(peer, message),
      onTrouble: ({ message }: Error) => words.onRefusedPeer('a peer', message),
    };
    listener = await ControlListener.open(meetingHost, options.port, events, channelSecurity(device));
    words.onListening(device.portDescription, meetingHost);
    for (;;) {
      const channel = await clients.next();
      const stop = () => channel.abort();
      io.interrupted.addEventListener('abort', stop);
      try {
        const plan = await peekPlan(channel, role);
        return await establish(device, channel, options, plan, exchangeAsServer);
      } catch (error) {
        channel.close();
        if (!io.interrupted.aborted) words.onRefusedPeer(channel.peer, (error as Error).message);
      } finally {
        io.interrupted.removeEventListener('abort', stop);
      }
    }
  } catch (error) {
    await device.close();
    throw error;
  } finally {
    listener?.close();
    clients.close();
  }
}

function checkPlan(purpose: Record<string, unknown>, role: ServerRole): string | undefined {
  const plan = planSchema.safeParse(purpose);
  if (!plan.success) return `the server runs '${commandOf(role)}'`;
  const [here, there] = [commandOf(role), commandOf(plan.data)];
  return here === there ? undefined : `the server runs '${here}', the client '${there}'`;
}

/**
 * The server needs the plan before it can make its queues, and the plan comes with the first hello: read here, then
 * given back.
 */
async function peekPlan(channel: ControlChannel, role: ServerRole): Promise<TransferPlan> {
  const hello = (await channel.receive()) as { purpose?: Record<string, unknown> } | null;
  const refusal = checkPlan(hello?.purpose ?? {}, role);
  if (refusal !== undefined) {
    channel.refuse(refusal);
    throw new RoceError('ERR_ROCE_MISMATCH', refusal);
  }
  channel.unread(hello);
  return planSchema.parse(hello?.purpose);
}
