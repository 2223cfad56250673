/**
 * client                                   server
 *       hello {qpn, psn, gid, mtu, ...}  ->
 *                                        <-    hello {...}, or {refused: why}
 *       both: INIT, RTR, RTS
 *       barrier "connected"              <->   barrier "connected"
 */

import { RoceError } from '../core/errors.js';
import { needsEcho, type RateControlOptions } from '../dcqcn/rate-controls.js';
import type { IpAddress } from '../packet/address.js';
import {
  agreedParameters,
  type RecoveryName,
  type RecoveryOptions,
  recoverySettings,
} from '../retransmit/recovery-schemes.js';
import type { RdmaDevice } from '../verbs/device.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import type { ControlChannel } from './control-channel.js';
import { BUDGET_MAX, EXCHANGE_VERSION, type Hello, parseHello, parseRefusal, type RemoteRegion } from './hello.js';
import { associateWithPeer, beginProtection, ownSpi } from './packet-keys.js';
import { printable } from './printable.js';
import { connectQueuePair, type Destination, initializeQueuePair } from './queue-pair-setup.js';

export type { RemoteRegion } from './hello.js';

export interface ExchangeTerms {
  readonly recovery: RecoveryOptions;
  readonly rateControl?: RateControlOptions;
  readonly check?: (purpose: Record<string, unknown>) => string | undefined;
  /**
   * Accepts the GID that the peer announces even if its TCP connection comes from another address: with NAT, or if TCP
   * uses another network than the device. An unauthenticated peer can then direct packets to another host. Default
   * false: the peer is refused.
   */
  readonly allowForeignGid?: boolean;
}

export interface ExchangeOptions extends ExchangeTerms {
  readonly qp: QueuePair;
  /** Start PSN of this side's requests, 24 bits, random. */
  readonly psn: number;
  /** Largest path MTU this side supports, bytes; the smaller of both is used. */
  readonly mtu: number;
  readonly region?: RemoteRegion;
  readonly messageBytesMax?: number;
  readonly purpose?: Record<string, unknown>;
  /** Local ACK timeout code, default 14 (67 ms). */
  readonly timeout?: number;
  readonly retryCnt?: number;
  readonly totalTimeout?: number;
  readonly dscp?: number;
  readonly maxRdAtomic?: number;
}

/** The parameters that both ends have agreed on. */
export interface Agreement {
  /** IP address of the peer. */
  readonly peer: IpAddress;
  /** QPN of the peer. */
  readonly remoteQpn: number;
  /** Path MTU in bytes: the smaller of both sides'. */
  readonly mtu: number;
  /**
   * The peer's authenticated identity: that of its key, or the name of its certificate. Undefined: packets are not
   * protected.
   */
  readonly peerIdentity?: string | undefined;
  /** The cipher of the packets. Undefined: they are not protected. */
  readonly cipher?: Hello['cipher'] | undefined;
  /** Recovery scheme of both sides. */
  readonly recovery: RecoveryName;
  /** Packets to the peer go through memory shared with it, as far as both sides' ports could do so at once. */
  readonly sharesMemory: boolean;
  /** This side has mapped the region that the peer opened: its WRITEs, READs and atomics there are copies. */
  readonly mapsRegion: boolean;
  /** Memory the peer opened; undefined when it opened none. */
  readonly region: RemoteRegion | undefined;
  /** Longest message that the peer can receive; undefined if it did not announce one. */
  readonly messageBytesMax: number | undefined;
  /** Purpose announced by the tool at the other end. */
  readonly purpose: Record<string, unknown>;
  /** UD: goes into every SEND; empty for a connected queue pair. */
  readonly destination: Destination;
}

const RD_ATOMIC_DEFAULT = 16;
const ACK_TIMEOUT_DEFAULT = 14;
const RETRY_DEFAULT = 7;
/** 17.2 s: survives a garbage collection, a stopped process and a short suspension. */
const TOTAL_TIMEOUT_DEFAULT = 22;
const MIN_RNR_TIMER = 12; // 0.64 ms, as perftest and pingpong use.

