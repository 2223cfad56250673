/**
 * Nodes and a manager over connections: one to each, made at the first call, and anew after it has ended. They are RDMA connections; where none can be made, or one has failed,
 * the next is TCP, and RDMA is tried again after a while.
 */

import { connectSocket } from '../../cm/connect-socket.js';
import { connect } from '../../cm/listen-connect.js';
import { channelSecurity, secureAsClient, UntrustedPeerError } from '../../cm/secure-channel.js';
import { checkKind } from '../../core/arguments.js';
import { RoceError } from '../../core/errors.js';
import { NS_PER_S } from '../../core/units.js';
import { connectRpc, type RpcClient, rpcOverStream, type Service } from '../../rpc/index.js';
import { RpcError } from '../../rpc/rpc-error.js';
import type { RdmaDevice } from '../../verbs/device.js';
import { FollowingManager } from '../following-manager.js';
import type { Manager, Nodes } from '../messages.js';
import { MANAGER_SERVICE, methodsOf, NODE_SERVICE } from './services.js';
import { FOLLOW_MS, SEARCH_MS } from './timing.js';

/** Frames are small; records are read. */
export const CONNECTION = { messageBytesMax: 8192, receiveDepth: 64 } as const;

/** What connections are made of: `auto` is RDMA, and TCP where that fails. */
export const EXTENT_TRANSPORTS = ['auto', 'rdma', 'tcp'] as const;
/** One of {@link EXTENT_TRANSPORTS}. */
export type ExtentTransport = (typeof EXTENT_TRANSPORTS)[number];

/** Throws ERR_ROCE_INVALID_ARGUMENT for what is none. */
export function checkTransport(transport: ExtentTransport = 'auto'): void {
  checkKind('transport', transport, EXTENT_TRANSPORTS.includes(transport), EXTENT_TRANSPORTS.join(', '));
}

/** After RDMA has failed with a peer, TCP is used for so long. */
const TCP_NS = 60 * NS_PER_S;
/** The first answer over RDMA takes no longer. */
const PROOF_MS = 2_000;
/** What packets that do not arrive look like. A refusal, such as of packets in the clear, is an answer, and TCP must not get around it. */
const LOST_PACKETS = ['ERR_ROCE_TIMEOUT', 'ERR_ROCE_CONNECT', 'ERR_ROCE_CLOSED', 'ERR_ROCE_COMPLETION'];

/** The connection to one peer. */
interface Peer {
  readonly connecting: Promise<RpcClient<Service>>;
  /** Once there is one. */
  client: RpcClient<Service> | undefined;
  /** A call has failed over it, or it could not be made. */
  hasFailed: boolean;
}

/** All peers of a program that uses extents. */
export class Peers implements AsyncDisposable {
  readonly #device: RdmaDevice;
  readonly #transport: ExtentTransport;
  readonly #peers = new Map<string, Peer>();
  /** Addresses with which RDMA has failed, and until when it is not tried again. */
  readonly #failed = new Map<string, number>();

  constructor(device: RdmaDevice, transport: ExtentTransport = 'auto') {
    this.#device = device;
    this.#transport = transport;
  }

  /** Peers with a connection, or one that is being made. */
  get connected(): number {
    return this.#peers.size;
  }

  /** The nodes of a cluster. */
  readonly nodes: Nodes = {
    call: (place, method, request, timeoutMs) =>
      this.#call(place.address, NODE_SERVICE, method, { ...request, to: place.node }, timeoutMs) as Promise<never>,
  };

  /** The manager at `HOST:PORT`, or the one that leads of several, with commas between their addresses. */
  manager(addresses: string): Manager {
    const at = (address: string): Manager => ({
      call: (method, request, timeoutMs) =>
        this.#call(address, MANAGER_SERVICE, method, request, timeoutMs) as Promise<never>,
    });
    const { clock } = this.#device;
    const times = { retryMs: FOLLOW_MS, searchMs: SEARCH_MS };
    return new FollowingManager({ addresses: addresses.split(','), clock, ...times, at });
  }

