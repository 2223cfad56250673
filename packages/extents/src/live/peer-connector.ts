import { connectRpc, type RpcClient, RpcError, rpcOverStream, type Service } from '@rocev2/rpc';
import { channelSecurity, connect, connectSocket, secureAsClient } from 'rocev2/internal/cm';
import { checkKind, parseHostPort, type RoceError, WaitDeadline, waitForEvent } from 'rocev2/internal/core';
import { systemRandom } from 'rocev2/internal/driver';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import { PeerFallbacks } from '../peer-fallbacks.js';
import { methodsOf, NODE_SERVICE, REQUEST_LIMITS } from './services.js';

/**
 * A live peer that acknowledges nothing for 4.3 s (4.096 us x 2^20) is reached over TCP from then on; waiting longer
 * would cost each call its whole timeout when packets are lost.
 */
export const CONNECTION = { messageBytesMax: 8192, receiveDepth: 64, totalTimeout: 20 } as const;

/** Transports of connections: `auto` is RDMA, and TCP where that fails. */
export const EXTENT_TRANSPORTS = ['auto', 'rdma', 'tcp'] as const;
/** One of {@link EXTENT_TRANSPORTS}. */
export type ExtentTransport = (typeof EXTENT_TRANSPORTS)[number];

export function checkTransport(transport: ExtentTransport = 'auto'): void {
  checkKind('transport', transport, EXTENT_TRANSPORTS.includes(transport), EXTENT_TRANSPORTS.join(', '));
}

const PROOF_MS = 2_000;
/** The same while packets are known to get lost. */
const HASTY_PROOF_MS = 500;
const CONNECT_MS = 12_000;
/** A refusal, such as of packets in the clear, is an answer, and TCP must not get around it. */
const LOST_PACKETS = ['ERR_ROCE_TIMEOUT', 'ERR_ROCE_CONNECT', 'ERR_ROCE_CLOSED', 'ERR_ROCE_COMPLETION'];

export interface PeerClient {
  readonly client: RpcClient<Service>;
  readonly transport: 'rdma' | 'tcp';
}

export interface ConnectLimits {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface PeerConnector {
  connect(address: string, service: Service, limits: ConnectLimits): Promise<PeerClient>;
  answers(link: PeerClient, service: Service): Promise<boolean>;
  /** RDMA to this address has failed: it is held down. */
  noteFailure(address: string): void;
}

export class DeviceConnector implements PeerConnector {
  readonly #device: RdmaDevice;
  readonly #transport: ExtentTransport;
  readonly #fallbacks = new PeerFallbacks(systemRandom());

  constructor(device: RdmaDevice, transport: ExtentTransport = 'auto') {
    this.#device = device;
    this.#transport = transport;
  }

  async connect(address: string, service: Service, { timeoutMs, signal }: ConnectLimits): Promise<PeerClient> {
    const overTcp = async (): Promise<PeerClient> => {
      const stream = await this.#dial(address, signal);
      this.#fallbacks.onTcp(address);
      return { client: connectRpc(rpcOverStream(stream), service, REQUEST_LIMITS), transport: 'tcp' };
    };
    const { clock } = this.#device;
    if (this.#transport === 'tcp' || !this.#fallbacks.mayUseRdma(address, clock.nowNs())) return overTcp();
    try {
      const limits = { timeoutMs: Math.min(timeoutMs, CONNECT_MS), signal };
      const connection = await connect(this.#device, { ...CONNECTION, ...parseHostPort(address), ...limits });
      const client = connectRpc(connection, service, REQUEST_LIMITS);
      const proofMs = this.#fallbacks.isDoubtful(address, clock.nowNs()) ? HASTY_PROOF_MS : PROOF_MS;
      if (this.#transport === 'auto')
        await provePackets(client, service, { timeoutMs: Math.min(timeoutMs / 2, proofMs), signal });
      this.#fallbacks.onRdma(address, clock.nowNs());
      return { client, transport: 'rdma' };
    } catch (error) {
      if (this.#transport === 'rdma' || !LOST_PACKETS.includes((error as RoceError).code)) throw error;
      const link = await overTcp().catch(() => {
        throw error;
      });
      this.noteFailure(address);
      this.#fallbacks.onTcp(address);
      return link;
    }
  }

  async answers({ client }: PeerClient, service: Service): Promise<boolean> {
    return ask(client, service, { timeoutMs: PROOF_MS }).then(
      () => true,
      () => false,
    );
  }

  async #dial(address: string, signal: AbortSignal) {
    const { host, port } = parseHostPort(address);
    const socket = await connectSocket(host, tcpPortOf(port), undefined, signal);
    socket.setNoDelay(true);
    const security = channelSecurity(this.#device);
    if (security === undefined) return socket;
    try {
      const deadline = WaitDeadline.of('connect', { signal }, this.#device.clock);
      return (await waitForEvent(deadline, secureAsClient(socket, host, security))).socket;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  noteFailure(address: string): void {
    if (this.#transport === 'auto') this.#fallbacks.onFailure(address, this.#device.clock.nowNs());
  }
}

/** The exchange was TCP: that packets arrive both ways shows an answer to a request. */
async function provePackets(client: RpcClient<Service>, service: Service, limits: ConnectLimits): Promise<void> {
  try {
    await ask(client, service, limits);
  } catch (error) {
    await client.close();
    throw error;
  }
}

async function ask(
  client: RpcClient<Service>,
  service: Service,
  limits: { readonly timeoutMs: number; readonly signal?: AbortSignal },
): Promise<void> {
  try {
    await methodsOf(client)[service === NODE_SERVICE ? 'fetch' : 'locate']({}, limits);
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
  }
}

export function tcpPortOf(port: number): number {
  return port + 1;
}