/** `peer`: its hello, where that has come. */
function helloOf(channel: ControlChannel, options: ExchangeOptions, peer?: Hello): object {
  const spi = ownSpi(channel, options.qp.device);
  const { attributes, link } = options.qp.device;
  const { memoryDomain } = link;
  const recovery = recoverySettings(options.recovery);
  const recoveryParameters = agreedParameters(recovery);
  return {
    rocev2: EXCHANGE_VERSION,
    ...(options.qp.type !== 'RC' && { transport: options.qp.type }),
    gid: attributes.address.gidHex,
    udpPort: attributes.udpPort,
    sourcePort: attributes.sourcePort,
    qpn: options.qp.qpn,
    psn: options.psn,
    ...(spi !== undefined && { spi, cipher: options.qp.device.security!.cipher }),
    mtu: Math.min(options.mtu, attributes.pathMtuMax),
    recovery: recovery.name,
    ...(Object.keys(recoveryParameters).length > 0 && { recoveryParameters }),
    receiveBudgetPackets: Math.min(attributes.receiveBudgetPackets, BUDGET_MAX),
    ...(memoryDomain !== undefined && { memoryDomain }),
    ...(mayMap(options, peer) && mappingIn(options.qp)),
    ...(options.qp.type === 'RC' && { echoes: true }),
    maxDestRdAtomic: options.maxRdAtomic ?? RD_ATOMIC_DEFAULT,
    ...(options.region !== undefined && {
      region: { ...options.region, addr: `0x${options.region.addr.toString(16)}` },
    }),
    ...(options.messageBytesMax !== undefined && { messageBytesMax: options.messageBytesMax }),
    purpose: options.purpose ?? {},
  };
}

function isOfOneDomain({ memoryDomain }: Hello, { link }: RdmaDevice): boolean {
  return link.memoryDomain !== undefined && link.memoryDomain === memoryDomain;
}

/** A rate control paces packets, also those that answer READs. */
function mayMap({ qp, rateControl }: ExchangeOptions, peer: Hello | undefined): boolean {
  const paces = rateControl !== undefined && rateControl.name !== 'none';
  return !paces && (peer === undefined || isOfOneDomain(peer, qp.device));
}

function mappingIn(qp: QueuePair): object {
  const offer = qp.offerMapping();
  if (offer === undefined) return {};
  const secret = offer.secret.map((half) => half.toString(16).padStart(8, '0')).join('');
  return { mapping: { ...offer, secret } };
}

function mapRegions(channel: ControlChannel, hello: Hello, options: ExchangeOptions): boolean {
  const { qp } = options;
  if (!isOfOneDomain(hello, qp.device)) qp.withdrawMapping();
  if (hello.mapping === undefined || !mayMap(options, hello) || !qp.mapPeer(hello.qpn, hello.mapping)) return false;
  void channel.closed.then(() => qp.unmapPeer());
  return hello.region !== undefined && qp.maps(hello.region.rkey);
}

function mismatchOf(
  hello: Hello,
  channel: ControlChannel,
  device: RdmaDevice,
  type: QueuePair['type'],
  terms: ExchangeTerms,
): string | undefined {
  if (hello.transport !== type) {
    return `the transport is ${type} here and ${hello.transport} there; both sides need the same`;
  }
  const recovery = recoverySettings(terms.recovery);
  if (hello.recovery !== recovery.name) {
    return `recovery is ${recovery.name} here and ${printable(hello.recovery)} there; both sides need the same`;
  }
  for (const [key, value] of Object.entries(agreedParameters(recovery))) {
    const theirs = hello.recoveryParameters[key];
    if (theirs === value) continue;
    return `${key} of ${recovery.name} is ${value} here and ${theirs ?? 'not announced'} there; both sides need the same`;
  }
  if (type === 'RC' && terms.rateControl !== undefined && !hello.echoes && needsEcho(terms.rateControl)) {
    return `rate control ${terms.rateControl.name} needs a peer that echoes in-band telemetry; this one does not`;
  }
  if (hello.gid.family !== device.address.family) return 'one side uses IPv4 and the other IPv6';
  const { remoteAddress } = channel;
  if (terms.allowForeignGid !== true && remoteAddress?.equals(hello.gid) !== true) {
    return (
      `the gid is that of ${hello.gid}, and TCP is with ${remoteAddress ?? 'nobody'}; ` +
      'where that is meant to be so, behind NAT or on two networks, set `allowForeignGid`'
    );
  }
  return terms.check?.(hello.purpose);
}

/** The peer is full; the same attempt may succeed later. */
export class PeerBusyError extends RoceError {
  constructor(message: string, hint?: string) {
    super('ERR_ROCE_CONNECT', message, hint);
  }
}

async function receiveHello(
  channel: ControlChannel,
  device: RdmaDevice,
  type: QueuePair['type'],
  terms: ExchangeTerms,
): Promise<Hello> {
  const message = await channel.receive();
  const refusal = parseRefusal(message);
  if (refusal !== undefined) {
    const message = `the peer refuses: ${printable(refusal.refused)}`;
    throw refusal.busy ? new PeerBusyError(message) : new RoceError('ERR_ROCE_MISMATCH', message);
  }
  const hello = parseHello(message);
  const mismatch = typeof hello === 'string' ? hello : mismatchOf(hello, channel, device, type, terms);
  if (typeof hello !== 'string' && mismatch === undefined) return hello;
  channel.refuse(mismatch!);
  throw new RoceError('ERR_ROCE_MISMATCH', mismatch!);
}