  async #call(address: string, service: Service, method: string, request: object, timeoutMs: number): Promise<object> {
    const key = `${service === NODE_SERVICE ? 'node' : 'manager'} ${address}`;
    const known = this.#peers.get(key);
    // A connection that has ended meanwhile says nothing against its peer, which may have been started anew.
    const peer =
      known === undefined || known.client?.isOpen === false ? this.#add(key, address, service, timeoutMs) : known;
    try {
      const client = peer.client ?? (await peer.connecting);
      return await methodsOf(client)[method](request, { timeoutMs });
    } catch (error) {
      // A refusal says that the peer is well; a late answer does not.
      if (!(error instanceof RpcError) && !peer.hasFailed) {
        peer.hasFailed = true;
        this.#drop(key, peer);
        this.#noteFailure(address);
        peer.client?.close().catch(() => {});
      }
      throw error;
    }
  }

  /** A connection of its own, which is forgotten when it ends: peers come and go, and each has another address. */
  #add(key: string, address: string, service: Service, timeoutMs: number): Peer {
    const peer: Peer = { connecting: this.#connect(address, service, timeoutMs), client: undefined, hasFailed: false };
    this.#peers.set(key, peer);
    peer.connecting.then(
      (client) => {
        peer.client = client;
        void client.ended.then(() => this.#drop(key, peer));
      },
      () => {}, // Whoever calls hears of it.
    );
    return peer;
  }

  #drop(key: string, peer: Peer): void {
    if (this.#peers.get(key) === peer) this.#peers.delete(key);
  }

  async #connect(address: string, service: Service, timeoutMs: number): Promise<RpcClient<Service>> {
    const overTcp = async () => connectRpc(rpcOverStream(await this.#dial(address)), service);
    const { clock } = this.#device;
    if (this.#transport === 'tcp' || (this.#failed.get(address) ?? 0) > clock.nowNs()) return overTcp();
    try {
      const connection = await connect(this.#device, { ...CONNECTION, ...placeOf(address), timeoutMs });
      const client = connectRpc(connection, service);
      if (this.#transport === 'auto') await provePackets(client, service, Math.min(timeoutMs / 2, PROOF_MS));
      return client;
    } catch (error) {
      if (this.#transport === 'rdma' || !LOST_PACKETS.includes((error as RoceError).code)) throw error;
      const client = await overTcp().catch(() => {
        throw error; // The peer is away altogether.
      });
      this.#noteFailure(address);
      return client;
    }
  }

  async #dial(address: string) {
    const { host, port } = placeOf(address);
    const socket = await connectSocket(host, tcpPortOf(port));
    socket.setNoDelay(true);
    const security = channelSecurity(this.#device);
    return security === undefined ? socket : (await secureAsClient(socket, host, security)).socket;
  }

  /** The next connection to this address is TCP: packets may not arrive, or the peer may be away. */
  #noteFailure(address: string): void {
    if (this.#transport !== 'auto') return;
    const nowNs = this.#device.clock.nowNs();
    for (const [other, untilNs] of this.#failed) if (untilNs <= nowNs) this.#failed.delete(other);
    this.#failed.set(address, nowNs + TCP_NS);
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    const peers = [...this.#peers.values()];
    this.#peers.clear();
    await Promise.allSettled(peers.map(async ({ connecting }) => (await connecting).close()));
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** The exchange was TCP: that packets arrive both ways shows an answer to a request, which may be a refusal. */
async function provePackets(client: RpcClient<Service>, service: Service, timeoutMs: number): Promise<void> {
  try {
    await methodsOf(client)[service === NODE_SERVICE ? 'fetch' : 'locate']({}, { timeoutMs });
  } catch (error) {
    if (error instanceof RpcError) return;
    await client.close();
    throw error;
  }
}

/** TCP port of a service whose RDMA exchange is at `port`. */
export function tcpPortOf(port: number): number {
  return port + 1;
}

/** `HOST:PORT`, with an IPv6 address in brackets. */
export function placeText(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The answer of a manager. Rejects with ERR_ROCE_CONNECT, in the words of who uses it, where there is none. */
export async function askManager<T>(address: string, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (cause) {
    if (cause instanceof RpcError || !(cause instanceof RoceError)) throw cause;
    if (cause instanceof UntrustedPeerError) throw cause; // Somebody does answer, and one of both does not trust the other.
    if (!['ERR_ROCE_CONNECT', 'ERR_ROCE_TIMEOUT', 'ERR_ROCE_CLOSED'].includes(cause.code)) throw cause;
    const hint = "start one with 'rocev2 extents manager --dir PATH'";
    throw new RoceError('ERR_ROCE_CONNECT', `no manager answers at ${address}`, hint, { cause });
  }
}

/** `HOST:PORT`, with an IPv6 address in brackets. Throws ERR_ROCE_MALFORMED. */
function placeOf(address: string): { readonly host: string; readonly port: number } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(address) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined) throw new RoceError('ERR_ROCE_MALFORMED', `'${address}' is no address`, 'write HOST:PORT');
  return { host, port: Number(port) };
}
