/** Nodes and a manager over RDMA connections: one to each, made at the first call, and anew after it has ended. */

import { connect } from '../../cm/listen-connect.js';
import { RoceError } from '../../core/errors.js';
import { connectRpc, type RpcClient, type Service } from '../../rpc/index.js';
import { RpcError } from '../../rpc/rpc-error.js';
import type { RdmaDevice } from '../../verbs/device.js';
import type { Manager, Nodes } from '../messages.js';
import { MANAGER_SERVICE, methodsOf, NODE_SERVICE } from './services.js';

/** Frames are small; records are read. */
export const CONNECTION = { messageBytesMax: 8192, receiveDepth: 64 } as const;

/** All peers of a program that uses extents. */
export class RdmaPeers implements AsyncDisposable {
  readonly #device: RdmaDevice;
  readonly #clients = new Map<string, Promise<RpcClient<Service>>>();

  constructor(device: RdmaDevice) {
    this.#device = device;
  }

  /** The nodes of a cluster. */
  readonly nodes: Nodes = {
    call: (place, method, request, timeoutMs) =>
      this.#call(place.address, NODE_SERVICE, method, { ...request, to: place.node }, timeoutMs) as Promise<never>,
  };

  /** The manager at `HOST:PORT`. */
  manager(address: string): Manager {
    return {
      call: (method, request, timeoutMs) =>
        this.#call(address, MANAGER_SERVICE, method, request, timeoutMs) as Promise<never>,
    };
  }

  async #call(address: string, service: Service, method: string, request: object, timeoutMs: number): Promise<object> {
    const key = `${service === NODE_SERVICE ? 'node' : 'manager'} ${address}`;
    let client = this.#clients.get(key);
    if (client === undefined) {
      client = this.#connect(address, service, timeoutMs);
      this.#clients.set(key, client);
    }
    try {
      return await methodsOf(await client)[method](request, { timeoutMs });
    } catch (error) {
      // A refusal says that the peer is well; a late answer does not.
      if (!(error instanceof RpcError) && this.#clients.get(key) === client) {
        this.#clients.delete(key);
        client.then((one) => one.close()).catch(() => {});
      }
      throw error;
    }
  }

  async #connect(address: string, service: Service, timeoutMs: number): Promise<RpcClient<Service>> {
    const connection = await connect(this.#device, { ...CONNECTION, ...placeOf(address), timeoutMs });
    return connectRpc(connection, service);
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    const clients = [...this.#clients.values()];
    this.#clients.clear();
    await Promise.allSettled(clients.map(async (client) => (await client).close()));
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
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
