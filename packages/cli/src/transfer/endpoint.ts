/**
 * Both ends of a bandwidth or latency test: opens the device, meets the peer over TCP, and connects the queue pairs. The client says what
 * is to be done; the server does its part.
 */

import { randomInt } from 'node:crypto';
import {
  type CliIo,
  endingInTime,
  type FrameWire,
  frameDeviceOptions,
  hostOfWire,
  localAddressTowards,
  type NicOptions,
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
import { Arrivals } from './arrivals.js';
import { WaitingClients } from './waiting-clients.js';

/** Operations that can be measured. */
export const TRANSFER_OPS = ['write', 'read', 'send', 'atomic'] as const;
/** One of {@link TRANSFER_OPS}. */
export type TransferOp = (typeof TRANSFER_OPS)[number];

/** What the client asks for; crosses the exchange. */
const planSchema = z.object({
  tool: z.enum(['bw', 'lat']),
  op: z.enum(TRANSFER_OPS),
  transport: z.enum(TRANSPORTS).default('rc'),
  sizeBytes: z
    .number()
    .int()
    .min(0)
    .max(2 ** 31),
  /** Per QP; 0 with a duration. */
  iterations: z.number().int().min(0),
  durationNs: z.number().min(0),
  qps: z.number().int().min(1).max(1024),
  /** `sizeBytes` is the largest of all powers of two that are run. */
  allSizes: z.boolean().default(false),
  /** Both sides measure at a time. */
  bidirectional: z.boolean().default(false),
  /** Both sides': the server sends the data of READs. */
  rateControl,
});
/** What the client asks for. */
export type TransferPlan = z.infer<typeof planSchema>;

/** Options that both sides have. */
export interface EndpointOptions extends NicOptions, RecoveryFlags, SecureFlags {
  /** TCP port of the exchange. */
  readonly port: number;
  /** IP address of this side. */
  readonly bind?: IpAddress;
  /** UDP port of this side; default 4791. */
  readonly udpPort?: number;
  /** A switch to be plugged into, instead of a UDP port. */
  readonly frame?: FrameWire;
  /** Path MTU in bytes. */
  readonly mtu: number;
  /** Reliable connection, unreliable connection or datagrams. */
  readonly transport: TransportName;
  /** Fault rules on this side. */
  readonly loss?: string;
  /** Seed of random fault rules. */
  readonly seed?: number;
  /** Where to write a capture. */
  readonly pcap?: string;
  /** Collect telemetry. */
  readonly estats?: true;
  /** `HOST:PORT` to serve telemetry on. */
  readonly estatsHttp?: string;
  /** Names by which it may be asked for there. */
  readonly allowHost?: readonly string[];
  /** Where to write a trace. */
  readonly trace?: string;
  /** Messages in flight on each queue pair. */
  readonly txDepth: number;
  /** Local ACK timeout as a code, 0..31: 4.096 us x 2^code; 0 is none. Default 14. */
  readonly timeout?: number;
  /** Retries before a queue pair gives up, 0..7. Default 7. */
  readonly retryCnt?: number;
  /** How long the peer may be silent, as a code; see {@link ExchangeOptions}. */
  readonly totalTimeout?: number;
  /** Receives a flow keeps posted in SEND tests; default: see {@link receiveDepth}. */
  readonly rxDepth?: number;
  /** READs and atomics in flight on each queue pair. */
  readonly outs: number;
  /** The largest message that is copied into its work request. */
  readonly inlineSize: number;
  /** Nanoseconds that the NIC spends on messages to itself before anything else. */
  readonly warmUp?: number;
}

/** One connected queue pair of the test. */
export interface Flow {
  /** In RTS. */
  readonly qp: QueuePair;
  /** What both ends agreed on. */
  readonly agreement: Agreement;
  /** Where this flow's data lies in the region: what the peer reads and writes. */
  readonly offset: number;
  /** Where own messages leave from, or READs go to, in a test whose sides both have the word. */
  readonly secondOffset: number;
}

/** One end of a test, connected. */
export interface Endpoint {
  /** The NIC. */
  readonly device: RdmaDevice;
  /** Of all flows. */
  readonly pd: ProtectionDomain;
  /** Of all flows. */
  readonly sendCq: CompletionQueue;
  /** Of all flows. */
  readonly recvCq: CompletionQueue;
  /** The data, flow after flow. */
  readonly region: MemoryRegion;
  /** One a queue pair. */
  readonly flows: readonly Flow[];
  /** The TCP connection to the peer. */
  readonly channel: ControlChannel;
  /** What is to be done. */
  readonly plan: TransferPlan;
  /** Moves as messages come. */
  readonly arrivals: Arrivals;
  /** The largest message of all rounds. */
  readonly largestBytes: number;
  /** Receives a flow keeps posted, where the command line says so. */
  readonly rxDepth: number | undefined;
  /** Messages of up to so many bytes are copied into their work requests. */
  readonly inlineBytes: number;
  /** Messages that came before this round. */
  readonly arrivedBefore: number;
  /** Closes channel and device. */
  close(): Promise<void>;
}

/** The area a message takes: whole pages, so that atomics are aligned. */
function areaBytes(plan: TransferPlan): number {
  return Math.ceil(Math.max(plan.sizeBytes, 1) / 4096) * 4096;
}

/** A flow's part of the region: one area that the peer reads and writes, and one to send from where both happen at once. */
function laneBytes(plan: TransferPlan): number {
  return areaBytes(plan) * (plan.tool === 'lat' || plan.bidirectional ? 2 : 1);
}

/** Receive work requests a flow keeps posted in SEND tests: a sender that finds none waits, ... */
const RECEIVE_DEPTH = 512;
/** ... but one that nobody acknowledges does not: its message is lost. perftest has 16000 then. */
const UNRELIABLE_RECEIVE_DEPTH = 16_384;

/** A datagram's receive: one element for its GRH, one for its data. */
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

/** Where a client binds when it was not told: beside the server if both are on this host. */
export async function clientPort(
  host: string,
  options: Pick<EndpointOptions, 'bind' | 'udpPort'>,
): Promise<{ address: string; udpPort?: number }> {
  const own = options.udpPort === undefined ? {} : { udpPort: options.udpPort };
  if (options.bind !== undefined) return { address: options.bind.text, ...own };
  const server = IpAddress.parse(host);
  const local = await localAddressTowards(server);
  if (local.text !== server.text) return { address: local.text, ...own };
  // All of 127/8 is this host on Linux; elsewhere, and for ::1, two endpoints share the address and differ in port.
  if (local.family === 4 && process.platform === 'linux') return { address: '127.0.0.2', ...own };
  return { address: local.text, udpPort: options.udpPort ?? 0 };
}

/** Opens the NIC on a UDP port or on a switch, with what the options ask for beside it, and warms it up where they ask for that. */
export async function openEndpointDevice(
  port: { address: string; udpPort?: number },
  options: EndpointOptions,
  interrupted: AbortSignal,
): Promise<RdmaDevice> {
  const device = await openDevice({
    ...port,
    ...(await frameDeviceOptions(options)),
    ...(options.loss !== undefined && { loss: options.loss }),
    ...(options.seed !== undefined && { seed: options.seed }),
    ...(options.pcap !== undefined && { pcap: options.pcap }),
    ...(options.estats === true && { estats: true }),
    ...(options.estatsHttp !== undefined && {
      estats: { http: options.estatsHttp, ...(options.allowHost !== undefined && { allowHosts: options.allowHost }) },
    }),
    ...(options.trace !== undefined && { trace: options.trace }),
    ...(await secureOf(options)),
    io: options.io,
    engine: options.engine,
    spin: options.spin,
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

/** Throws ERR_ROCE_OUT_OF_RANGE for a UD message that is more than one packet. */
export function checkDatagramSize(sizeBytes: number, mtuBytes: number, flag = '-s'): void {
  if (sizeBytes <= mtuBytes) return;
  throw new RoceError(
    'ERR_ROCE_OUT_OF_RANGE',
    `a UD message is one packet: ${sizeBytes} bytes are more than the path MTU of ${mtuBytes}`,
    `give ${flag} ${mtuBytes} or less`,
  );
}

/** Makes the queues and connects every flow with `exchange`. Closes them, and the channel, when it fails; the device stays. */
async function establish(
  device: RdmaDevice,
  channel: ControlChannel,
  options: EndpointOptions,
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
    const region = await pd.regMr(laneBytes(plan) * plan.qps + grhBytes(plan), Access.REMOTE_ALL);
    const flows: Flow[] = [];
    for (let flow = 0; flow < plan.qps; flow++) {
      const offset = flow * laneBytes(plan);
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
        region: { addr: region.addr + BigInt(offset), rkey: region.rkey, length: laneBytes(plan) },
        allowForeignGid: isTcpElsewhere(options),
      });
      if (plan.transport === 'ud') checkDatagramSize(plan.sizeBytes, agreement.mtu);
      flows.push({ qp, agreement, offset, secondOffset: offset + areaBytes(plan) });
    }
    const close = async () => {
      channel.close();
      await device.close();
    };
    const arrivals = new Arrivals(plan.sizeBytes);
    const { rxDepth, inlineSize: inlineBytes } = options;
    const sizes = { largestBytes: plan.sizeBytes, inlineBytes, arrivedBefore: 0 };
    return { device, pd, sendCq, recvCq, region, flows, channel, plan, arrivals, ...sizes, rxDepth, close };
  } catch (error) {
    channel.close();
    for (const resource of made) await resource.close();
    throw error;
  }
}

/** An endpoint on a switch has an address that TCP does not know. */
function isTcpElsewhere({ frame }: EndpointOptions): boolean {
  return frame !== undefined;
}

/** Connects to a waiting server and tells it the plan. */
export async function connectToServer(
  host: string,
  options: EndpointOptions,
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

/** What the server was started for; anything else is refused by name. */
type ServerRole = Pick<TransferPlan, 'tool' | 'op' | 'transport'>;

/** As one would type it. */
function commandOf({ tool, op, transport }: ServerRole): string {
  return `rocev2 ${tool} ${op}${transport === 'rc' ? '' : ` --transport ${transport}`}`;
}

/** What a waiting server tells people. */
export interface ServerWords {
  /** It waits: on which port of the NIC, and at which host. */
  onListening(description: string, host: string): void;
  /** Somebody else was there; it waits on. */
  onRefusedPeer(peer: string, why: string): void;
}

/** Waits for a client whose plan this server was started for, and follows it. Others are refused by name, and it waits on. */
export async function serveOneClient(
  role: ServerRole,
  options: EndpointOptions,
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

/** The server needs the plan before it can make its queues, and the plan comes with the first hello: read here, then given back. */
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
