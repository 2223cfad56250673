/** Makes the connections of an NVMe over Fabrics host: TCP sockets, or queue pairs by RDMA CM. */

import type { Socket } from 'node:net';
import { ConnectionManager, ConnectionRejected, connectSocket } from 'rocev2/internal/cm';
import { RoceError } from 'rocev2/internal/core';
import { IpAddress } from 'rocev2/internal/packet';
import { SocketStream } from 'rocev2/internal/storage-rpc';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import type { TlsPsk } from '../auth/tls-key.js';
import type { HostConnection } from '../host/host-connection.js';
import { RdmaHostConnection } from '../host/rdma-host-connection.js';
import { TcpHostConnection } from '../host/tcp-host-connection.js';
import { encodeQueueRequest, rejectionText } from '../rdma/private-data.js';
import { connectNvmeTls } from './nvme-tls.js';

export interface NvmeAddress {
  readonly address: string;
  readonly port: number;
  readonly device?: RdmaDevice;
  readonly digests: boolean;
  readonly tls?: readonly TlsPsk[];
  readonly answerTimeoutMs?: number;
}

const POOL_BYTES_MAX = 16 << 20;
const READS_MAX = 16;
/** As the host of Linux, over RDMA and over TCP. */
const CONNECT_TIMEOUT_MS = 3_000;
const ANSWER_TIMEOUT_MS = 10_000;

export class NvmeDialer implements AsyncDisposable {
  readonly #target: NvmeAddress;
  readonly #cm: ConnectionManager | undefined;
  #tls: readonly TlsPsk[];

  private constructor(target: NvmeAddress, cm: ConnectionManager | undefined) {
    this.#target = target;
    this.#tls = target.tls ?? [];
    this.#cm = cm;
  }

  static async open(target: NvmeAddress): Promise<NvmeDialer> {
    const { device } = target;
    return new NvmeDialer(target, device === undefined ? undefined : await ConnectionManager.open(device));
  }

  dial(qid: number, entries: number): Promise<HostConnection> {
    return this.#cm === undefined ? this.#dialTcp() : this.#dialRdma(this.#cm, qid, entries);
  }

  async close(): Promise<void> {
    await this.#cm?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #dialTcp(): Promise<HostConnection> {
    const { address, port, digests } = this.#target;
    const socket = await (this.#tls.length === 0 ? this.#openSocket() : this.#openSecure());
    try {
      const connection = await TcpHostConnection.over(new SocketStream(socket), { header: digests, data: digests });
      socket.setTimeout(0);
      return connection;
    } catch (cause) {
      socket.destroySoon();
      const text = `${address}:${port} does not answer as an NVMe/TCP target: ${(cause as Error).message}`;
      throw new RoceError('ERR_ROCE_CONNECT', text, 'is it the port of a target that runs, and one without TLS?', {
        cause,
      });
    }
  }

  async #openSocket(): Promise<Socket> {
    const { address, port, answerTimeoutMs = ANSWER_TIMEOUT_MS } = this.#target;
    const socket = await connectSocket(address, port);
    return socket.setTimeout(answerTimeoutMs, () =>
      socket.destroy(new RoceError('ERR_ROCE_TIMEOUT', `no answer for ${answerTimeoutMs / 1000} s`)),
    );
  }

  /** The first queue finds the key that the target has; the next ones begin with it. */
  async #openSecure(): Promise<Socket> {
    const refusals: RoceError[] = [];
    for (const psk of this.#tls) {
      const socket = await this.#openSocket();
      try {
        const secure = await connectNvmeTls(socket, psk);
        this.#tls = [psk, ...this.#tls.filter((other) => other !== psk)];
        return secure;
      } catch (error) {
        refusals.push(error as RoceError);
        if (socket.errored instanceof RoceError) break; // It said nothing: another key would not change that.
        socket.destroy();
      }
    }
    throw refusals[0];
  }

  async #dialRdma(cm: ConnectionManager, qid: number, entries: number): Promise<HostConnection> {
    const { device } = cm;
    const pd = await device.createPd();
    const connection = await RdmaHostConnection.create({
      pd,
      clock: device.clock,
      entries,
      poolBytesMax: POOL_BYTES_MAX,
    });
    try {
      const { address, port } = this.#target;
      const established = await cm.connect(IpAddress.parse(address), port, connection.qp, {
        privateData: encodeQueueRequest({ qid, receives: entries, sends: entries }),
        responderResources: READS_MAX,
        initiatorDepth: 0,
        timeoutMs: CONNECT_TIMEOUT_MS,
      });
      connection.disconnect = () => void established.disconnect();
      void established.disconnected.then(() =>
        connection.fail(new RoceError('ERR_ROCE_CONNECT', 'the target has disconnected')),
      );
      return connection;
    } catch (error) {
      await connection.close();
      throw connectError(error as Error, this.#target);
    }
  }
}

function connectError(error: Error, { address, port }: NvmeAddress): Error {
  const why = error instanceof ConnectionRejected ? rejectionText(error.privateData) : undefined;
  const isLate = error instanceof RoceError && error.code === 'ERR_ROCE_TIMEOUT';
  if (why === undefined && !isLate) return error;
  if (why === undefined) {
    const text = `nothing answers over RDMA at ${address} port ${port}: ${error.message}`;
    return new RoceError('ERR_ROCE_CONNECT', text, 'does a target run there, with RDMA?', { cause: error });
  }
  return new RoceError('ERR_ROCE_CONNECT', `${error.message}: ${why}`, undefined, { cause: error });
}
