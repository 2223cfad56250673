import { randomInt } from 'node:crypto';
import type { HostTransport, PathState } from '../../cm/rdma-fallback.js';
import { checkKind, checkOptions, checkText, checkWhole, type OptionNames } from '../../core/arguments.js';
import { SYSTEM_CLOCK } from '../../driver/system-clock.js';
import type { SecureOptions } from '../../verbs/security.js';
import type { HostEvent } from '../session/host-event.js';
import { StreamHost, type StreamHostOptions } from '../su-stream/stream-host.js';
import { StreamLink } from '../su-stream/stream-link.js';
import { checkStreamTerms, type StreamTerms, type SuStream } from '../su-stream/su-stream.js';
import { dialStream, securityOf } from './socket-security.js';
import type { SuEndpoint } from './su-endpoint.js';

/** How to reach a server of streams. */
export interface SuStreamClientOptions extends StreamTerms {
  /** Name or address of the server. */
  readonly host: string;
  /** TCP port of the server, also for the set-up of RDMA. */
  readonly port: number;
  /** For RDMA; without it the client uses TCP. The credentials of its device also protect TCP. The caller closes it. */
  readonly endpoint?: SuEndpoint | undefined;
  /** Credentials of a client without an endpoint: TCP is protected by TLS 1.3. */
  readonly secure?: SecureOptions | undefined;
  /** False: no failover to TCP. Default true. */
  readonly tcp?: boolean | undefined;
  /** When to return to RDMA after a failure; see RdmaFallback. */
  readonly path?: NonNullable<StreamHostOptions['path']> | undefined;
  /** Streams fail after this long without a connection to the server; default: they wait indefinitely. */
  readonly giveUpNs?: number | undefined;
  /** Called with path events, like {@link StorageClientOptions.onEvent}. */
  readonly onEvent?: ((event: HostEvent) => void) | undefined;
}

const OPTIONS: OptionNames<SuStreamClientOptions> = {
  host: true,
  port: true,
  endpoint: true,
  secure: true,
  tcp: true,
  path: true,
  giveUpNs: true,
  onEvent: true,
  windowBytes: true,
  idleNs: true,
  silenceNs: true,
};

/** The streams of a client to one server. */
export class SuStreamClient implements AsyncDisposable {
  readonly #host: StreamHost;

  private constructor(host: StreamHost) {
    this.#host = host;
  }

  /**
   * Nothing is connected until {@link stream}. Throws ERR_ROCE_UNKNOWN_NAME for an unknown option,
   * ERR_ROCE_OUT_OF_RANGE for an invalid size.
   */
  static to(options: SuStreamClientOptions): SuStreamClient {
    checkOptions('SuStreamClient.to', options, OPTIONS);
    checkStreamTerms(options);
    const { host, port, endpoint, secure, tcp = true, path, giveUpNs, onEvent, ...stream } = options;
    checkText('host', host);
    checkWhole('port', port, 1, 65_535);
    checkKind('endpoint', endpoint, endpoint === undefined || typeof endpoint?.dial === 'function', 'a SuEndpoint');
    const security = securityOf(endpoint?.device, secure);
    const dialTcp = async () => StreamLink.overTcp(await dialStream(host, port, security));
    return new SuStreamClient(
      new StreamHost({
        clock: SYSTEM_CLOCK,
        random: { u32: () => randomInt(2 ** 32) },
        dial: {
          ...(endpoint !== undefined && {
            rdma: async () => StreamLink.overRdma(await endpoint.dial(host, port, 'su-stream')),
          }),
          ...(tcp && { tcp: dialTcp }),
        },
        stream,
        ...(path !== undefined && { path }),
        ...(giveUpNs !== undefined && { giveUpNs }),
        ...(onEvent !== undefined && { onEvent: (event: HostEvent) => queueMicrotask(() => onEvent(event)) }),
      }),
    );
  }

  /** Opens a stream. Rejects with ERR_ROCE_CONNECT when the server cannot be reached by any transport. */
  stream(): Promise<SuStream> {
    return this.#host.stream();
  }

  /** State of the path to the server. */
  get state(): PathState {
    return this.#host.state;
  }

  /** Streams by the transport they use now. */
  get transports(): Readonly<Record<HostTransport, number>> {
    return { rdma: this.#host.count('rdma'), tcp: this.#host.count('tcp') };
  }

  /**
   * Breaks all RDMA connections as a failing NIC would: streams continue over TCP, and RDMA is retried after its
   * hold-down.
   */
  failover(): void {
    this.#host.failRdma('a failover was requested');
  }

  /** Takes RDMA out of use, so that its device can be serviced. When this resolves, no stream uses it. */
  drainRdma(): Promise<void> {
    return this.#host.drain();
  }

  /** Takes RDMA back into use: probes it first, then moves streams gradually. */
  restoreRdma(): void {
    this.#host.restore();
  }

  /** Ends all streams. */
  close(): Promise<void> {
    return this.#host.close();
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
