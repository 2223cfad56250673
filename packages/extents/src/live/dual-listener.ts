/**
 * Listens for RDMA connections and, at the next port, for the same service over TCP, for peers whose datagrams do not
 * arrive. The device's credentials decide who may connect and how bytes are protected.
 */

import { type RpcServer, type Service, serveRpc } from '@rocev2/rpc';
import { type Listener, listen } from 'rocev2/internal/cm';
import { type ConnectionLimits, RefusedPeers } from 'rocev2/internal/core';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import { CONNECTION, tcpPortOf } from './peer-connector.js';
import { REQUEST_LIMITS } from './services.js';
import { type RequestHandlers, StreamListener } from './stream-listener.js';

/** Ports that are tried where the system chooses: the next one may be taken. */
const ATTEMPTS = 20;

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

export interface DualListenerOptions {
  readonly onNotice: ((notice: string) => void) | undefined;
  /** Of connections over TCP. */
  readonly limits?: ConnectionLimits;
}

export class DualListener implements AsyncDisposable {
  readonly #listener: Listener;
  readonly #streams: StreamListener;
  #rdma: RpcServer | undefined;

  private constructor(listener: Listener, streams: StreamListener) {
    this.#listener = listener;
    this.#streams = streams;
  }

  static async open(device: RdmaDevice, place: ListenAddress, options: DualListenerOptions): Promise<DualListener> {
    const { onNotice, limits } = options;
    const refused = new RefusedPeers('a peer', onNotice);
    for (let attempt = 1; ; attempt++) {
      const listener = await listen(device, { ...CONNECTION, ...place });
      try {
        const tcp = { host: place.host, port: tcpPortOf(listener.port) };
        const streams = await StreamListener.open(device, tcp, refused, limits);
        refused.hear(listener);
        return new DualListener(listener, streams);
      } catch (error) {
        await listener.close();
        if (place.port !== 0 || attempt === ATTEMPTS) throw error;
      }
    }
  }

  get port(): number {
    return this.#listener.port;
  }

  /** Begins to answer. */
  serve(service: Service, handlers: RequestHandlers): void {
    this.#streams.serve(service, handlers);
    this.#rdma = serveRpc(this.#listener, service, handlers, REQUEST_LIMITS);
  }

  async close(): Promise<void> {
    await this.#streams.close();
    await this.#rdma?.close();
    await this.#listener.close();
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
