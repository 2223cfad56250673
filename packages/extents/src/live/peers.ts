/**
 * Nodes and a manager over connections: one to each, made at the first call, and again after it has ended. They are
 * RDMA connections. Where none can be made, or one has failed, the next is TCP, and RDMA is tried again after a
 * hold-down.
 */

import { RpcError, type Service } from '@rocev2/rpc';
import { UntrustedPeerError } from 'rocev2/internal/cm';
import { type Clock, RoceError } from 'rocev2/internal/core';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import { FollowingManager } from '../following-manager.js';
import type { Manager, Nodes } from '../messages.js';
import { isNotLeader } from '../not-leader.js';
import { DeviceConnector, type ExtentTransport, type PeerClient, type PeerConnector } from './peer-connector.js';
import { MANAGER_SERVICE, methodsOf, NODE_SERVICE } from './services.js';
import { FOLLOW_MS, SEARCH_MS } from './timing.js';

interface Peer {
  readonly address: string;
  readonly service: Service;
  readonly connecting: Promise<PeerClient>;
  readonly giveUp: AbortController;
  link: PeerClient | undefined;
  hasFailed: boolean;
  isInDoubt: boolean;
}

export class Peers implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #connector: PeerConnector;
  readonly #peers = new Map<string, Peer>();

  constructor(clock: Clock, connector: PeerConnector) {
    this.#clock = clock;
    this.#connector = connector;
  }

  static of(device: RdmaDevice, transport?: ExtentTransport): Peers {
    return new Peers(device.clock, new DeviceConnector(device, transport));
  }

  get connected(): number {
    return this.#peers.size;
  }

  readonly nodes: Nodes = {
    call: (place, method, request, timeoutMs) =>
      this.#call(place.address, NODE_SERVICE, method, { ...request, to: place.node }, timeoutMs) as Promise<never>,
  };

  manager(addresses: string): Manager {
    const at = (address: string): Manager => ({
      call: (method, request, timeoutMs) =>
        this.#call(address, MANAGER_SERVICE, method, request, timeoutMs) as Promise<never>,
    });
    const clock = this.#clock;
    const times = { retryMs: FOLLOW_MS, searchMs: SEARCH_MS };
    return new FollowingManager({ addresses: addresses.split(','), clock, ...times, at });
  }

  async #call(address: string, service: Service, method: string, request: object, timeoutMs: number): Promise<object> {
    const key = keyOf(address, service);
    const known = this.#peers.get(key);
    // A closed connection is no evidence against its peer, which may have been restarted.
    const peer =
      known === undefined || known.link?.client.isOpen === false ? this.#add(address, service, timeoutMs) : known;
    try {
      const { client } = peer.link ?? (await peer.connecting);
      return await methodsOf(client)[method](request, { timeoutMs });
    } catch (error) {
      // A refusal shows that the peer works; a late answer does not.
      if (!(error instanceof RpcError)) this.#lose(peer);
      throw error;
    }
  }

  #add(address: string, service: Service, timeoutMs: number): Peer {
    const giveUp = new AbortController();
    const connecting = this.#connector
      .connect(address, service, { timeoutMs, signal: giveUp.signal })
      .catch((error: unknown) => {
        if (!giveUp.signal.aborted) throw error;
        throw new RoceError('ERR_ROCE_CLOSED', 'the connections of this program have been closed');
      });
    const parts = { address, service, connecting, giveUp };
    const peer: Peer = { ...parts, link: undefined, hasFailed: false, isInDoubt: false };
    this.#peers.set(keyOf(address, service), peer);
    connecting.then(
      (link) => {
        peer.link = link;
        void link.client.ended.then(() => this.#drop(peer));
        if (link.transport === 'tcp') this.#doubtOthers();
      },
      () => {},
    );
    return peer;
  }

  /**
   * A peer is reached over TCP because RDMA has failed with it: packets may be lost on the way to all. Broken
   * connections end now, all at once; otherwise each of them would cost one call its whole time limit.
   */
  #doubtOthers(): void {
    for (const peer of this.#peers.values())
      if (peer.link?.transport === 'rdma' && !peer.isInDoubt) void this.#doubt(peer, peer.link);
  }

  async #doubt(peer: Peer, link: PeerClient): Promise<void> {
    peer.isInDoubt = true;
    if (!(await this.#connector.answers(link, peer.service))) this.#lose(peer);
    peer.isInDoubt = false;
  }

  #lose(peer: Peer): void {
    if (peer.hasFailed) return;
    peer.hasFailed = true;
    this.#drop(peer);
    if (peer.link?.transport === 'rdma') this.#connector.noteFailure(peer.address);
    peer.link?.client.close().catch(() => {});
  }

  #drop(peer: Peer): void {
    const key = keyOf(peer.address, peer.service);
    if (this.#peers.get(key) === peer) this.#peers.delete(key);
  }

  async close(): Promise<void> {
    const peers = [...this.#peers.values()];
    this.#peers.clear();
    for (const { giveUp } of peers) giveUp.abort();
    await Promise.allSettled(peers.map(async ({ connecting }) => (await connecting).client.close()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function keyOf(address: string, service: Service): string {
  return `${service === NODE_SERVICE ? 'node' : 'manager'} ${address}`;
}

/** No manager answers, or none leads: it may be started later. */
export function isWithoutManager(error: unknown): boolean {
  if (isNotLeader(error)) return true;
  return error instanceof RoceError && error.code === 'ERR_ROCE_CONNECT' && !(error instanceof UntrustedPeerError);
}

export async function askManager<T>(address: string, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (cause) {
    if (cause instanceof RpcError || !(cause instanceof RoceError)) throw cause;
    if (cause instanceof UntrustedPeerError) throw cause;
    if (!['ERR_ROCE_CONNECT', 'ERR_ROCE_TIMEOUT', 'ERR_ROCE_CLOSED'].includes(cause.code)) throw cause;
    const hint = "start one with 'rocev2 extents manager --dir PATH'";
    throw new RoceError('ERR_ROCE_CONNECT', `no manager answers at ${address}`, hint, { cause });
  }
}
