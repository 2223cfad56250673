/** Lets others look at an endpoint's telemetry while it runs: a control socket for its owner, and HTTP where that was asked for. */

import { type HttpPlace, openControlSocket, openHttp } from './control-socket.js';
import type { Estats } from './estats.js';
import { estatsHandlers } from './http-handler.js';
import { measureLoopDelay } from './loop-delay.js';
import type { EndpointIdentity } from './snapshot.js';

/** Where an endpoint may be looked at. */
export interface EndpointServerOptions {
  /** Where metrics are served for everybody who can connect. Default: only the control socket. */
  readonly http?: HttpPlace;
}

/** The servers of one endpoint. */
export interface EndpointServer {
  /** The control socket: HTTP over a Unix socket that only this user can open. */
  readonly socketPath: string;
  /** Where HTTP is served, `http://HOST:PORT`; undefined when it is not. */
  readonly httpUrl: string | undefined;
  /** Stops serving and removes the control socket. */
  close(): Promise<void>;
}

/** Throws ERR_ROCE_IO when a socket cannot be had; then nothing stays open. Keeps no process alive. */
export async function serveEstats(
  estats: Estats,
  identity: EndpointIdentity,
  options: EndpointServerOptions,
): Promise<EndpointServer> {
  const handlers = estatsHandlers(estats, identity);
  const control = await openControlSocket(handlers.control);
  const http =
    options.http === undefined
      ? undefined
      : await openHttp(handlers.readOnly, options.http).catch(async (error) => {
          await control.close();
          throw error;
        });
  const stopMeasuring = measureLoopDelay(estats.nowNs, (ns, agoNs) => estats.recordLoopDelay(ns, agoNs));
  return {
    socketPath: control.at,
    httpUrl: http?.at,
    close: async () => {
      stopMeasuring();
      await Promise.all([control.close(), http?.close()]);
    },
  };
}
