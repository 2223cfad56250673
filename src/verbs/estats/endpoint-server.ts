import { type HttpPlace, openControlSocket, openHttp } from './control-socket.js';
import type { Estats } from './estats.js';
import { estatsHandlers } from './http-handler.js';
import { measureLoopDelay } from './loop-delay.js';
import type { EndpointIdentity } from './snapshot.js';

export interface EndpointServerOptions {
  readonly http?: HttpPlace;
}

export interface EndpointServer {
  readonly socketPath: string;
  readonly httpUrl: string | undefined;
  close(): Promise<void>;
}

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