export async function previewHello(channel: ControlChannel, device: RdmaDevice, terms: ExchangeTerms): Promise<void> {
  const message = await channel.receive();
  channel.unread(message);
  await receiveHello(channel, device, 'RC', terms);
  channel.unread(message);
}

/** The QP is in RTS when it resolves. */
export async function exchangeAsClient(channel: ControlChannel, options: ExchangeOptions): Promise<Agreement> {
  const { qp } = options;
  channel.send(helloOf(channel, options));
  const hello = await receiveHello(channel, qp.device, qp.type, options);
  await associateWithPeer(channel, qp.device, hello);
  beginProtection(channel, qp.device);
  return establish(channel, hello, options);
}

export async function exchangeAsServer(channel: ControlChannel, options: ExchangeOptions): Promise<Agreement> {
  const { qp } = options;
  const hello = await receiveHello(channel, qp.device, qp.type, options);
  await associateWithPeer(channel, qp.device, hello);
  channel.send(helloOf(channel, options, hello));
  return establish(channel, hello, options);
}

function totalTimeoutOf({ timeout, retryCnt, totalTimeout }: ExchangeOptions): number {
  return totalTimeout ?? (timeout === undefined && retryCnt === undefined ? TOTAL_TIMEOUT_DEFAULT : 0);
}

/**
 * The peer's process is gone or has closed the connection (FIN, RST or unanswered keepalives): pending work then fails
 * after the standard's short timeouts.
 */
async function endTotalTimeout(channel: ControlChannel, qp: QueuePair): Promise<void> {
  await channel.closed;
  if (!qp.isClosed && qp.state === 'RTS') await qp.modify({ totalTimeout: 0 }).catch(() => {});
}

async function establish(channel: ControlChannel, hello: Hello, options: ExchangeOptions): Promise<Agreement> {
  const { qp } = options;
  const { device } = qp;
  const peer = hello.gid;
  const mtu = Math.min(hello.mtu, options.mtu, device.attributes.pathMtuMax);
  const maxRdAtomic = options.maxRdAtomic ?? RD_ATOMIC_DEFAULT;
  const sharesMemory = await device.link.resolve(peer, isOfOneDomain(hello, device) ? hello.udpPort : undefined);
  await initializeQueuePair(qp);
  const own = {
    psn: options.psn,
    pathMtu: mtu,
    ...(options.rateControl !== undefined && { rateControl: options.rateControl }),
    ...(options.dscp !== undefined && { dscp: options.dscp }),
    reliable: {
      toRtr: {
        maxDestRdAtomic: maxRdAtomic,
        minRnrTimer: MIN_RNR_TIMER,
        recovery: options.recovery,
        inflightPackets: hello.receiveBudgetPackets,
      },
      toRts: {
        timeout: options.timeout ?? ACK_TIMEOUT_DEFAULT,
        retryCnt: options.retryCnt ?? RETRY_DEFAULT,
        totalTimeout: totalTimeoutOf(options),
        rnrRetry: 7,
        maxRdAtomic: Math.min(maxRdAtomic, hello.maxDestRdAtomic),
      },
    },
  };
  const { udpPort, sourcePort, qpn, psn } = hello;
  const remote = { address: peer, udpPort, qpn, psn, ...(sourcePort !== undefined && { sourcePort }) };
  const destination = await connectQueuePair(qp, own, remote);
  if (qp.type === 'RC' && totalTimeoutOf(options) !== 0) void endTotalTimeout(channel, qp);
  const mapsRegion = mapRegions(channel, hello, options);
  const { association, keys } = channel;
  if (association?.agreed !== undefined && keys !== undefined) {
    const { remoteSpi, cipher } = association.agreed;
    const { spi } = association;
    const counts = () => device.link.protection!.counts(spi);
    qp.noteProtection({ peer: keys.peer, cipher, sendSpi: remoteSpi, receiveSpi: spi, counts });
  }
  // Neither side may send before both can receive: the first packets would be lost, and cost a timeout each.
  await channel.barrier('connected');
  beginProtection(channel, device);
  return {
    peer,
    remoteQpn: hello.qpn,
    mtu,
    peerIdentity: channel.keys?.peer,
    cipher: channel.association?.agreed?.cipher,
    recovery: recoverySettings(options.recovery).name,
    sharesMemory,
    mapsRegion,
    region: hello.region,
    messageBytesMax: hello.messageBytesMax,
    purpose: hello.purpose,
    destination,
  };
}
